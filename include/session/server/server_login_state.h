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

/* What the launcher of a server connection does at the steps of its login. */
struct server_login_owner {
	/* How the stream reports once the server has logged in. */
	const struct stream_handlers *session;
	/*
	 * The connection is up. Returns true if the owner has used it for something other than a
	 * login (or has closed it), so that no login begins.
	 */
	bool (*connected)(struct server_link *server);
	/* Append what the StartupMessage has besides the settings of the database. */
	void (*write_startup)(const struct server_link *server, struct buffer *message);
	/*
	 * The server has logged in and belongs to the owner. For a client of replication `head` is
	 * the beginning of a welcome with the server's parameters, which may be appended to; else
	 * it is NULL. The server may be closed by this.
	 */
	void (*ready)(struct server_link *server, struct buffer *head);
	/*
	 * A login of the pool has failed. told: the server itself refused it, or no secret for it is
	 * known, so a next attempt would fail too.
	 */
	void (*failed)(struct pool *pool, const struct failure *why, bool told);
};

struct server_login {
	const struct server_login_owner *owner;
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
struct server_link *server_login_new(struct pool *pool, const struct server_login_owner *owner);

/* Wipes it too. The server stays; it may have no login. */
void server_login_free(struct server_link *server);

/* Sends a message, and wipes it. False: it could not be made, or the stream is broken. */
bool server_login_send(struct server_link *server, struct buffer *message);

#endif
