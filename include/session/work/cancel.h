/* SPDX-License-Identifier: ISC */
/*
 * Cancel requests: from the key that a client shows to the server that runs its query.
 *
 * A request is queued in the pool of its target until a connection to that server is up, is then
 * sent on it, and ends when the server closes that connection. A target that is released
 * meanwhile is held back until then, so that nobody else's query is hit.
 * Protocol: "Message Flow", Canceling Requests in Progress.
 */
#ifndef PGUSHER_SESSION_WORK_CANCEL_H
#define PGUSHER_SESSION_WORK_CANCEL_H

#include "model/registry.h"

/* A client (GREETING) has sent a CancelRequest. NULL: with a key of an impossible length. */
void cancel_request(struct client_link *client, const uint8_t *key, size_t length);

/*
 * Let a client wait for a connection to carry its request: to the target's server, or, without a
 * target, to the peer whose pool it is, with the key in client->key.
 */
void cancel_queue(struct client_link *client, struct pool *pool, struct server_link *target);

/*
 * A new connection of the pool is up. If a request waits for that very server it is used for
 * it and true is returned.
 */
bool cancel_use_connection(struct server_link *carrier);

/* Where the next connection for a cancel request has to go; NULL: none waits. */
const struct server_link *cancel_next_target(const struct pool *pool);

/* The server is released: requests that were not sent yet have come too late. */
void cancel_forget_queued(struct server_link *target);

/* A client that had asked is closing. */
void cancel_asker_gone(struct client_link *client);

/* A server is closing: as a carrier (the request has ended) or as a target. */
void cancel_server_gone(struct server_link *server);

#endif
