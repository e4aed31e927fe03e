/* SPDX-License-Identifier: ISC */
/*
 * Statements prepared by SQL in transaction and statement mode: they follow their client as those
 * of the protocol do, and both have their names in common.
 *
 * A PREPARE that is a Query by itself is run by the client's server, under a name of pgusher's. When an
 * EXECUTE of it comes, as a Query by itself, our name replaces the client's, and a server that
 * lacks the statement gets the same PREPARE before. Any other text reaches the server as it is.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_SQL_STATEMENTS_H
#define PGUSHER_SESSION_STATEMENTS_SQL_STATEMENTS_H

#include "session/relay/relay.h"

/*
 * Whether the Query may be a PREPARE, by its first letters; for a client with statements also
 * whether it may be EXECUTE, EXPLAIN or CREATE. True if the first letters have not arrived.
 */
static inline bool sql_statements_may_be_in(const struct relay_run *run)
{
	const uint8_t *text = run->at + FRAME_HEADER_SIZE;

	if (run->end - text < 2)
		return !run->whole;
	switch (*text | 0x20) {
	case 'p':
		return (text[1] | 0x20) == 'r';
	case 'e':
		return run->client->statements && (text[1] | 0x20) == 'x';
	case 'c':
		return run->client->statements && (text[1] | 0x20) == 'r';
	default:
		return *text <= '/';
	}
}

/*
 * A Query that is not one of them, of a client with statements that SQL has prepared: what its text
 * names behind EXECUTE, PREPARE or DEALLOCATE is handed over to the server, under the client's names,
 * and its server will be found to have it: see session/state. Returns false if the Query has to wait.
 */
bool sql_statements_hand_over(struct relay_run *run);

/*
 * Returns true, with the verdict, if the Query is a PREPARE or EXECUTE that is handled here, or may
 * be one and has to wait. It must have room in the ring of requests: prepare_has_room().
 */
bool sql_statements_judge(struct relay_run *run, enum verdict *verdict);

/*
 * The message uses a statement with `may_name`. If that is an EXECUTE of a name that the client has,
 * or a PREPARE of such, the server gets it as the carrier (statement_table.carrier), with our name
 * for the other one, which is prepared before: returns true, and the message is to use the carrier.
 * Returns true with another verdict than RELAY_PASS if the message cannot be handled now.
 */
bool sql_statements_carry(
	struct relay_run *run, const struct statement *statement, enum verdict *verdict);

/*
 * Returns true, with the verdict, if a Query about this name has to wait, because the answers to
 * requests in flight decide whether the client has it. All of these will come without a Sync.
 */
bool sql_statements_wait_for(struct relay_run *run, const char *name, enum verdict *verdict);

#endif
