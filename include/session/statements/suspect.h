/* SPDX-License-Identifier: ISC */
/*
 * A Bind or EXECUTE of a statement whose text may change the session: its server is to be asked behind the
 * transaction. The text was read once, when the statement was prepared first.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_SUSPECT_H
#define PGUSHER_SESSION_STATEMENTS_SUSPECT_H

#include "model/statement.h"
#include "session/relay/relay.h"

/* As suspect_bind(), for a statement with topics. Private. */
void suspect_bind_of(struct relay_run *run, const struct statement *statement, size_t offset);

/*
 * Note what the statement may change, and names of custom settings in its text and in the values,
 * which begin at this offset of the body of the Bind.
 */
static inline void suspect_bind(
	struct relay_run *run, const struct statement *statement, size_t offset)
{
	if (statement->topics)
		suspect_bind_of(run, statement, offset);
}

/*
 * Before a Bind of this statement, NULL: of one that is not known, in a database with functions that
 * may change the session: update its topics by the list of these.
 */
void suspect_bound(struct relay_run *run, struct statement *statement);

/*
 * As suspect_bind(), for an EXECUTE of the statement, with these arguments in SQL: of `length` bytes,
 * or up to a NUL.
 */
void suspect_execute(struct relay_run *run, struct statement *statement, const char *arguments,
	size_t length);

#endif
