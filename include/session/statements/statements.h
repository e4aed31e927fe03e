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

/* ---- Answers of its server -------------------------------------------------------------- */

/* The oldest request was noted, and has been answered: so it was done. */
void statements_done(struct server_link *server);

/* Requests were taken out that the server skips after an error: undo what they would have done. */
void statements_lost(struct server_link *server);

/* It is in error: the statement whose Parse has failed is not there, nor is its name. */
void statements_failed(struct server_link *server);

/* Is the answer that is due now one of ours? */
static inline bool statements_are_due(const struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);

	return first && request_is(first, REQUEST_ANSWER);
}

/* The answers that are ours to give, now that it is their turn. */
void statements_answer(struct relay_run *run);

/* The same, when the server owes nothing before them. False: the client cannot be written to. */
bool statements_answer_at_once(struct server_link *server);

/* The server has been told to forget all its statements, and has: DEALLOCATE ALL, DISCARD ALL. */
void statements_forget_all(struct server_link *server, struct client_link *client);

/*
 * The client has no unnamed statement from here on: so has it none if a Parse of an earlier batch,
 * which is still in flight, is not done.
 */
void statements_forget_unnamed(struct server_link *server);

/* ---- Comings and goings ----------------------------------------------------------------- */

/* As statements_part(), when something is in flight. */
void statements_undo(struct server_link *server, struct client_link *client);

/* Client and server part: what is in flight is none of the client's any more. */
static inline void statements_part(struct server_link *server, struct client_link *client)
{
	server->replaying = server->unnamed_passing = server->forgetting = false;
	server->kept_requests = 0;
	server->batch_open = false;
	if (server->statements && server->statements->in_flight > 0)
		statements_undo(server, client);
}

/* A client, or a server, closes. They have been parted. */
void statements_client_gone(struct client_link *client);
void statements_server_gone(struct server_link *server);

#endif
