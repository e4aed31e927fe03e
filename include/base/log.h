/* SPDX-License-Identifier: ISC */
/*
 * The log: levels, what is written when, and the sinks it goes to (file, stderr or the journal,
 * syslog). How a line looks is base/log_line's.
 *
 * Nobody waits for a sink. One that would block, or fails, loses the line; lost lines are counted
 * and the sink is told how many once it takes lines again. SIGPIPE must be ignored or blocked.
 *
 * What peers or broken servers can bring about as often as they like goes through
 * log_write_repeated(): of lines alike only the first few of each second are written, and then one
 * that says how many more there were.
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
	LEVELS
};

/* What file and stderr get: lines as PgBouncer's, or a JSON object each. */
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* Room for the text of a line; longer ones are cut. */
enum { LOG_LINE_SIZE = 2048 };

struct log_options {
	const char *file; /* opened for append; NULL or "": no file */
	bool to_stderr; /* if that leads to the journal: there, with priorities */
	bool to_syslog;
	const char *
		syslog_ident; /* NULL or "": "pgbouncer", the name that configurations expect */
	const char
		*syslog_facility; /* "daemon", "local0", ...; NULL, "" or unknown: "daemon" */
	int verbose; /* 0: up to LOG, 1: DEBUG, 2: NOISE */
	enum log_format format;
	int repeats; /* most lines alike that are written in a second; 0: all */
};

/* A fact about an event, for those formats that have facts apart from the text. */
struct log_fact {
	const char *name; /* of lower-case letters and _ */
	const char *text; /* NULL: it is a number */
	long long number;
};

/* What an event is about: a connection's place in the log, and what is known about it. */
struct log_subject {
	const char *prefix; /* in front of the text, where there are no facts */
	const struct log_fact *facts;
	size_t count;
};

/* What lines have in common that are alike: the first two, compared as texts. */
struct log_likeness {
	const char *kind; /* of event */
	const char *who; /* whom it is about */
	int at_most; /* so many in a second will do; 0: as many as the options say */
};

/* Most talkative level that is written; change it with log_set_verbose(). */
extern enum log_level log_threshold;

/* Does any sink write facts? If not, nobody needs to collect them. */
extern bool log_has_facts;

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

/* The same about somebody; NULL: about nobody. */
void log_write_about(enum log_level level, const struct log_subject *subject,
	const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same, unless there have been enough lines alike in this second. */
void log_write_repeated(enum log_level level, const struct log_subject *subject,
	const struct log_likeness *likeness, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Say how many lines alike were left out in seconds that are over. To be called now and then. */
void log_tell_repeats(void);

/* Lines of this level since the start, those that were lost or left out included. */
uint64_t log_count(enum log_level level);

/* Lines lost since start, all sinks together: no sink had room for them. */
uint64_t log_lost(void);

/* Lines left out since start, since there were enough of their kind. */
uint64_t log_left_out(void);

/* "LOG" and so on, as lines have it. */
const char *log_level_name(enum log_level level);

/* Where syslog and the journal listen, for tests; NULL: the system's place. */
void log_set_syslog_path(const char *path);
void log_set_journal_path(const char *path);

#endif
