/* SPDX-License-Identifier: ISC */
/*
 * Mistakes in a configuration, collected with their places while parsing continues; and which
 * files were read, whether they have mistakes or not.
 *
 * Nothing is printed or logged here: `--check` prints file, line and text; the daemon logs the
 * log lines, which have PgBouncer's texts. Texts never contain a password.
 */
#ifndef PGUSHER_CONFIG_PROBLEMS_H
#define PGUSHER_CONFIG_PROBLEMS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/file_list.h"

enum problem_severity {
	PROBLEM_ERROR, /* the configuration cannot be used */
	/* The configuration can be used without the skipped part; still a mistake. */
	PROBLEM_SKIPPED,
	PROBLEM_WARNING, /* the configuration can be used */
};

enum {
	/* Problems beyond this number are counted, but not kept. */
	PROBLEMS_KEPT = 1000,
	/* Log lines of one problem at most. */
	PROBLEM_LOG_LINES = 2,
};

struct problem {
	enum problem_severity severity;
	unsigned line; /* 0: the file as a whole */
	const char *file;
	const char *text; /* the mistake and what is allowed, without the place */
	const char *log[PROBLEM_LOG_LINES]; /* log lines, one per log call; NULL ends */
	bool reworded; /* log[0] was set by problems_log_as() */
};

/* Owned by the caller that reads a configuration; zeroed is empty. */
struct problems {
	struct problem *list; /* in the order found */
	size_t count, capacity;
	size_t errors, skipped, warnings; /* found, whether kept or not */
	bool last_kept; /* the last one added is in the list */
	struct file_list *files; /* borrowed: the files that are read; NULL: not wanted */
};

/*
 * Add a problem; texts are copied. It is logged as `TEXT (FILE:LINE)` unless problems_log_as()
 * is called. When out of memory it is only counted.
 */
void problems_add(struct problems *problems, enum problem_severity severity, const char *file,
	unsigned line, const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * Set the log line of the problem added last: the first call replaces it, the second adds one.
 */
void problems_log_as(struct problems *problems, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Number of errors found, whether kept or not. */
size_t problems_errors(const struct problems *problems);

/*
 * Iterate in order: returns the next problem, NULL at the end; start with NULL. Valid until a
 * problem is added.
 */
const struct problem *problems_next(
	const struct problems *problems, const struct problem *last);

/* Free all problems and leave the struct empty; the list of files is not freed. */
void problems_free(struct problems *problems);

#endif
