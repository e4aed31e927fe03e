/* SPDX-License-Identifier: ISC */
/*
 * Which statements may leave something in the session, by the words of their texts and by their
 * tags. A suspicion costs a question to the server (session/state/question), never a wrong answer;
 * what a text can hide from it is found by its tag, and the reverse.
 */
#ifndef PGUSHER_WIRE_SUSPICION_H
#define PGUSHER_WIRE_SUSPICION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/session_topics.h"
#include "wire/suspicion_signs.h"

/* At most so many bytes of a text are read; what is behind them counts as suspicious. */
enum { SUSPICION_TEXT_MAX = 64 * 1024 };

/*
 * What is done with the name of a setting that a text sets: it begins somewhere behind white space
 * and quotes in these bytes, and ends before them. Returns false if it cannot be noted.
 */
struct suspicion_names {
	bool (*note)(void *argument, const char *text, size_t length);
	void *argument;
};

/*
 * Returns the topics that the words of a text raise; cut: its end is missing. It ends at its first
 * NUL. names: NULL if they are not wanted.
 */
session_topics suspicion_of_text(
	const char *text, size_t length, bool cut, const struct suspicion_names *names);

/*
 * Returns the topics for which a statement with this text would keep its server with the client:
 * CREATE TEMP, pg_advisory_lock(), WITH HOLD, LISTEN, LOAD, PREPARE, ... What functions do is not in
 * it.
 */
session_topics suspicion_of_staying(const char *text, size_t length);

/*
 * Returns the topics that a FunctionCall of the function with this OID raises: none for the
 * functions of large objects, which drivers call so.
 */
session_topics suspicion_of_function(uint32_t oid);

/*
 * The tags of suspicion_of_tag(): SET, RESET, DO, CALL, LOAD, LISTEN, UNLISTEN, PREPARE, DEALLOCATE,
 * DISCARD, DECLARE, CLOSE, CREATE, DROP, by a hash of their first and third letters.
 */
#define SUSPICION_TAGS 0xa207a8b0

/*
 * Whether a tag with this beginning (of at least 3 bytes, its NUL included) may be one of those of
 * suspicion_of_tag(). Almost none of the others may.
 */
static inline bool suspicion_may_be_tag(const uint8_t *tag)
{
	return SUSPICION_TAGS >> ((tag[0] + 3u * tag[2]) & 31) & 1;
}

/*
 * Returns the topics that a command with this tag raises. pinned: those for which its server is
 * pinned, which DROP, CLOSE and others may end.
 */
session_topics suspicion_of_tag(const char *tag, session_topics pinned);

#endif
