/* SPDX-License-Identifier: ISC */
/*
 * Unnamed statements that are planned once for each server (cache_unnamed): a text that comes
 * repeatedly is prepared under our name, its Parse is answered in place, and Bind and Describe of the
 * unnamed statement get our name.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_CACHED_UNNAMED_H
#define PGUSHER_SESSION_STATEMENTS_CACHED_UNNAMED_H

#include "session/statements/prepare.h"

/* As cached_unnamed_parse(), with cache_unnamed or in a replay. Private. */
bool cached_unnamed_parse_it(
	struct relay_run *run, const char *content, size_t length, enum verdict *verdict);

/* As cached_unnamed_use(), with cache_unnamed. Private. */
bool cached_unnamed_use_it(struct relay_run *run, size_t values, enum verdict *verdict);

/*
 * A whole Parse of the unnamed statement with this content. Returns true, with the verdict, if it
 * is dealt with; the ring must have room.
 */
static inline bool cached_unnamed_parse(
	struct relay_run *run, const char *content, size_t length, enum verdict *verdict)
{
	return (prepare_settings(run)->cache_unnamed || run->answered > 0) &&
		cached_unnamed_parse_it(run, content, length, verdict);
}

/*
 * A Bind or Describe of the client's unnamed statement, which it has, and which the server's
 * unnamed statement is not. values: as in use_unnamed(). Returns true, with the verdict, if it uses
 * the statement under our name.
 */
static inline bool cached_unnamed_use(
	struct relay_run *run, size_t values, enum verdict *verdict)
{
	return prepare_settings(run)->cache_unnamed &&
		cached_unnamed_use_it(run, values, verdict);
}

#endif
