/* SPDX-License-Identifier: ISC */
/*
 * Cancel requests of a pool that wait for a connection to their target's server: those that
 * clients have sent (CANCEL_WAITING, in pool.cancels) and those of our own for DRAINING servers.
 * session/work/cancel sends them.
 */
#ifndef PGUSHER_SESSION_POOL_CANCEL_QUEUE_H
#define PGUSHER_SESSION_POOL_CANCEL_QUEUE_H

#include "model/pool.h"

/*
 * Let a client wait for a connection to carry its request: to the target's server, or, without a
 * target, to the peer whose pool it is, with the key in client->key. The client is CANCEL_WAITING
 * then and is not read any more.
 */
void cancel_queue_add(
	struct client_link *client, struct pool *pool, struct server_link *target);

/* The target is released: close the clients whose requests for it have not been sent. */
void cancel_queue_drop(struct server_link *target);

/*
 * The client that has waited longest for a connection to the same address as `there`; any client
 * if `there` is NULL. NULL: none waits.
 */
struct client_link *cancel_queue_next_client(
	const struct pool *pool, const struct server_link *there);

/* The same of DRAINING servers that a request of our own has to cancel. */
struct server_link *cancel_queue_next_draining(
	const struct pool *pool, const struct server_link *there);

/* Of such a client and such a server, is it the client that has waited longer? Either may be NULL. */
bool cancel_queue_client_first(const struct client_link *client, const struct server_link *due);

/* The server to whose address the next connection has to go. NULL: no request waits. */
const struct server_link *cancel_queue_next_target(const struct pool *pool);

#endif
