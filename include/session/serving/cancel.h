/* SPDX-License-Identifier: ISC */
/*
 * Cancel requests: from the CancelRequest of a client to the server that runs the query.
 *
 * A request waits in the queue of its target's pool until a new connection to that server is
 * up, the cancel connection. It is sent there, and has ended when the server closes the
 * connection. Until then the target is not given to another client, so that no other query is
 * cancelled. Protocol: "Message Flow", Canceling Requests in Progress.
 */
#ifndef PGUSHER_SESSION_SERVING_CANCEL_H
#define PGUSHER_SESSION_SERVING_CANCEL_H

#include "model/registry.h"

/*
 * A client (GREETING) has sent a CancelRequest with this key; NULL: the length of its key is
 * invalid. The client waits in a cancel queue when this returns, or was closed. Other clients
 * may be closed.
 */
void cancel_request(struct client_link *client, const uint8_t *key, size_t length);

/*
 * A new connection of the pool is up. If a cancel request for the server at its address waits,
 * use the connection for it and return true; the connection may be closed then. Else return
 * false.
 */
bool cancel_use_connection(struct server_link *connection);

/* A client that was in this state is closed: withdraw its cancel request if it had one. */
void cancel_client_closed(struct client_link *client, enum client_state state);

/*
 * A server was closed: end the request if it was a cancel connection; drop all requests for it
 * if it was a target. Closes the clients of these requests, and may close other servers.
 */
void cancel_server_closed(struct server_link *server);

#endif
