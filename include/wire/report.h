/* SPDX-License-Identifier: ISC */
/*
 * Reads what a server says of itself: ErrorResponse, NoticeResponse and ParameterStatus.
 *
 * Servers are peers too: every field may be missing, and no text ends outside its message.
 * Protocol: "Error and Notice Message Fields".
 */
#ifndef PGUSHER_WIRE_REPORT_H
#define PGUSHER_WIRE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Texts point into the message; NULL: the server did not say. */
struct report {
	const char *severity; /* field S, perhaps translated */
	const char *sqlstate; /* field C, of any length */
	const char *text; /* field M */
	const char *routine; /* field R */
};

/* Is this its SQLSTATE? */
static inline bool report_is(const struct report *report, const char *sqlstate)
{
	return report->sqlstate && strcmp(report->sqlstate, sqlstate) == 0;
}

/* Is it of this kind, all of whose SQLSTATEs begin so? */
static inline bool report_is_of(const struct report *report, const char *front)
{
	return report->sqlstate && strncmp(report->sqlstate, front, strlen(front)) == 0;
}

/*
 * Read the body of an ErrorResponse or NoticeResponse. False: malformed; `*out` has the fields
 * found before the fault.
 */
bool report_parse(const uint8_t *body, size_t length, struct report *out);

/* Read the body of a ParameterStatus; false, and nothing set: malformed. */
bool report_parse_parameter(
	const uint8_t *body, size_t length, const char **name, const char **value);

#endif
