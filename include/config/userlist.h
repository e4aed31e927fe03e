/* SPDX-License-Identifier: ISC */
/*
 * The auth_file: names and secrets, read once, sorted, never changed.
 *
 * Counted, so that configurations can share one; whoever takes a reference gives it back. What
 * kind of secret a text is (plain, MD5, SCRAM) is not judged here. All texts are wiped with the
 * last reference.
 *
 * A list takes the size of its file and four bytes per user.
 */
#ifndef PGUSHER_CONFIG_USERLIST_H
#define PGUSHER_CONFIG_USERLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "config/problems.h"

enum {
	USERLIST_NAME_LIMIT = 127, /* bytes of a name, as written between the quotes */
	USERLIST_SECRET_LIMIT = 65530, /* bytes of a secret, likewise */
	USERLIST_FILE_LIMIT = 1024 * 1024 * 1024, /* bytes of a file */
};

struct userlist;

/*
 * The users in a file. `previous` (NULL at start) is the list in force: it is what is returned,
 * with one more reference, if the file is still the same, or cannot be opened, or is broken;
 * the latter two are warnings. At start, what stands before a broken line is taken. NULL: there
 * is no list.
 */
struct userlist *userlist_load(
	const char *path, struct userlist *previous, struct problems *problems);

/*
 * The users in a text, here called `name`, that is already in memory. `*broken` (may be NULL) tells
 * that reading stopped at a broken line. NULL without memory.
 */
struct userlist *userlist_parse(const char *name, const char *text, size_t length, bool *broken,
	struct problems *problems);

/* One more holder; NULL is passed through. */
struct userlist *userlist_ref(struct userlist *list);

/* One holder less; the last one wipes and frees it. NULL is fine. */
void userlist_unref(struct userlist *list);

/* The secret of that user, possibly empty, lent by the list; NULL: not in it, or no list. */
const char *userlist_find(const struct userlist *list, const char *name);

/* Number of users; 0 for NULL. */
size_t userlist_count(const struct userlist *list);

/* User number `index` in byte order of names; false behind the last. Texts are lent. */
bool userlist_entry(
	const struct userlist *list, size_t index, const char **name, const char **secret);

#endif
