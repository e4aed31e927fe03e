/* SPDX-License-Identifier: ISC */
/*
 * The auth_ident_file: maps that define which system users may log in as which database users.
 *
 *	MAP  SYSTEM-USER  DATABASE-USER
 *
 * As in PostgreSQL, a system user that starts with a slash, quoted or not, is a regular
 * expression, and \1 in the database user is replaced by the match of its first group. A bare
 * `all` as database user is any user. Reference-counted and immutable.
 */
#ifndef PGUSHER_CONFIG_IDENT_H
#define PGUSHER_CONFIG_IDENT_H

#include <stdbool.h>
#include <stddef.h>

#include "config/problems.h"

enum { IDENT_FILE_LIMIT = 16 * 1024 * 1024 /* bytes */ };

struct ident;
struct ident_line;

/*
 * The lines of one map, borrowed from the struct ident. A login is allowed if any line
 * matches.
 */
struct ident_map {
	const struct ident_line *lines;
	size_t count; /* 0: the map does not exist */
};

/*
 * Read a file. A bad line, or a file that cannot be opened, is skipped and added to the
 * problems. Returns a reference owned by the caller; NULL when out of memory, which is added
 * as an error.
 */
struct ident *ident_load(const char *path, struct problems *problems);

/* Like ident_load(), for a text in memory; `name` is used in problems. */
struct ident *ident_parse(
	const char *name, const char *text, size_t length, struct problems *problems);

/* Add a reference; NULL is returned unchanged. */
struct ident *ident_ref(struct ident *ident);

/* Release a reference; the last one frees the maps. NULL is allowed. */
void ident_unref(struct ident *ident);

/* The map of this name; empty if there is none or `ident` is NULL. */
struct ident_map ident_find_map(const struct ident *ident, const char *name);

/* The name of a map that is not empty. */
const char *ident_map_name(const struct ident_map *map);

/* Whether this system user (or name in a certificate) may log in as this database user. */
bool ident_map_allows(
	const struct ident_map *map, const char *system_user, const char *database_user);

#endif
