/* SPDX-License-Identifier: ISC */
/*
 * Recognizes clients that are server connections of this process itself: the host and port of a
 * database lead back to our own listener. Such a login would wait for the very pool that
 * waits for it, until a time limit.
 *
 * A server that logs in is noted with the address of its own socket, which is the address of the
 * client that we accept. A count by port makes the look-up for other clients one comparison. Not
 * recognized: a connection that a proxy has made anew in between.
 */
#ifndef PGUSHER_SESSION_SERVER_OWN_CONNECTION_H
#define PGUSHER_SESSION_SERVER_OWN_CONNECTION_H

#include "model/registry.h"

/*
 * The server, which has a login, is connected; `local` is the address of its socket. The login
 * forgets it: own_connection_forget().
 */
void own_connection_note(struct server_link *server, const struct address *local);

/* The server, which was noted, sends this StartupMessage next. */
void own_connection_note_startup(
	struct server_link *server, const void *message, size_t length);

/* The server's login has ended, or goes on with another host. Does nothing if it was not noted. */
void own_connection_forget(struct server_link *server);

/*
 * Returns whether the client, which is connected and has sent this StartupMessage, is one of our own server
 * connections. `database` (of that message; with room for `size` bytes) is replaced by the name of the
 * one whose host and port are wrong, if that is known.
 */
bool own_connection_is_client(const struct client_link *client, const void *message,
	size_t length, char *database, size_t size);

#endif
