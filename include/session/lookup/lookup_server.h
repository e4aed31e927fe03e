/* SPDX-License-Identifier: ISC */
/*
 * How a look-up is asked on a server: by the extended protocol, strictly.
 *
 * What a server has to be told before the question proper goes out in the same write. Exactly the
 * answer that was asked for is taken; with anything else the server is closed, and if it has not
 * said a word of the answer yet another one is asked. Protocol: "Message Flow", Extended Query.
 */
#ifndef PGUSHER_SESSION_LOOKUP_LOOKUP_SERVER_H
#define PGUSHER_SESSION_LOOKUP_LOOKUP_SERVER_H

#include "session/pool/lookup.h"

/* Parse, Bind, Describe, Execute: the unnamed statement and portal, everything as text. */
void lookup_write_statement(
	struct buffer *out, const char *sql, const char *const *values, unsigned count);

/* Log that the server's answer is none that was asked for. Returns false. */
bool lookup_reject(const struct server_link *server, const char *what);

/*
 * Have the login of an AUTHENTICATING or WELCOMING client wait for this look-up in that pool: it is
 * LOOKING_UP now, and the kind goes on with it or it is closed; or it was closed at once.
 */
void lookup_begin(struct client_link *client, struct pool *pool, const struct lookup_kind *kind,
	const void *subject, const char *user);

/* An idle server runs the look-up whose turn it is. It may be closed by this. */
void lookup_run(struct lookup *lookup, struct server_link *server);

enum lookup_progress {
	LOOKUP_CONTINUES,
	LOOKUP_IS_DONE, /* that was the last of it */
	LOOKUP_FAILED, /* it is not what we asked for: close the server for that reason */
};

/* One message of the server, whole. */
enum lookup_progress lookup_answer(struct server_link *server, uint8_t type,
	const uint8_t *body, size_t length, enum reason *why);

/* The server has answered all: it is released, and the logins go on. */
void lookup_done(struct server_link *server);

/* The server of a look-up is closed: another one may do, else its logins fail. */
void lookup_server_closed(struct server_link *server, const struct failure *why);

/* The client of a login is closing. */
void lookup_client_closed(struct login *login);

/* No server will come for those who wait for one in this pool: close them. */
void lookup_refuse(struct pool *pool, const struct failure *why);

#endif
