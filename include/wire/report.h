/* SPDX-License-Identifier: ISC */
/*
 * Parses reports from a server: ErrorResponse, NoticeResponse and ParameterStatus.
 *
 * Servers are not trusted: every field may be missing, and no text extends beyond its message.
 * Protocol: "Error and Notice Message Fields".
 */
#ifndef PGUSHER_WIRE_REPORT_H
#define PGUSHER_WIRE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Texts point into the message; NULL: the field is missing. */
struct report {
	const char *severity; /* field S, may be translated */
	const char *sqlstate; /* field C, of any length */
	const char *text; /* field M */
	const char *routine; /* field R */
};

/* Whether the report has this SQLSTATE. */
static inline bool report_is(const struct report *report, const char *sqlstate)
{
	return report->sqlstate && strcmp(report->sqlstate, sqlstate) == 0;
}

/* Whether the report's SQLSTATE starts with `front`. */
static inline bool report_is_of(const struct report *report, const char *front)
{
	return report->sqlstate && strncmp(report->sqlstate, front, strlen(front)) == 0;
}

/*
 * Whether a time limit of the session may have caused the error: statement_timeout (as a cancel
 * request), lock_timeout, transaction_timeout.
 */
static inline bool report_is_time_limit(const struct report *report)
{
	return report_is(report, "57014") || report_is(report, "55P03") ||
		report_is(report, "25P04");
}

/*
 * Whether the session ends with this error: an operator has intervened, or it was in a
 * transaction for longer than transaction_timeout.
 */
static inline bool report_ends_session(const struct report *report)
{
	return report_is_of(report, "57P") || report_is(report, "25P04");
}

/*
 * Parse the body of an ErrorResponse or NoticeResponse. Returns false if it is malformed;
 * `*out` then has the fields before the fault.
 */
bool report_parse(const uint8_t *body, size_t length, struct report *out);

/* Parse the body of a ParameterStatus. Returns false and sets nothing if it is malformed. */
bool report_parse_parameter(
	const uint8_t *body, size_t length, const char **name, const char **value);

#endif
