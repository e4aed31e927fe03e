/* SPDX-License-Identifier: ISC */
/*
 * Keeps a bounded part of the statement that a client sends: its name, the beginning and the end of
 * its text or a reference to the prepared statement, and its parameters where they are logged.
 */
#ifndef PGUSHER_SESSION_SLOW_CAPTURED_TEXT_H
#define PGUSHER_SESSION_SLOW_CAPTURED_TEXT_H

#include "session/slow/query_watch.h"

/* A message of a client: Query, Parse, Bind or Describe; others are ignored. */
struct captured_message {
	uint8_t type;
	const uint8_t *body;
	size_t length; /* of what has arrived of the body */
	bool whole;
};

/* Note what the message tells, unless an earlier message of the query has told it. */
void captured_text_note(struct watched_query *query, const struct client_link *client,
	const struct captured_message *message);

/* Note what the messages of a client in these bytes tell, up to the first that tells the statement. */
void captured_text_find(struct watched_query *query, const struct client_link *client,
	const uint8_t *from, const uint8_t *until);

/* As captured_text_find(), up to the Bind at `bind`; note its parameters if they are logged. */
void captured_text_bind(struct watched_query *query, const struct client_link *client,
	const uint8_t *from, const uint8_t *bind, const uint8_t *until);

/*
 * Write the values of a Bind: `$1 = 'a', $2 = NULL, $3 = \x00ff`. Text is escaped, binary values are
 * hex digits, each is cut. `values` are the bytes behind the names; malformed ones end the list.
 */
void captured_text_parameters(char *out, size_t size, const uint8_t *values, size_t length);

#endif
