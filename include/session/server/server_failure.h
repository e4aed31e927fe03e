/* SPDX-License-Identifier: ISC */
/*
 * A failed login at a server: which clients it concerns, whether it is final, and under which
 * outcome metrics count it.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_FAILURE_H
#define PGUSHER_SESSION_SERVER_SERVER_FAILURE_H

#include "model/registry.h"

/*
 * Whether PostgreSQL has refused the login since it is starting, recovering or shutting down (57P01 to
 * 57P03, class 57 of its Appendix A): one like it, or the next host, accepts logins soon.
 */
bool server_failure_is_of_restart(const struct failure *why);

/*
 * The server has answered the login with an ErrorResponse, of which this is the body: log it,
 * and close the server.
 */
void server_failure_receive_error(
	struct server_link *server, const uint8_t *body, size_t length);

/*
 * A server has been closed while it was in `state`: free its login. If the login has failed,
 * count the failure and report it to the login's owner. client: the replication client that
 * waits for this login, or NULL; it is closed if the failure concerns only this client.
 */
void server_failure_finish(struct server_link *server, enum server_state state,
	const struct failure *why, struct client_link *client);

#endif
