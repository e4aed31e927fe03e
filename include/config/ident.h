/* SPDX-License-Identifier: ISC */
/*
 * The auth_ident_file: maps that say which system users may log in as which database users.
 *
 *	MAP  SYSTEM-USER  DATABASE-USER
 *
 * As in PostgreSQL, a system user that begins with a slash, in quotes or not, is a regular
 * expression, and a \1 in the database user then stands for what its first group took. A bare
 * `all` as database user is everybody. Counted, never changed.
 */
#ifndef PGUSHER_CONFIG_IDENT_H
#define PGUSHER_CONFIG_IDENT_H

#include <stdbool.h>
#include <stddef.h>

#include "config/problems.h"

enum { IDENT_FILE_LIMIT = 16 * 1024 * 1024 /* bytes */ };

struct ident;
struct ident_line;

/* The lines of one map; lent by the struct ident. One that fits is enough, whichever it is. */
struct ident_map {
	const struct ident_line *lines;
	size_t count; /* 0: there is no such map */
};

/*
 * Read a file. A bad line, or a file that cannot be opened, is left out and is a problem. NULL
 * without memory, which is an error.
 */
struct ident *ident_load(const char *path, struct problems *problems);

/* The same for a text that is in memory already, here called `name`. */
struct ident *ident_parse(
	const char *name, const char *text, size_t length, struct problems *problems);

/* One more holder; NULL is passed through. */
struct ident *ident_ref(struct ident *ident);

/* One holder less; NULL is fine. */
void ident_unref(struct ident *ident);

/* The map of that name; NULL has none. */
struct ident_map ident_find_map(const struct ident *ident, const char *name);

/* The name of a map that is there. */
const char *ident_map_name(const struct ident_map *map);

/* May this system user (or whoever a certificate names) be that database user? */
bool ident_map_allows(
	const struct ident_map *map, const char *system_user, const char *database_user);

#endif
