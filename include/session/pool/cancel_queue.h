/* SPDX-License-Identifier: ISC */
/*
 * Cancel requests of a pool that wait for a connection to the server of their target: requests
 * of clients (CANCEL_WAITING, in pool.cancels), and our own requests for DRAINING servers.
 * serving/cancel sends them.
 *
 * PostgreSQL drops a request that it receives before the query. So a request for a query that was
 * passed on just now, after a wait for the server, is held (client.held_until) for a moment.
 */
#ifndef PGUSHER_SESSION_POOL_CANCEL_QUEUE_H
#define PGUSHER_SESSION_POOL_CANCEL_QUEUE_H

#include "model/pool.h"

/*
 * Queue the cancel request of a client: for the server `target`, or, if target is NULL, for the
 * peer that the pool belongs to, with the key in client->key. The client is CANCEL_WAITING
 * afterwards, and nothing more is read from it.
 */
void cancel_queue_add(
	struct client_link *client, struct pool *pool, struct server_link *target);

/* Close the clients with queued requests for this server, which is no longer in use. */
void cancel_queue_drop(struct server_link *target);

/*
 * Returns the client that has waited longest, of those with a target at the address of `there`,
 * or of all if `there` is NULL; without those that are held. Returns NULL if none waits.
 */
struct client_link *cancel_queue_next_client(
	const struct pool *pool, const struct server_link *there);

/* The same for DRAINING servers that need a cancel request of our own. */
struct server_link *cancel_queue_next_draining(
	const struct pool *pool, const struct server_link *there);

/* Returns true if the client has waited longer than the DRAINING server. Either may be NULL. */
bool cancel_queue_client_first(const struct client_link *client, const struct server_link *due);

/* Returns whether a request may be sent now. */
bool cancel_queue_is_due(const struct pool *pool);

/* Returns the target of the request that has waited longest; NULL: no server has one. */
const struct server_link *cancel_queue_next_target(const struct pool *pool);

#endif
