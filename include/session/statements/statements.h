/* SPDX-License-Identifier: ISC */
/*
 * Prepared statements in transaction and statement mode: a client's names for them mean the same
 * on whatever server it is given.
 *
 * A statement is prepared on a server when it is first needed there, under a name of ours; what
 * the client says is given that name on its way. A Parse of what the server has already, and every
 * Close, is answered by us, in its turn. The unnamed statement is its client's as well: it is
 * prepared again where another client has taken its place.
 * Protocol: "Message Flow", Extended Query and Pipelining.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_STATEMENTS_H
#define PGUSHER_SESSION_STATEMENTS_STATEMENTS_H

#include "session/relay/relay.h"

/* ---- Messages of a paired client: judges ------------------------------------------------ */

enum verdict statements_judge_parse(struct relay_run *run);
enum verdict statements_judge_bind(struct relay_run *run);
enum verdict statements_judge_close(struct relay_run *run);

/* Of a statement. */
enum verdict statements_judge_describe(struct relay_run *run);

/* Of a client that has a DEALLOCATE for its unnamed statement. */
enum verdict statements_judge_execute(struct relay_run *run);

/* Are Describe and Close about a portal? Those are none of our business. */
static inline bool statements_is_about_portal(const struct relay_run *run)
{
	return run->frame.total > FRAME_HEADER_SIZE && run->end > run->at + FRAME_HEADER_SIZE &&
		run->at[FRAME_HEADER_SIZE] != 'S';
}

/* A simple Query: it ends the unnamed statement, and may be a DEALLOCATE. */
enum verdict statements_judge_query(struct relay_run *run);

/* ---- Of a client without a server ------------------------------------------------------- */

/* Close needs none, if it is of a statement that we track. RELAY_PASS: it is none of ours. */
enum verdict statements_judge_idle_close(struct relay_run *run);

#endif
