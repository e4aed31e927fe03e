/* SPDX-License-Identifier: ISC */
/*
 * The auth_file: names and secrets, read once, sorted, immutable.
 *
 * Reference-counted, so that configurations can share it. The kind of a secret (plain, MD5,
 * SCRAM) is not checked here. All texts are wiped with the last reference.
 *
 * Memory: the size of the file and four bytes per user.
 */
#ifndef PGUSHER_CONFIG_USERLIST_H
#define PGUSHER_CONFIG_USERLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "config/problems.h"

enum {
	USERLIST_NAME_LIMIT = 127, /* bytes of a name, as written inside the quotes */
	USERLIST_SECRET_LIMIT = 65530, /* bytes of a secret, as written inside the quotes */
	USERLIST_FILE_LIMIT = 1024 * 1024 * 1024, /* bytes of a file */
};

struct userlist;

/*
 * Read the users of a file. `previous` (NULL at start) is the present list: it is returned
 * with one more reference if the file is unchanged, cannot be opened, or is broken; the latter
 * two are added as warnings. At start, the users before a broken line are used. Returns a
 * reference owned by the caller; NULL: no list.
 */
struct userlist *userlist_load(
	const char *path, struct userlist *previous, struct problems *problems);

/*
 * Parse the users of a text in memory; `name` is used in problems. `*broken` (may be NULL) is
 * set if parsing stopped at a broken line. Returns a reference owned by the caller; NULL when
 * out of memory.
 */
struct userlist *userlist_parse(const char *name, const char *text, size_t length, bool *broken,
	struct problems *problems);

/* Add a reference; NULL is returned unchanged. */
struct userlist *userlist_ref(struct userlist *list);

/* Release a reference; the last one wipes and frees the list. NULL is allowed. */
void userlist_unref(struct userlist *list);

/*
 * The secret of this user, possibly empty, valid as long as the list; NULL: no such user, or
 * no list.
 */
const char *userlist_find(const struct userlist *list, const char *name);

/* Number of users; 0 for NULL. */
size_t userlist_count(const struct userlist *list);

/*
 * User number `index` in byte order of names; false after the last. Texts are valid as long as
 * the list.
 */
bool userlist_entry(
	const struct userlist *list, size_t index, const char **name, const char **secret);

#endif
