/* SPDX-License-Identifier: ISC */
/*
 * A connection to a listener becomes a client, which has to log in.
 */
#ifndef PGUSHER_SESSION_LOGIN_CLIENT_ACCEPT_H
#define PGUSHER_SESSION_LOGIN_CLIENT_ACCEPT_H

#include "model/registry.h"

/*
 * Callback for listeners, with the registry as context: a connection was accepted. Takes over
 * the descriptor; it is closed when out of memory.
 */
void client_accept(
	void *context, int fd, const struct sockaddr *from, socklen_t length, bool is_unix);

/*
 * Callback for listeners, as above: is there a descriptor for one more connection? Clients that
 * have been silent in their login are closed to make room.
 */
bool client_accept_has_room(void *context);

#endif
