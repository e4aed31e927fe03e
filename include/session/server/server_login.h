/* SPDX-License-Identifier: ISC */
/*
 * A server connection from its launch to its first use, step by step: its way there
 * (session/server/server_route), encryption and start-up (server_greeting), authentication
 * (server_authentication), parameters (server_welcome), connect_query; and if it fails,
 * server_failure. Protocol: "Message Flow", Start-up.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_LOGIN_H
#define PGUSHER_SESSION_SERVER_SERVER_LOGIN_H

#include "model/registry.h"

struct server_login_owner;

/*
 * Start a connection for the pool; for_cancel: to the place of this server, because a cancel
 * request waits for it. False: it failed at once, which has been logged and remembered.
 */
bool server_login_begin(struct pool *pool, const struct server_link *for_cancel,
	const struct server_login_owner *owner);

/* Start one for this client of replication, in its pool. False: as above. */
bool server_login_begin_for(struct client_link *client, const struct server_login_owner *owner);

/*
 * A regular look at a login that goes on: one of several hosts that does not answer is given up for
 * the next in time, which may close the server.
 */
void server_login_hurry(struct server_link *server, usec_t now);

/* It has logged in, and its connect_query is done: to the pool with it. */
void server_login_done(struct server_link *server);

#endif
