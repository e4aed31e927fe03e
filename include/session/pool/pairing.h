/* SPDX-License-Identifier: ISC */
/*
 * Gives a server to a client: an idle one at once, else the client joins the queue of its pool.
 * Clients are served strictly in the order in which they began to wait; a new request never
 * overtakes the queue.
 */
#ifndef PGUSHER_SESSION_POOL_PAIRING_H
#define PGUSHER_SESSION_POOL_PAIRING_H

#include "model/registry.h"

enum pairing_result {
	PAIRING_READY, /* paired: pass the message on */
	PAIRING_WAITING, /* in the queue: hold the message */
	PAIRING_FULL, /* the queue is full (max_pool_waiters): end the query with an error */
	PAIRING_CLOSED, /* the client was closed with an error */
};

/*
 * Get a server for an IDLE client that has sent a whole message. query_wait_timeout limits how
 * long it waits.
 */
enum pairing_result pairing_take(struct client_link *client);

/*
 * Let an IDLE client, which holds its messages and is not read, wait for a server behind the
 * clients that wait already.
 */
void pairing_wait(struct client_link *client);

/*
 * Returns the next idle server of the pool that can be used, or NULL. Idle servers that cannot
 * be used are closed.
 */
struct server_link *pairing_next_idle(struct pool *pool);

/*
 * Pair an IDLE server with an IDLE or WAITING client. If their parameters differ, they are set
 * before the first message of the client (parameters/parameter_sync). Returns PAIRING_READY, or
 * PAIRING_CLOSED if the parameters cannot be set.
 */
enum pairing_result pairing_give(struct client_link *client, struct server_link *server);

/*
 * If no server of the pool is up and the last attempt to launch one failed, set `why` to the error
 * of that attempt, launch the next one if it is due, and return true: whatever needs a server is
 * to be refused. `replica`: it is a client that wants replication, which the server may accept.
 */
bool pairing_is_hopeless(struct pool *pool, bool replica, struct failure *why);

/*
 * They are a pair that is at rest: parameters that differ are set before the client's next message.
 * Returns false if the client was closed because this is impossible.
 */
bool pairing_sync(struct client_link *client, struct server_link *server);

#endif
