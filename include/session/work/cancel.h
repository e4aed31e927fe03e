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
 * A new connection of the pool is up. If a request waits for that very server it is used for
 * it and true is returned.
 */
bool cancel_use_connection(struct server_link *carrier);

/* A client that was in this state is closed: withdraw its cancel request if it had one. */
void cancel_client_closed(struct client_link *client, enum client_state state);

/* A server is closed: as a carrier (the request has ended) or as a target. */
void cancel_server_closed(struct server_link *server);

#endif
