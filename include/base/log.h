/* SPDX-License-Identifier: ISC */
/*
 * The log: levels, rate limit, and the sinks that lines are written to (file, stderr or the
 * journal, syslog). base/log_line formats the lines.
 *
 * Writing never blocks, except where the kernel waits for the disk of a log file. If a sink
 * would block, or fails, the line is lost for that sink; lost lines are counted, and their
 * number is written to the sink once it accepts lines again. SIGPIPE and SIGXFSZ must be
 * ignored or blocked.
 *
 * Events that peers or broken servers can cause at any rate go through log_write_repeated():
 * of similar lines only the first few of each second are written, then one line with the
 * number of suppressed lines.
 *
 * The sinks belong to the process and are protected by a lock: any thread may log.
 */
#ifndef PGUSHER_BASE_LOG_H
#define PGUSHER_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
	LEVEL_FATAL, /* ends the process */
	LEVEL_ERROR, /* an operator must act */
	LEVEL_WARNING, /* an operator should act soon */
	LEVEL_LOG, /* an event of a connection or of the process */
	LEVEL_DEBUG, /* a decision; verbosity 1 */
	LEVEL_NOISE, /* a message; verbosity 2 */
	LEVELS
};

/*
 * Format of lines in the file and on stderr: text like PgBouncer's, or one JSON object per
 * line.
 */
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* Size of the text of a line with its NUL; longer texts are cut. */
enum { LOG_LINE_SIZE = 2048 };

struct log_options {
	const char *file; /* opened for append; NULL or "": no file */
	/* If stderr is connected to the journal: journal entries with priorities. */
	bool to_stderr;
	bool to_syslog;
	const char *syslog_ident; /* NULL or "": "pgbouncer", as syslog configurations expect */
	/* "daemon", "local0", ...; NULL, "" or unknown: "daemon" */
	const char *syslog_facility;
	int verbose; /* 0: up to LOG, 1: DEBUG, 2: NOISE */
	enum log_format format;
	int repeats; /* similar lines written per second at most; 0: no limit */
};

/* A fact about an event, for formats that have fields besides the text. */
struct log_fact {
	const char *name; /* lower-case letters and _ */
	const char *text; /* NULL: the fact is a number */
	long long number;
};

/*
 * What an event is about, such as a connection: its prefix in text lines, and its fields.
 * Texts are owned by the caller and not kept.
 */
struct log_subject {
	const char *prefix; /* written before the text, in formats without fields */
	const struct log_fact *facts;
	size_t count;
	/* Written behind the text, in formats without fields: what only facts say. NULL: none. */
	const char *details;
};

/* Lines are similar if `kind` and `about` are equal as texts. Both are copied where kept. */
struct log_likeness {
	const char *kind; /* kind of event */
	/* What the lines are about, such as a peer's address; "": nothing in particular. */
	const char *about;
	/* Own limit of lines per second, if lower than the configured one; 0: none. */
	int at_most;
};

/* Least severe level that is written; change it with log_set_verbose(). */
extern enum log_level log_threshold;

/* Whether any sink writes facts. If not, callers need not collect them. */
extern bool log_has_facts;

/*
 * Set all sinks; texts of the options are copied. Before the first call lines go to stderr. If
 * the file cannot be opened, logs that to the present sinks (FATAL at the first call, ERROR
 * later, since the process can go on), returns false and leaves the sinks unchanged.
 */
bool log_configure(const struct log_options *options);

/*
 * Open the file again, after a log rotation. If that fails, the old file stays in use and an
 * error is logged.
 */
void log_reopen(void);

/* Close file and syslog; stderr stays enabled or disabled as it is. */
void log_close(void);

void log_set_verbose(int verbose);

/* Whether lines of this level are written, so that it is worth making the text. */
static inline bool log_enabled(enum log_level level)
{
	return level <= log_threshold;
}

/*
 * Write one line, unless its level is disabled. A newline becomes newline and tab, trailing
 * white space is removed, control bytes other than tab are written as \xNN. errno is
 * preserved.
 */
void log_write(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Like log_write(), with a subject; NULL: none. */
void log_write_about(enum log_level level, const struct log_subject *subject,
	const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * Like log_write_about(), but the line is suppressed if there were enough similar lines in
 * this second. `likeness` may be NULL: never suppress.
 */
void log_write_repeated(enum log_level level, const struct log_subject *subject,
	const struct log_likeness *likeness, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Write the number of suppressed lines of seconds that are over. To be called periodically. */
void log_report_repeats(void);

/* Number of lines of this level since start, including lost and suppressed ones. */
uint64_t log_count(enum log_level level);

/* Number of lines lost since start, summed over all sinks. */
uint64_t log_lost(void);

/* Number of lines suppressed since start because there were enough similar ones. */
uint64_t log_left_out(void);

/* "LOG" and so on, as written in lines. */
const char *log_level_name(enum log_level level);

/*
 * Paths of the sockets of syslog and the journal, for tests; NULL restores the system's. Not
 * copied.
 */
void log_set_syslog_path(const char *path);
void log_set_journal_path(const char *path);

#endif
