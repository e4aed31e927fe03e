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
#include "wire/report.h"

/* What happened to a look-up that the server answers with an error. */
enum lookup_error {
	LOOKUP_ERROR_ENDS, /* that was the answer */
	LOOKUP_ERROR_BREAKS, /* the server is not to be trusted with another one */
};

/* What is peculiar to a kind of look-up. */
struct lookup_kind {
	const char *name; /* for the log */
	/* The subject is held, and let go of; NULL: it need not be. */
	const void *(*hold)(const void *subject);
	void (*let_go)(const void *subject);
	/*
	 * Append queries that have to come first; returns how many, each with a ReadyForQuery of
	 * its own.
	 */
	unsigned (*prepare)(struct server_link *server, struct buffer *out);
	/* One more of these has ended: lookup->preludes are left. False: no memory. */
	bool (*fit)(struct server_link *server);
	/*
	 * Append statements, each by lookup_write_statement(), without the Sync behind them;
	 * returns how many.
	 */
	unsigned (*ask)(const struct lookup *lookup, const struct server_link *server,
		struct buffer *out);
	/* How many columns the result of one has. */
	unsigned (*columns)(const struct lookup *lookup, unsigned statement);
	/* A row of that result. False: the server is none to be trusted. */
	bool (*take_row)(struct server_link *server, unsigned statement, const uint8_t *body,
		size_t length);
	/* The server says that it cannot be done. */
	enum lookup_error (*take_error)(
		struct server_link *server, const struct report *report);
	/* It has ended well: take the logins out one by one, and on with them. */
	void (*finish)(struct lookup *lookup);
	enum reason broken; /* why a server is closed that answers something else */
	/* What the logins are told then; REASON_COUNT: what became of the server. */
	enum reason failure;
};

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
	LOOKUP_GOES_ON,
	LOOKUP_ENDS, /* that was the last of it */
	LOOKUP_BREAKS, /* it is not what we asked for: close the server for that reason */
};

/* One message of the server, whole. */
enum lookup_progress lookup_answer(struct server_link *server, uint8_t type,
	const uint8_t *body, size_t length, enum reason *why);

/* The server has answered all: it is released, and the logins go on. */
void lookup_done(struct server_link *server);

/* The server of a look-up is closed: another one may do, else its logins fail. */
void lookup_server_gone(struct server_link *server, const struct failure *why);

/* The client of a login is closing. */
void lookup_client_gone(struct login *login);

/* No server will come for those who wait for one in this pool: close them. */
void lookup_refuse(struct pool *pool, const struct failure *why);

#endif
