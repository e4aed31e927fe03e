/* SPDX-License-Identifier: ISC */
/* The query that finds the functions of a database that may change the session, in its catalog. */
#ifndef PGUSHER_SESSION_STATE_FUNCTIONS_QUERY_H
#define PGUSHER_SESSION_STATE_FUNCTIONS_QUERY_H

#include "base/buffer.h"
#include "wire/watched_names.h"

/*
 * Letters of its rows, which have three columns: this, a name, and its topics (enum session_topic) in
 * decimal digits. All of it is ASCII.
 */
enum functions_letter {
	FUNCTIONS_PRINT =
		'F', /* the print of the catalog; if it is the known one, nothing follows */
	FUNCTIONS_NAME = 'N', /* as a word of a text */
	FUNCTIONS_PART = 'P', /* anywhere in a text */
	FUNCTIONS_SETTING = 'S', /* a custom setting that one of them sets */
	FUNCTIONS_EVERYTHING = 'E', /* something has no name that a text must have */
};

/* It returns so many names at most, which is one too many. */
enum { FUNCTIONS_ROWS_MAX = WATCHED_NAMES_MAX + 1 };

/*
 * Append the query, with a NUL, for a server of this major version (0: unknown). print: of the last
 * answer, or empty.
 *
 * All names are those of pg_catalog: its search_path, which ends with the query, hides the client's
 * own, temporary ones too.
 */
void functions_query_write(struct buffer *sql, int version, const char *print);

#endif
