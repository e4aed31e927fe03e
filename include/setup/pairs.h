/* SPDX-License-Identifier: ISC */
/*
 * A list of keys and values, such as those of a connection string or a URL. It owns its texts;
 * values may be passwords, so they are wiped when they are freed.
 */
#ifndef PGUSHER_SETUP_PAIRS_H
#define PGUSHER_SETUP_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

struct pair {
	char *key, *value;
};

/* Zeroed is empty. In the order of adding. */
struct pairs {
	struct pair *at;
	size_t count, capacity;
};

/* Add copies of both texts. Returns false when out of memory. */
bool pairs_add(struct pairs *pairs, const char *key, const char *value);

/* The value of a key, the last one if there are several; NULL: none. Owned by the list. */
const char *pairs_find(const struct pairs *pairs, const char *key);

/* Remove all pairs of this key, and wipe their values. */
void pairs_remove(struct pairs *pairs, const char *key);

/* Wipe and free all. The list is empty afterwards. */
void pairs_free(struct pairs *pairs);

#endif
