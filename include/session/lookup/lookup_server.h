/* SPDX-License-Identifier: ISC */
/*
 * Runs a look-up on a server, by the extended protocol.
 *
 * Queries that have to run first are sent in the same write. The server must answer exactly as
 * expected; after any other message it is closed. If it had not begun to answer the look-up,
 * another server may run the look-up again. Protocol: "Message Flow", Extended Query.
 */
#ifndef PGUSHER_SESSION_LOOKUP_LOOKUP_SERVER_H
#define PGUSHER_SESSION_LOOKUP_LOOKUP_SERVER_H

#include "session/pool/lookup.h"

/*
 * Append Parse, Bind, Describe and Execute of this statement, unnamed, with `count` parameters.
 * All values are in text format.
 */
void lookup_write_statement(
	struct buffer *out, const char *sql, const char *const *values, unsigned count);

/* Log that the answer of the server is invalid, and why. Returns false. */
bool lookup_reject(const struct server_link *server, const char *what);

/*
 * Make the asker wait for a look-up in the pool, which starts at the end of the turn at the
 * earliest. `replica`: it asks for a client that wants replication. Returns false and sets `why` if
 * it is refused.
 */
bool lookup_ask(struct asker *asker, struct pool *pool, const struct lookup_question *question,
	bool replica, struct failure *why);

/*
 * Run the look-up that lookup_next() has returned on this IDLE server, which may be closed when
 * this returns.
 */
void lookup_run(struct lookup *lookup, struct server_link *server);

enum lookup_progress {
	LOOKUP_CONTINUES, /* the answer has more messages */
	LOOKUP_IS_DONE, /* the answer is complete: call lookup_done() */
	LOOKUP_FAILED, /* close the server for the reason *why */
};

/* Judge a whole message of a LOOKING_UP server. */
enum lookup_progress lookup_answer(struct server_link *server, uint8_t type,
	const uint8_t *body, size_t length, enum reason *why);

/*
 * The server has answered the look-up: return it to its pool, and tell the askers. The server
 * and clients may be closed when this returns.
 */
void lookup_done(struct server_link *server);

/*
 * A server was closed for this reason. If it was running a look-up, queue the look-up again if
 * another server may succeed, else it has failed for its askers.
 */
void lookup_server_closed(struct server_link *server, const struct failure *why);

/* The asker does not wait any more. Closes the server of a look-up without other askers. */
void lookup_leave(struct asker *asker);

/* All look-ups that wait for a server of this pool have failed. */
void lookup_refuse(struct pool *pool, const struct failure *why);

#endif
