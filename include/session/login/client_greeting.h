/* SPDX-License-Identifier: ISC */
/*
 * The bytes of a client from accept() until it is logged in: requests for encryption, TLS,
 * cancel requests, and the messages of its login, which login/client_login handles.
 *
 * The client is not authenticated yet, so the size of its messages, its time and the number of
 * such clients are limited.
 */
#ifndef PGUSHER_SESSION_LOGIN_CLIENT_GREETING_H
#define PGUSHER_SESSION_LOGIN_CLIENT_GREETING_H

#include "model/registry.h"

/* Handlers of the stream of a client that has not logged in. */
extern const struct stream_handlers client_greeting_handlers;

/*
 * Callback for listeners, with the registry as context: a connection was accepted. Takes over
 * the descriptor; it is closed when out of memory.
 */
void client_greeting_accept(
	void *context, int fd, const struct sockaddr *from, socklen_t length, bool is_unix);

/*
 * Callback for listeners, as above: is there a descriptor for one more connection? Clients that
 * have been silent in their login are closed to make room.
 */
bool client_greeting_has_room(void *context);

/*
 * A client was not read from while its user or its parameters were looked up: handle what it
 * has sent before, and read from it again. May close the client.
 */
void client_greeting_resume(struct client_link *client);

#endif
