/* SPDX-License-Identifier: ISC */
/* What a server's answers to requests mean: the ring of requests says what is answered next. */
#ifndef PGUSHER_SESSION_RULES_SERVER_ANSWERS_H
#define PGUSHER_SESSION_RULES_SERVER_ANSWERS_H

#include "model/statements_in_flight.h"
#include "session/relay/relay_rules.h"
#include "session/statements/statement_answers.h"
#include "wire/message.h"

/* The oldest request, past the end of a COPY that never began. */
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

/* The message is passed or dropped, and what we owe behind it is given. */
static inline enum verdict server_answers_add_own(struct relay_run *run, enum verdict verdict)
{
	const struct server_statements *statements = run->server->statements;
	const struct request *next;

	/* Each of them is noted, and nearly always nothing is. */
	if (!statements || statements->in_flight == 0)
		return verdict;
	next = server_answers_first(run->server);
	/* Behind half a message nothing can be said: relay.c does it when the rest has passed. */
	if (!next || !request_is(next, REQUEST_ANSWER) || !run->whole)
		return verdict;
	relay_step_over(run, verdict);
	statement_answers_insert(run);
	return RELAY_AGAIN;
}

/*
 * Is the message one that the server sends of itself: it has answered everything, and said
 * nothing else since?
 */
static inline bool server_answers_unsolicited(const struct relay_run *run)
{
	return run->requested && run->requested == run->at;
}

/* The rows of the tables for servers: functions that judge the messages of these names. */
enum verdict server_answers_parse_complete(struct relay_run *run);
enum verdict server_answers_bind_complete(struct relay_run *run);
enum verdict server_answers_close_complete(struct relay_run *run);
enum verdict server_answers_parameter_description(struct relay_run *run);
enum verdict server_answers_description(struct relay_run *run);
enum verdict server_answers_executed(struct relay_run *run);
enum verdict server_answers_command_complete(struct relay_run *run);
enum verdict server_answers_copy_in(struct relay_run *run);

#endif
