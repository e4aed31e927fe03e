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
 * Parse the body of an ErrorResponse or NoticeResponse. Returns false if it is malformed;
 * `*out` then has the fields before the fault.
 */
bool report_parse(const uint8_t *body, size_t length, struct report *out);

/* Parse the body of a ParameterStatus. Returns false and sets nothing if it is malformed. */
bool report_parse_parameter(
	const uint8_t *body, size_t length, const char **name, const char **value);

#endif
