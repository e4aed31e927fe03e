/* SPDX-License-Identifier: ISC */
/*
 * Reads the grammar of pgbouncer.ini: sections, `key = value` lines, comments, %include.
 *
 * It knows no section and no key: whoever calls is told of each in the order of the file, with
 * its place, and judges them. A line that does not fit the grammar is a problem and is skipped,
 * so that one reading finds all mistakes.
 *
 * Keys are bare words of letters, digits and `_.-*`, or anything in single quotes. Values are
 * taken as they are up to the end of the line, white space trimmed, no quoting, no comments
 * behind them. What stands behind a `]` is read as a line of its own.
 *
 * A section goes on into an included file and out of it. %include of a folder reads its *.ini
 * files in byte order of their names; each begins in the section of the including line, and so
 * does what follows that line.
 */
#ifndef PGUSHER_CONFIG_INI_H
#define PGUSHER_CONFIG_INI_H

#include <stdbool.h>
#include <stddef.h>

#include "config/problems.h"

enum {
	/* %include below the main file may be nested this deep. */
	INI_NESTING_LIMIT = 10,
	/* Bytes of one file. */
	INI_FILE_LIMIT = 16 * 1024 * 1024,
};

/* Where in the files something stands; lent for the duration of a call. */
struct ini_place {
	const char *file;
	unsigned line; /* from 1 */
};

/* Texts are lent for the duration of the call. */
struct ini_events {
	/* What it returns is handed to pair() for as long as that section goes on. */
	const void *(*section)(void *context, const struct ini_place *place, const char *name);
	void (*pair)(void *context, const void *section, const struct ini_place *place,
		const char *key, const char *value);
};

/*
 * Read a file with all that it includes; relative names are taken from the working directory.
 * False, with a problem, when there is no such file.
 */
bool ini_read(const char *path, const struct ini_events *events, void *context,
	struct problems *problems);

/* The same for a text that is in memory already, here called `name`. */
void ini_read_text(const char *name, const char *text, size_t length,
	const struct ini_events *events, void *context, struct problems *problems);

#endif
