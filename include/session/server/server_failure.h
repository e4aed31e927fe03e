/* SPDX-License-Identifier: ISC */
/*
 * What it means that a login of ours at a server has failed: for whom, for how long, and under which
 * name it is counted.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_FAILURE_H
#define PGUSHER_SESSION_SERVER_SERVER_FAILURE_H

#include "model/registry.h"

/* The body of an ErrorResponse to our login. Closes the server. */
void server_failure_hear(struct server_link *server, const uint8_t *body, size_t length);

/*
 * A server that was in this state is closed: free its login, and if that has failed, count it and
 * tell its owner. client: the client of replication that waits for this login and is closed if the
 * failure concerns only it; NULL: none.
 */
void server_failure_settle(struct server_link *server, enum server_state state,
	const struct failure *why, struct client_link *client);

#endif
