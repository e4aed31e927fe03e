/* SPDX-License-Identifier: ISC */
/*
 * Prepared statements in transaction and statement mode: a client's names for them have the
 * same meaning on every server that it is paired with.
 *
 * A statement is prepared on a server when it is first needed there, under a name of pgusher's,
 * which replaces the client's name in its messages. A Parse of a statement that the server has
 * already, and every Close, is answered by pgusher, in the order of the requests. Each client
 * has its own unnamed statement: it is prepared again on a server where another client has
 * replaced it. Protocol: "Message Flow", Extended Query and Pipelining.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_STATEMENTS_H
#define PGUSHER_SESSION_STATEMENTS_STATEMENTS_H

#include "session/relay/relay.h"

/* ---- Judges of messages of a paired client ---------------------------------------------- */

enum verdict statements_judge_parse(struct relay_run *run);
/* Returns the client's statement that this Bind is of; NULL: none is known. */
struct statement *statements_find_bound(const struct relay_run *run);

enum verdict statements_judge_bind(struct relay_run *run);
enum verdict statements_judge_close(struct relay_run *run);

/* A Describe of a statement. */
enum verdict statements_judge_describe(struct relay_run *run);

/* An Execute of a client with a DEALLOCATE as its unnamed statement. */
enum verdict statements_judge_execute(struct relay_run *run);

/* Returns whether a Describe or Close is about a portal: portals are not tracked. */
static inline bool statements_is_about_portal(const struct relay_run *run)
{
	return run->frame.total > FRAME_HEADER_SIZE && run->end > run->at + FRAME_HEADER_SIZE &&
		run->at[FRAME_HEADER_SIZE] != 'S';
}

/* A Query: it drops the unnamed statement, and may be a DEALLOCATE. */
enum verdict statements_judge_query(struct relay_run *run);

/* ---- Judge of messages of a client without a server ------------------------------------- */

/*
 * A Close. If it is of a tracked statement it is answered, and needs no server. Returns
 * RELAY_PASS if it is not.
 */
enum verdict statements_judge_idle_close(struct relay_run *run);

#endif
