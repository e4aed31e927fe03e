/* SPDX-License-Identifier: ISC */
/* The items of a database's list of hosts, and the hosts that they stand for (model/host). */
#ifndef PGUSHER_MODEL_HOST_HOST_ITEMS_H
#define PGUSHER_MODEL_HOST_HOST_ITEMS_H

#include "model/registry.h"

/*
 * Returns the nth item of the database's list. For a database without hosts it is the folder of
 * pgusher's own Unix socket.
 */
struct host_item host_items_nth(const struct pool *pool, unsigned n);

/*
 * Returns the host of the server, by server.host and server.where; NULL when out of memory, or if the
 * list is too short for it.
 */
struct host *host_items_of_server(const struct server_link *server);

/*
 * Returns what stands for the nth item if that is a name, to remember that it has no address. NULL if
 * it is none, or when out of memory.
 */
struct host *host_items_name(const struct pool *pool, unsigned n);

/* Is the host one of the database's list? */
bool host_items_have(const struct pool *pool, const struct host *host);

/*
 * Walk the hosts of a database's list that the registry knows: NULL and *n = 0 for the first one; returns NULL after the
 * last one. What stands for a name is among them.
 */
struct host *host_items_next(const struct registry *registry,
	const struct database_config *config, unsigned *n, const struct host *after);

/* Forget what is known of hosts that no database lists, and that no server uses. */
void host_items_prune(struct registry *registry);

/*
 * Append what each host of the database's list has said: that it is a standby, or why it cannot be
 * reached. Nothing if the database has one host and asks for no role.
 */
void host_items_explain(const struct pool *pool, struct buffer *out);

/* Copy the name of an item, with a NUL; a longer one is cut. */
void host_item_copy_name(const struct host_item *item, char name[DATABASE_HOST_LIMIT + 1]);

#endif
