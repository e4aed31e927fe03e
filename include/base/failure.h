/* SPDX-License-Identifier: ISC */
/*
 * Why a connection is refused or closed: the reason, and what is said about it.
 *
 * Every reason is a row of reasons.def, with PgBouncer's text, which people and tools match on.
 * Whoever knows a reason makes a failure on the stack; it is sent and logged where the
 * connection is closed and never kept.
 */
#ifndef PGUSHER_BASE_FAILURE_H
#define PGUSHER_BASE_FAILURE_H

#include <stdbool.h>

#include "base/log.h"

enum reason {
#define REASON(name, text, sqlstate, level, label) REASON_##name,
#include "base/reasons.def"
#undef REASON
	REASON_COUNT
};

enum { FAILURE_TEXT_SIZE = 128 };

struct failure {
	enum reason reason;
	char sqlstate[6]; /* "": the client is not told, it only sees the connection close */
	char text[FAILURE_TEXT_SIZE]; /* cut at 127 bytes, between characters */
};

/*
 * Fill in the row's text. One more argument, a `const char *` and not NULL, if and only if the
 * text has a %s; bytes of a peer in it must have been escaped.
 */
struct failure failure_of(enum reason reason, ...);

/*
 * A server's own error, to be passed on: reason SERVER_ERROR. Either may be NULL, what is
 * missing or malformed is replaced by ours.
 */
struct failure failure_from_server(const char *text, const char *sqlstate);

/* The row's text, with its %s. */
const char *reason_text(enum reason reason);

/* "" for reasons that no client is told. */
const char *reason_sqlstate(enum reason reason);

/* Level of the closing line. */
enum log_level reason_level(enum reason reason);

/*
 * Word that stands for the reason in metrics, from a closed set shared by all families; a
 * family that does not have the word counts it as "other".
 */
const char *reason_label(enum reason reason);

/* Does the text have a %s, so that failure_of() needs an argument? */
bool reason_has_argument(enum reason reason);

#endif
