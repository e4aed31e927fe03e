/* SPDX-License-Identifier: ISC */
/*
 * What is wrong with a configuration: every mistake with its place, collected while reading on.
 *
 * Nothing is printed or logged here: `--check` prints file, line and text, the daemon logs the
 * log lines, which keep PgBouncer's words. Texts never hold a password.
 */
#ifndef PGUSHER_CONFIG_PROBLEMS_H
#define PGUSHER_CONFIG_PROBLEMS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum problem_severity {
	PROBLEM_ERROR, /* the configuration cannot be used */
	PROBLEM_SKIPPED, /* it can, without what stands there: a mistake all the same */
	PROBLEM_WARNING, /* it can */
};

enum {
	/* More than these are counted, but not kept. */
	PROBLEMS_KEPT = 1000,
	/* Lines that one problem may put into the log. */
	PROBLEM_LOG_LINES = 2,
};

struct problem {
	enum problem_severity severity;
	unsigned line; /* 0: the file as a whole */
	const char *file;
	const char *text; /* what is wrong and what is allowed, without the place */
	const char *log[PROBLEM_LOG_LINES]; /* the same for the log, one call each; NULL ends */
	bool reworded; /* log[0] is not made from the text */
};

/* Owned by whoever reads a configuration; all zero is empty. */
struct problems {
	struct problem *list; /* in the order in which they were found */
	size_t count, capacity;
	size_t errors, skipped, warnings; /* found, kept or not */
	bool last_kept; /* the one added last is in the list */
};

/*
 * Add a problem; texts are copied. It is logged as `TEXT (FILE:LINE)` unless problems_log_as()
 * says otherwise. Without memory it is only counted.
 */
void problems_add(struct problems *problems, enum problem_severity severity, const char *file,
	unsigned line, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The problem added last is logged with this line: the first call replaces, the second adds. */
void problems_log_as(struct problems *problems, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* How many errors were found, kept or not. */
size_t problems_errors(const struct problems *problems);

/*
 * The next problem in order, NULL at the end; start with NULL. Lent until the next is added.
 */
const struct problem *problems_next(
	const struct problems *problems, const struct problem *last);

/* Free all of them and leave it empty. */
void problems_free(struct problems *problems);

#endif
