/* SPDX-License-Identifier: ISC */
/*
 * Watches the hosts of databases that have a list of them, or that ask for a role
 * (target_session_attrs): each worker with such a database has one connection of its own to each
 * host, by which it asks for the role every host_check_interval; at once when something has
 * happened there, and ten times a second while clients wait for a host. So a move is known without
 * an error of a client, and a dead host costs one attempt at a time of each worker.
 *
 * The connection logs in for a pool of such a database, counts below the caps of its servers, and is
 * shown in SHOW SERVERS; it does not count for the size of the pool. It ends with the last client of
 * the pool, in a PAUSE and before a takeover.
 */
#ifndef PGUSHER_SESSION_POOL_HOST_WATCH_H
#define PGUSHER_SESSION_POOL_HOST_WATCH_H

#include "model/registry.h"

/*
 * To be called regularly: find out which hosts are to be watched, and connect to them or ask them if it
 * is time. While clients wait for a host, a deadline of the loop does so more often.
 */
void host_watch_round(struct registry *registry);

/* Begin, with the first call of that; and remove that deadline: connections stay. */
void host_watch_start(struct registry *registry);
void host_watch_stop(struct registry *registry);

/* The pool has a server, perhaps its first, or could not get one: begin a round in the next turn. */
void host_watch_begin_soon(struct pool *pool);

/* A connection that is to watch its host has logged in. May close it. */
void host_watch_begin(struct server_link *server);

/* Such a connection has answered its probe. May close it. */
void host_watch_answered(struct server_link *server);

/* A server has been closed in this state; does nothing if it does not watch. */
void host_watch_closed(
	struct server_link *server, enum server_state state, const struct failure *why);

#endif
