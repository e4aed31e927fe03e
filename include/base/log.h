/* SPDX-License-Identifier: ISC */
/*
 * The log: levels, the shape of a line, and the sinks it goes to (file, stderr, syslog).
 *
 * The line shape is PgBouncer's, which log analysers read:
 *
 *	2026-11-21 03:05:28.678 UTC [8052] LOG text
 *
 * Nobody waits for a sink. One that would block, or fails, loses the line; lost lines are
 *counted and the sink is told how many once it takes lines again. SIGPIPE must be ignored or
 *blocked.
 *
 * The sinks belong to the process and are locked: any thread may log.
 */
#ifndef PGUSHER_BASE_LOG_H
#define PGUSHER_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
	LEVEL_FATAL, /* ends the process */
	LEVEL_ERROR, /* needs a person */
	LEVEL_WARNING, /* soon needs one */
	LEVEL_LOG, /* an event in the life of a connection or of the process */
	LEVEL_DEBUG, /* a decision; verbosity 1 */
	LEVEL_NOISE, /* a message; verbosity 2 */
};

/* Room for the text of a line; longer ones are cut. */
enum { LOG_LINE_SIZE = 2048 };

struct log_options {
	const char *file; /* opened for append; NULL or "": no file */
	bool to_stderr;
	bool to_syslog;
	const char *
		syslog_ident; /* NULL or "": "pgbouncer", the name that configurations expect */
	const char
		*syslog_facility; /* "daemon", "local0", ...; NULL, "" or unknown: "daemon" */
	int verbose; /* 0: up to LOG, 1: DEBUG, 2: NOISE */
};

/* Most talkative level that is written; change it with log_set_verbose(). */
extern enum log_level log_threshold;

/*
 * Set all sinks; texts are copied. Until the first call lines go to stderr.
 * False, and the sinks stay as they were, when the file cannot be opened; that is then logged
 * to them: FATAL at the first call, ERROR later, when it can be lived with.
 */
bool log_configure(const struct log_options *options);

/* Open the file anew, after a rotation. When that fails the old one is kept, which is logged.
 */
void log_reopen(void);

/* Close file and syslog; whether lines go to stderr stays as it is. */
void log_close(void);

void log_set_verbose(int verbose);

/* Is it worth making up a text for this level? */
static inline bool log_enabled(enum log_level level)
{
	return level <= log_threshold;
}

/*
 * Write one line, unless its level is disabled. A newline becomes newline and tab, trailing
 * white space is cut, control bytes other than tab are written as \xNN. errno is left alone.
 */
void log_write(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void log_writev(enum log_level level, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/* Lines lost since start, all sinks together. */
uint64_t log_lost(void);

/* "LOG" and so on, as lines have it. */
const char *log_level_name(enum log_level level);

/* Where syslog listens, for tests; NULL: the system's place. Call it before log_configure(). */
void log_set_syslog_path(const char *path);

#endif
