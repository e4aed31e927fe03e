/* SPDX-License-Identifier: ISC */
/*
 * What a session may have beyond its transactions, in kinds that a server can be asked for: a set
 * of them is what a client may have changed, or what its server has of it.
 */
#ifndef PGUSHER_WIRE_SESSION_TOPICS_H
#define PGUSHER_WIRE_SESSION_TOPICS_H

#include <stdint.h>

enum session_topic {
	TOPIC_SETTINGS = 1 << 0, /* parameters, role, session authorization */
	TOPIC_TEMPORARY = 1 << 1, /* objects in the temporary schema */
	TOPIC_LOCKS = 1 << 2, /* advisory locks of the session */
	TOPIC_CURSORS = 1 << 3, /* cursors WITH HOLD */
	TOPIC_STATEMENTS = 1 << 4, /* statements that SQL has prepared */
	TOPIC_CHANNELS = 1 << 5, /* channels that it listens on */
	TOPIC_LIBRARY = 1 << 6, /* loaded libraries: no question finds them */
	TOPIC_UNREAD =
		1 << 7, /* settings of unknown names: they are reset after the question */
	/* Values that it has drawn from sequences (currval, lastval): no question finds them. */
	TOPIC_SEQUENCES = 1 << 8,
};

enum {
	TOPIC_BITS = 9,
	/* Those that a question is about. */
	TOPICS_ALL = 0xff & ~TOPIC_LIBRARY,
	/* What a statement may change of which nothing is known; its tag would tell of a LOAD. */
	TOPICS_UNSEEN = TOPICS_ALL | TOPIC_SEQUENCES,
	/* Those that cannot follow their client: its server stays with it. */
	TOPICS_PINNING = TOPIC_TEMPORARY | TOPIC_LOCKS | TOPIC_CURSORS | TOPIC_STATEMENTS |
		TOPIC_CHANNELS | TOPIC_LIBRARY | TOPIC_SEQUENCES,
};

/* A set of enum session_topic. */
typedef uint16_t session_topics;

#endif
