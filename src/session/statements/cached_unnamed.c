/* SPDX-License-Identifier: ISC */
#include "session/statements/cached_unnamed.h"

/* Longer texts are sent as they are. */
enum { LENGTH_MAX = 64 * 1024 };

/*
 * A client's temporary table may have the name of a table that the plan uses, and PostgreSQL does
 * not look for that again.
 */
static bool may_use_plans(const struct relay_run *run)
{
	const struct server_link *server = run->server;

	return prepare_tracks(run) && !((server->pins | server->suspected) & TOPIC_TEMPORARY);
}

/*
 * A Parse fails in a failed transaction. So pgusher answers only those in a batch that is known to
 * begin otherwise: the server has answered all requests before it.
 */
static bool may_answer(const struct relay_run *run)
{
	return run->in_flight == 0 && !run->batch &&
		(run->status == READY_IDLE || run->status == READY_IN_TRANSACTION);
}

static bool is_there(const struct relay_run *run, struct statement *statement)
{
	return run->server->statements &&
		prepare_is_there(
			run, server_statements_find(run->server->statements, statement));
}

/* Answer the Parse in its order. Takes over the reference. */
static void answer(struct relay_run *run, struct statement *statement)
{
	struct client_link *client = run->client;

	requests_add(&run->server->requests, PQ_PARSE, REQUEST_ANSWER | REQUEST_NOTED);
	server_statements_push(run->server->statements,
		&(struct statement_operation){
			.kind = STATEMENT_UNNAMED,
			.batch = run->server->batch,
			.before = client->unnamed ? statement_ref(client->unnamed) : NULL,
		});
	prepare_set_unnamed(client, statement);
	run->server->unnamed_passing = false;
	run->replayable = true;
	query_clocks_start(client);
}

/* Prepare it under our name unless it is there. Takes over the reference. */
static enum verdict parse_once(struct relay_run *run, struct statement *statement)
{
	if (!prepare_if_absent(run, statement) || !prepare_open_table(run)) {
		statement_unref(statement);
		return prepare_out_of_memory(run);
	}
	answer(run, statement);
	return RELAY_DROP;
}

/* May a Parse of this length be answered? Else it is sent as it is. */
static bool may_be_cached(const struct relay_run *run, size_t length)
{
	return length <= LENGTH_MAX && may_answer(run) && may_use_plans(run) &&
		prepare_is_affordable(run, length);
}

/* The Parse of a replay whose answer the client has got. */
static enum verdict take_again(struct relay_run *run, const char *content, size_t length)
{
	struct statement *statement = statement_open(prepare_table(run), content, length);

	if (!statement)
		return prepare_out_of_memory(run);
	prepare_set_unnamed(run->client, statement);
	run->server->unnamed_passing = false;
	return RELAY_DROP;
}

bool cached_unnamed_parse_it(
	struct relay_run *run, const char *content, size_t length, enum verdict *verdict)
{
	struct statement *statement;

	if (prepare_was_answered(run)) {
		*verdict = take_again(run, content, length);
		return true;
	}
	statement = may_be_cached(run, length)
		? statement_open(prepare_table(run), content, length)
		: NULL;
	if (!statement)
		return false;
	if (!statement_is_repeatable(statement) ||
		!(is_there(run, statement) || statement_is_repeated(statement))) {
		statement_unref(statement);
		return false;
	}
	*verdict = parse_once(run, statement);
	return true;
}

/* Replace the beginning of the Bind. values: where they begin in its body. */
static void pass_bind(struct relay_run *run, const struct statement *statement, size_t values)
{
	const char *portal = (const char *)run->at + FRAME_HEADER_SIZE;

	prepare_replace_name(run, portal, values - 1, statement->name, 1, statement->name_size);
	run->client->link.pool->stats.current.binds++;
	prepare_pass_request(run, REQUEST_FORWARD | REQUEST_UNNAMED);
}

bool cached_unnamed_use_it(struct relay_run *run, size_t values, enum verdict *verdict)
{
	struct statement *statement = run->client->unnamed;

	if (!statement || !statement_is_repeatable(statement) || !may_use_plans(run) ||
		!is_there(run, statement))
		return false;
	prepare_if_absent(run, statement); /* counts the use */
	run->replayable = true;
	if (values > 0) {
		statement->binds++;
		pass_bind(run, statement, values);
		*verdict = RELAY_PASS;
		return true;
	}
	prepare_insert_about(run, PQ_DESCRIBE, statement);
	prepare_pass_request(run, REQUEST_FORWARD | REQUEST_UNNAMED);
	*verdict = RELAY_DROP;
	return true;
}
