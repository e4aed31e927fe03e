/* SPDX-License-Identifier: ISC */
/*
 * server_lifetime: the age at which servers are closed when they are free.
 *
 * A server goes up to a tenth of the lifetime early, each at another age, so that servers that
 * were launched together do not end together. At most a tenth of the pool's servers (at least
 * one) are closed in a second. A busy pool in transaction or statement mode gets a new server
 * before it loses the old one, and then has one server beyond its size until the old one is
 * free; if none can be had, the old server goes without after another tenth of the lifetime.
 * In session mode a server that is free is closed at once: the next session would keep it.
 *
 * A lifetime of 0 closes each server after one use, without any of this.
 */
#ifndef PGUSHER_SESSION_POOL_LIFETIME_H
#define PGUSHER_SESSION_POOL_LIFETIME_H

#include "model/registry.h"

/* lifetime_close_old() for a server that may have reached its age. */
bool lifetime_close_if_over(struct server_link *server);

/*
 * Close this server, which is free, if it has reached its age and may go now. Returns true if
 * it was closed. Fast while the server is young: called after each transaction.
 */
static inline bool lifetime_close_old(struct server_link *server)
{
	return loop_now(server->link.stream.loop) - server->link.connect_time >=
		server->link.pool->lifetime_least &&
		lifetime_close_if_over(server);
}

/* Work of the pool: launch a server in place of one that has reached its age, if one has. */
void lifetime_renew(struct pool *pool);

/*
 * A server that lifetime_renew() launched has logged in: the oldest one goes, now or when it is
 * free. May close a server, but not one that is paired.
 */
void lifetime_replace(struct pool *pool);

#endif
