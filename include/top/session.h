/* SPDX-License-Identifier: ISC */
/*
 * The connection, the answers and the figures of them: what the screen and the snapshot share. They
 * poll its socket, and call it in turns.
 */
#ifndef PGUSHER_TOP_SESSION_H
#define PGUSHER_TOP_SESSION_H

#include "top/compose.h"
#include "top/top_options.h"

enum { SESSION_PLACE_SIZE = 256, SESSION_PASSWORD_SIZE = 1024 };

/* What a turn has come to. */
enum session_event {
	SESSION_NOTHING,
	SESSION_CHANGED, /* there is something new to show */
	SESSION_NEEDS_PASSWORD,
};

struct session {
	struct top_options *options;
	struct console_link link;
	struct feed feed;
	struct rates rates;
	struct holds holds;
	enum topic asked; /* the question under way */
	bool met; /* it was connected once */
	bool prompted; /* the operator has typed the password */
	char password[SESSION_PASSWORD_SIZE];
	char place[SESSION_PLACE_SIZE];
};

/* Begin; the first turn connects. The options outlive the session, which fills in the password. */
void session_begin(struct session *session, struct top_options *options, usec_t now);

/* Close the connection, free everything and wipe the password. */
void session_end(struct session *session);

/*
 * Go on, after a poll that said whether the socket is ready, or at `*deadline`, which becomes the
 * time of the next turn. Asks for the topics of the set that are due.
 */
enum session_event session_turn(
	struct session *session, unsigned wanted, bool ready, usec_t now, usec_t *deadline);

/* Ask the operator for the password, on a terminal that is in its normal state; false if not possible. */
bool session_prompt(struct session *session, usec_t now);

/* Say on stderr, in words that any terminal may get, why there is no connection. */
void session_complain(const struct session *session);

/* What pages are made of. Borrowed from the session. */
struct compose_source session_source(const struct session *session, usec_t now);

#endif
