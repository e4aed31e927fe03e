/* SPDX-License-Identifier: ISC */
/*
 * What a login of ours at a server remembers until it is over. For session/server/server_login and the
 * modules that do its parts (server_greeting, server_authentication, server_welcome,
 * server_failure), nobody else. A server_link owns its own until it has logged in or is closed.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_LOGIN_STATE_H
#define PGUSHER_SESSION_SERVER_SERVER_LOGIN_STATE_H

#include "crypt/scram.h"
#include "model/registry.h"
#include "net/tls.h"
#include "session/server/server_route.h"

struct server_login {
	struct server_route route; /* to which host it goes */
	bool for_cancel; /* launched for a cancel request, maybe beyond the pool's size */
	bool asked_for_tls; /* and the server has not answered yet */
	/* What it has been asked to prove, and what it has proved. */
	struct scram_client scram;
	uint8_t end_point[TLS_BINDING_MAX]; /* what the exchange is bound to, if it is */
	size_t end_point_length;
	bool scram_begun;
	bool scram_verified; /* the server has proved that it knows the secret too */
	bool authenticated; /* AuthenticationOk has come */
	/* What it has told. */
	struct buffer
		untracked; /* ParameterStatus messages of what is not tracked, as they came */
	size_t reported; /* bytes of all parameters so far */
	/* Why it fails, if it does. */
	bool wrong_secret; /* we have none that the server could accept */
	bool insecure; /* the connection was lost in the midst of a TLS handshake */
	bool told; /* the server, or our own lack of a secret, refused the login for good */
};

/* A server of the pool with a login that has not begun to connect; NULL: no memory. */
struct server_link *server_login_new(struct pool *pool);

/* Wipes it too. The server stays; it may have no login. */
void server_login_free(struct server_link *server);

/* Sends a message, and wipes it. False: it could not be made, or the stream is broken. */
bool server_login_send(struct server_link *server, struct buffer *message);

#endif
