/* SPDX-License-Identifier: ISC */
/*
 * The state of a login at a server. Only server/server_login and the modules that do its parts
 * (server_greeting, server_authentication, server_welcome, server_failure) use it. A
 * server_link owns its server_login until it has logged in or is closed.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_LOGIN_STATE_H
#define PGUSHER_SESSION_SERVER_SERVER_LOGIN_STATE_H

#include "crypt/digest.h"
#include "crypt/scram.h"
#include "model/registry.h"
#include "net/tls.h"
#include "session/server/server_route.h"

/* What the launcher of a server connection does at the steps of its login. */
struct server_login_owner {
	/* The stream's handlers once the server has logged in. */
	const struct stream_handlers *session;
	/*
	 * The connection is established. Returns true if the owner has used it for something
	 * other than a login (or has closed it), so that no login begins.
	 */
	bool (*connected)(struct server_link *server);
	/*
	 * Append the owner's parameters to the StartupMessage, besides those of the database.
	 */
	void (*write_startup)(const struct server_link *server, struct buffer *message);
	/*
	 * The server has logged in and belongs to the owner. For a replication client `head` is
	 * the beginning of a welcome with the server's parameters, to which the owner may
	 * append; otherwise it is NULL. The owner may close the server.
	 */
	void (*ready)(struct server_link *server, struct buffer *head);
	/*
	 * A login of the pool has failed. refused: the server itself refused it, or no usable
	 * secret is known, so that another attempt would fail too.
	 */
	void (*failed)(struct pool *pool, const struct failure *why, bool refused);
};

struct derivation;

struct server_login {
	const struct server_login_owner *owner;
	struct server_route route; /* the host that it connects to */
	unsigned attempts; /* hosts that were given up after their answer */
	struct server_link *server; /* whose login it is */
	/* Of its socket, and of the other end, noted in own_connection; port 0: none. */
	struct address local, remote;
	TAILQ_ENTRY(server_login) in_own; /* in process.own_connections, if it is noted */
	uint8_t startup_digest[SHA256_SIZE]; /* digest of its StartupMessage; zeros: not sent */
	bool for_cancel; /* launched for a cancel request, perhaps beyond the pool's size */
	bool tls_requested; /* SSLRequest was sent and has not been answered yet */
	/* Authentication. */
	struct scram_client scram;
	uint8_t end_point[TLS_BINDING_MAX]; /* channel binding data of the SCRAM exchange */
	size_t end_point_length; /* 0: none */
	struct derivation *derivation; /* of the keys for its salt; NULL: none */
	bool scram_begun;
	bool scram_verified; /* the server has proved that it knows the secret too */
	bool asks_role; /* the server answers a question for its role, since it has not told it */
	bool authenticated; /* AuthenticationOk was received */
	/* What the server has reported. */
	/* ParameterStatus messages of untracked parameters, as received. */
	struct buffer untracked;
	size_t reported; /* bytes of all ParameterStatus messages so far */
	/* The cause of a failure. */
	bool wrong_secret; /* no secret of a kind that the server accepts is known */
	bool tls_failed; /* the connection was lost during a TLS handshake */
	bool refused; /* final: the server refused the login, or no usable secret is known */
};

/*
 * Make a server of the pool with a login that has not begun to connect. Returns NULL when out
 * of memory.
 */
struct server_link *server_login_new(struct pool *pool, const struct server_login_owner *owner);

/* Forget what the present host has said: the login begins anew, at another host. */
void server_login_reset(struct server_link *server);

/* Wipe and free the server's login, if it has one. The server stays. */
void server_login_free(struct server_link *server);

#endif
