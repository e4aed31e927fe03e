/* SPDX-License-Identifier: ISC */
/*
 * How a line of the log looks, for each kind of reader: people and log analysers, programs that
 * read JSON, syslog, systemd's journal. Bytes in, bytes out; no sinks here.
 *
 * The text form is PgBouncer's, which log analysers read:
 *
 *	2026-11-21 03:05:28.678 UTC [8052] LOG text
 *
 * and in JSON the same line is
 *
 *	{"time":"2026-11-21T03:05:28.678Z","pid":8052,"level":"LOG","message":"text"}
 *
 * with the facts about whom the line is about in between, and without his prefix in the message.
 */
#ifndef PGUSHER_BASE_LOG_LINE_H
#define PGUSHER_BASE_LOG_LINE_H

#include <sys/types.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

/* Room for any line; no more than a pipe takes whole. */
enum { LOG_WHOLE_SIZE = 4096 };

/* One line on its way. */
struct log_line {
	enum log_level level;
	usec_t time; /* of the wall clock */
	pid_t pid;
	const struct log_subject *subject; /* NULL: nobody */
	const char *raw; /* what was said, as it came */
	const char *text; /* prefix and `raw`, made harmless by log_line_tidy() */
};

/*
 * Put the prefix and what was said together, so that no byte of it can pass for another line or
 * for a terminal's command: see log_write().
 */
void log_line_tidy(char out[LOG_LINE_SIZE], const struct log_subject *subject, const char *raw);

/*
 * The whole line for a sink into `out`; returns its length, never 0. What a text has too much is
 * cut, between characters.
 */
typedef size_t log_line_shape(const struct log_line *line, char out[LOG_WHOLE_SIZE]);

log_line_shape log_line_text; /* ends with a newline */
log_line_shape log_line_json; /* ends with a newline; UTF-8 whatever was said */

/* A datagram as syslog(3) sends it, after RFC 3164: priority, time, ident, process, text. */
size_t log_line_syslog(const struct log_line *line, int facility, const char *ident,
	const char *text, size_t length, char out[LOG_WHOLE_SIZE]);

/* A datagram of the journal's native protocol: facts are fields of their own, PGUSHER_NAME. */
size_t log_line_journal(
	const struct log_line *line, const char *ident, char out[LOG_WHOLE_SIZE]);

/* "LOG" and so on. */
const char *log_line_level(enum log_level level);

/* What all forms need: syslog's number for a level, the local time, its part below a second. */
int log_line_priority(enum log_level level);
const struct tm *log_line_local_time(usec_t time); /* the caller holds the log's lock */
int log_line_milliseconds(usec_t time);

/* Length of what was said without the white space, or the half character, at its end. */
size_t log_line_trimmed_length(const char *raw);

#endif
