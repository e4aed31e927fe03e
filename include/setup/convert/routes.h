/* SPDX-License-Identifier: ISC */
/*
 * What other poolers have for each pair of database and user: a route, with keys of its own. Here
 * a database has one line and a user one line, so routes are put together.
 *
 * The base of a database is its route for all users, else its first one. Its keys become those of
 * the line in [databases]; those of other routes that differ become keys of the line in [users].
 * What fits neither is listed as lost. If the base has only defaults, the keys of
 * the first user come before them.
 */
#ifndef PGUSHER_SETUP_CONVERT_ROUTES_H
#define PGUSHER_SETUP_CONVERT_ROUTES_H

#include "setup/convert/conversion.h"

enum { ROUTES_MOST = 10000 };

/* Where a value goes: the first of these that exists for what it is about. */
struct target {
	const char *setting; /* of the main section */
	const char *database, *user; /* keys of [databases] and [users] */
};

struct route_key;

struct route {
	const char *database; /* as in [databases]: `*` for all others */
	const char *user; /* NULL: all users without a route of their own */
	const struct source_node *node; /* its place */
	bool only_defaults; /* for the other routes of the database: no user comes by this one */
	struct route_key *keys, *last_key;
	struct route *next; /* of the conversion */
};

/* Add a route. Returns NULL when out of memory or beyond ROUTES_MOST, as
 * `failed` of the conversion tells then; texts live as long as the source. */
struct route *route_add(struct conversion *conversion, const struct source_node *node,
	const char *database, const char *user);

/* Give a route a key; a NULL route is ignored. The target lives as long as the conversion. */
void route_add_key(struct conversion *conversion, struct route *route,
	const struct target *target, const struct source_node *node, const char *value);

/* Put all routes into the draft. */
void routes_write(struct conversion *conversion);

#endif
