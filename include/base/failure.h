/* SPDX-License-Identifier: ISC */
/*
 * Why a connection is refused or closed: the reason and its text.
 *
 * Every reason is a row of reasons.def with PgBouncer's text, which users and tools match on.
 * The function that detects a reason makes a failure on the stack; the failure is sent and
 * logged where the connection is closed, and is never stored.
 * model/statistics/reason_facts.h hands out what else a row says.
 */
#ifndef PGUSHER_BASE_FAILURE_H
#define PGUSHER_BASE_FAILURE_H

#include <stdbool.h>

#include "base/log.h"

enum reason {
#define REASON(name, text, sqlstate, level, ...) REASON_##name,
#include "base/reasons.def"
#undef REASON
	REASON_COUNT
};

enum { FAILURE_TEXT_SIZE = 128 };

struct failure {
	enum reason reason;
	char sqlstate[6]; /* "": no ErrorResponse is sent, the connection is only closed */
	char text[FAILURE_TEXT_SIZE]; /* cut at 127 bytes, between characters */
};

/*
 * Returns a failure with the row's text. Takes one more argument, a `const char *` that is not
 * NULL, exactly if the text has a %s. Bytes of a peer in the argument must have been escaped.
 */
struct failure failure_of(enum reason reason, ...);

/*
 * Returns a failure that passes on the error of a server: reason SERVER_ERROR. Each argument
 * may be NULL; a missing or malformed one is replaced by our own text or code.
 */
struct failure failure_from_server(const char *text, const char *sqlstate);

/* The row's text, including its %s. Constant; not owned by the caller. */
const char *reason_text(enum reason reason);

/* The row's SQLSTATE; "" for reasons that are not reported to a client. */
const char *reason_sqlstate(enum reason reason);

/* Level of the log line about the closed connection. */
enum log_level reason_level(enum reason reason);

/* Whether the text has a %s, so that failure_of() needs an argument. */
bool reason_has_argument(enum reason reason);

#endif
