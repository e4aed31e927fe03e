/* SPDX-License-Identifier: ISC */
/*
 * Asks a server what its session has of the topics that its client may have changed in a
 * transaction, behind the end of it. The answer counts: what was rolled back, or set by SET LOCAL,
 * is not in it.
 *
 * The client has its ReadyForQuery by then. If its next message comes before the answer, this
 * waits for it.
 *
 * A time limit that the client has set in the session (statement_timeout) must not end the query.
 * If the client is known to have one, or the query was ended by one, a short query before it begins
 * a transaction, returns the limits, and lifts them up to the end of that transaction.
 */
#ifndef PGUSHER_SESSION_STATE_QUESTION_H
#define PGUSHER_SESSION_STATE_QUESTION_H

#include "model/client_link.h"
#include "model/server_link.h"

/*
 * Ask a clean server, which is PAIRED no more with this client, for its suspected topics: the
 * server is ASKING, or both are CLOSED if nothing can be sent to it.
 */
void question_begin(struct server_link *server, struct client_link *client);

/* What the answer says of the server. */
enum question_result {
	QUESTION_FREE, /* nothing that belongs to its client is left, or is unknown */
	QUESTION_RESET, /* something is left that the client does not keep */
	QUESTION_HANDED, /* it only listens, and the listening server takes that: see notify/handoff */
	QUESTION_PINS, /* it stays with its client, which it is PAIRED with again */
	QUESTION_TOO_LARGE, /* the client has set more than a set of parameters can have */
	QUESTION_AGAIN, /* a time limit of the client has ended the query: it was sent again */
	/* It could not answer: it must be closed, and so is its client, which is still held. */
	QUESTION_FAILED,
};

/*
 * The query has ended: server and client have the settings of the answer. The client is no longer
 * held; the caller lets it go on.
 */
enum question_result question_done(struct server_link *server);

/*
 * The server is closed: its client is no longer held. Returns that client, which must be closed
 * because its settings are unknown, or NULL.
 */
struct client_link *question_server_closed(struct server_link *server);

#endif
