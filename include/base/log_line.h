/* SPDX-License-Identifier: ISC */
/*
 * Formats a log line for each kind of reader: people and log analysers, JSON, syslog, the
 * systemd journal. Pure functions; sinks are in base/log_sinks.
 *
 * The text form is PgBouncer's, which log analysers read:
 *
 *	2026-11-21 03:05:28.678 UTC [8052] LOG text
 *
 * In JSON the same line is
 *
 *	{"time":"2026-11-21T03:05:28.678Z","pid":8052,"level":"LOG","message":"text"}
 *
 * with the subject's facts before "message", and without the subject's prefix in the message.
 */
#ifndef PGUSHER_BASE_LOG_LINE_H
#define PGUSHER_BASE_LOG_LINE_H

#include <sys/types.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

/* Size of any formatted line; no more than PIPE_BUF, so that a pipe takes it in one piece. */
enum { LOG_WHOLE_SIZE = 4096 };

/* A log line before formatting. All pointers are borrowed. */
struct log_line {
	enum log_level level;
	usec_t time; /* wall clock */
	pid_t pid;
	const struct log_subject *subject; /* NULL: none */
	const char *raw; /* the message as passed by the caller */
	const char *text; /* prefix and `raw`, escaped by log_line_tidy() */
};

/*
 * Join the prefix and the message into `out`, escaped so that no byte can start another line
 * or a terminal command: see log_write().
 */
void log_line_tidy(char out[LOG_LINE_SIZE], const struct log_subject *subject, const char *raw);

/*
 * Format a whole line for a sink into `out`. Returns its length, never 0. Too long a text is
 * cut, between characters.
 */
typedef size_t log_line_shape(const struct log_line *line, char out[LOG_WHOLE_SIZE]);

log_line_shape log_line_text; /* ends with a newline */
log_line_shape log_line_json; /* ends with a newline; always valid UTF-8 */

/*
 * Format a datagram as syslog(3) sends it, after RFC 3164: priority, time, ident, process,
 * text. Returns its length.
 */
size_t log_line_syslog(const struct log_line *line, int facility, const char *ident,
	const char *text, size_t length, char out[LOG_WHOLE_SIZE]);

/*
 * Format a datagram of the journal's native protocol; each fact is a field PGUSHER_NAME.
 * Returns its length.
 */
size_t log_line_journal(
	const struct log_line *line, const char *ident, char out[LOG_WHOLE_SIZE]);

/* "LOG" and so on. */
const char *log_line_level(enum log_level level);

/* Shared by the formats: syslog's number of a level, local time, milliseconds of a time. */
int log_line_priority(enum log_level level);
/* Static memory; the caller holds the log's lock. */
const struct tm *log_line_local_time(usec_t time);
int log_line_milliseconds(usec_t time);

/* Length of a message without trailing white space or an incomplete last character. */
size_t log_line_trimmed_length(const char *raw);

#endif
