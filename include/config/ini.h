/* SPDX-License-Identifier: ISC */
/*
 * Parser for the grammar of pgbouncer.ini: sections, `key = value` lines, comments, %include.
 *
 * It does not know sections or keys: it reports each to the caller's callbacks in file order,
 * with its place. A line that does not fit the grammar is added to the problems and skipped,
 * so that one pass finds all mistakes.
 *
 * Keys are bare words of letters, digits and `_.-*`, or anything in single quotes. Values are
 * taken verbatim up to the end of the line with white space trimmed; there is no quoting. Whether
 * a comment may be behind a value depends on the key, so it is the caller's business. Text after a `]` is parsed as a line of its own.
 *
 * A section continues into an included file and after it. %include of a directory reads its
 * *.ini files in byte order of their names; each starts in the section of the including line,
 * as do the lines after that line.
 */
#ifndef PGUSHER_CONFIG_INI_H
#define PGUSHER_CONFIG_INI_H

#include <stdbool.h>
#include <stddef.h>

#include "config/problems.h"

enum {
	/* Levels of %include below the main file. */
	INI_NESTING_LIMIT = 10,
	/* Size limit of one file, in bytes. */
	INI_FILE_LIMIT = 16 * 1024 * 1024,
};

/* A place in the files; valid during a callback. */
struct ini_place {
	const char *file;
	unsigned line; /* from 1 */
};

/* Callbacks of the parser. Texts are valid during the call. */
struct ini_events {
	/*
	 * A section starts. The returned pointer is passed to pair() for the pairs of the
	 * section.
	 */
	const void *(*section)(void *context, const struct ini_place *place, const char *name);
	void (*pair)(void *context, const void *section, const struct ini_place *place,
		const char *key, const char *value);
};

/*
 * Read a file and the files that it includes; relative names start at the working directory.
 * Returns false, and adds a problem, if the file cannot be read.
 */
bool ini_read(const char *path, const struct ini_events *events, void *context,
	struct problems *problems);

/* Like ini_read(), for a text in memory; `name` is used in problems. */
void ini_read_text(const char *name, const char *text, size_t length,
	const struct ini_events *events, void *context, struct problems *problems);

#endif
