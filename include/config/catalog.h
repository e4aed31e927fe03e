/* SPDX-License-Identifier: ISC */
/*
 * The named entries of a configuration: databases, users, peers. For config/snapshot, nobody else:
 * a snapshot that SET has made shares them with the one before. Counted.
 */
#ifndef PGUSHER_CONFIG_CATALOG_H
#define PGUSHER_CONFIG_CATALOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/database_config.h"
#include "config/peer_config.h"
#include "config/user_config.h"

struct named;

typedef void entry_free(void *entry);

/* Entries that are owned, found by a name that stands in each of them. */
struct named_list {
	struct named *at; /* sorted by name once reading is done */
	size_t count, capacity;
	entry_free *free;
};

/* Takes the entry over; false, and it is freed, without memory. */
bool named_list_add(struct named_list *list, const char *name, void *entry);

/* Sort, and keep the last of equal names: before anything is looked up. */
void named_list_sort(struct named_list *list);

/* The entry of this name, or at this place of the order; NULL: none. */
const void *named_list_find(const struct named_list *list, const char *name);
const void *named_list_entry(const struct named_list *list, size_t index);

struct catalog {
	atomic_uint references;
	struct named_list databases, users, peers;
	struct database_config *template;
};

/* Empty; NULL: no memory. */
struct catalog *catalog_new(void);

struct catalog *catalog_ref(struct catalog *catalog);

/* NULL is allowed. */
void catalog_unref(struct catalog *catalog);

#endif
