/* SPDX-License-Identifier: ISC */
/*
 * Judges the answers of a server to requests. The ring of requests has the request that is
 * answered next.
 */
#ifndef PGUSHER_SESSION_RULES_SERVER_ANSWERS_H
#define PGUSHER_SESSION_RULES_SERVER_ANSWERS_H

#include "model/statements_in_flight.h"
#include "session/relay/relay_rules.h"
#include "session/statements/statement_answers.h"
#include "wire/message.h"

/*
 * Returns the oldest request, or NULL. Removes CopyDone and CopyFail before it if their COPY
 * never began.
 */
static inline const struct request *server_answers_first(struct server_link *server)
{
	const struct request *first;

	while ((first = requests_first(&server->requests)) != NULL) {
		if ((first->type != PQ_COPY_DONE && first->type != PQ_COPY_FAIL) ||
			server->copy)
			break;
		requests_drop(&server->requests);
	}
	return first;
}

/*
 * The message gets this verdict (RELAY_PASS or RELAY_DROP). If our own answers are due after
 * it, insert them and return RELAY_AGAIN, else return the verdict.
 */
static inline enum verdict server_answers_add_own(struct relay_run *run, enum verdict verdict)
{
	const struct server_statements *statements = run->server->statements;
	const struct request *next;

	/* Own answers are always noted, and there is rarely a noted request. */
	if (!statements || statements->in_flight == 0)
		return verdict;
	next = server_answers_first(run->server);
	/* After a part of a message nothing can be inserted: relay.c does it after its end. */
	if (!next || !request_is(next, REQUEST_ANSWER) || !run->whole)
		return verdict;
	relay_step_over(run, verdict);
	statement_answers_insert(run);
	return RELAY_AGAIN;
}

/*
 * Returns true if the server has answered everything before this message, and has sent nothing
 * else since but notices.
 */
static inline bool server_answers_unsolicited(const struct relay_run *run)
{
	return run->requested && run->requested == run->at;
}

/*
 * The judges of these messages, for the tables of servers. `description` is for RowDescription
 * and NoData, `executed` for EmptyQueryResponse and PortalSuspended, `copy_in` for
 * CopyInResponse.
 */
enum verdict server_answers_parse_complete(struct relay_run *run);
enum verdict server_answers_bind_complete(struct relay_run *run);
enum verdict server_answers_close_complete(struct relay_run *run);
enum verdict server_answers_parameter_description(struct relay_run *run);
enum verdict server_answers_description(struct relay_run *run);
enum verdict server_answers_executed(struct relay_run *run);
enum verdict server_answers_command_complete(struct relay_run *run);
enum verdict server_answers_copy_in(struct relay_run *run);

#endif
