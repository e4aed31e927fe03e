/* SPDX-License-Identifier: ISC */
#include "session/statements/replay.h"

#include <string.h>

#include "model/statements_in_flight.h"
#include "session/relay/relay_rules.h"
#include "wire/message.h"

/* --- the kept batch ----------------------------------------------------------------------- */

/*
 * Returns the number of requests in the last batch, which began in the middle of the run: all
 * up to the request that ended the batch before it. ended: the last request ends the batch
 * itself.
 */
static uint32_t count_back(const struct requests *requests, bool ended)
{
	uint32_t count = ended;

	while (count < requests->count) {
		const uint8_t type = requests_at(requests, requests->count - count - 1)->type;

		if (type == PQ_SYNC || type == PQ_QUERY || type == PQ_FUNCTION_CALL)
			break;
		count++;
	}
	return count;
}

/* Returns how many of the last `last` requests come first and are answered by pgusher. */
static uint32_t count_answered(const struct requests *requests, uint32_t last)
{
	uint32_t answered = 0;

	while (answered < last &&
		request_is(requests_at(requests, requests->count - last + answered),
			REQUEST_ANSWER))
		answered++;
	return answered;
}

/*
 * May a batch that begins with the run (first), or in the middle of it, need a replay? For a
 * batch behind others in flight the transaction status at its start is unknown until these are
 * answered: see take_ready() in rules/server_rules.c.
 */
static bool may_need_replay(const struct relay_run *run, bool first, bool ended)
{
	if (run->is_replay || run->server->copy || (ended && !run->replayable))
		return false;
	return !first ||
		(run->status != READY_IN_TRANSACTION &&
			run->status != READY_FAILED_TRANSACTION);
}

/* Returns the number of requests that the run has added to the batch. */
static uint32_t count_requests(const struct relay_run *run, bool first, bool ended)
{
	const struct requests *requests = &run->server->requests;

	if (!first)
		return count_back(requests, ended);
	return requests->count > run->in_flight ? requests->count - run->in_flight : 0;
}

/* Append to the kept batch. Returns false when it is too long, or when out of memory. */
static bool append_kept(struct server_link *server, const uint8_t *from, const uint8_t *until)
{
	const size_t length = (size_t)(until - from);

	if (server->kept.length + length > REPLAY_KEPT_MAX)
		return false;
	if (buffer_append(&server->kept, from, length))
		return true;
	buffer_wipe(&server->kept);
	return false;
}

/*
 * Keep a batch that begins in this run, at `from` or, if that is NULL, with the run. ended: it
 * also ends in this run. Returns false when the batch is not kept.
 */
static bool begin_batch(struct relay_run *run, const uint8_t *from, bool ended)
{
	struct server_link *server = run->server;
	const bool first = from == NULL;
	uint32_t count;

	if (first)
		from = run->start;
	if (from >= run->at || !may_need_replay(run, first, ended))
		return false;
	count = count_requests(run, first, ended);
	server->kept_answers = count_answered(&server->requests, count);
	server->kept_requests = count - server->kept_answers;
	if (server->kept_requests == 0)
		return false;
	/* All that was sent together with our SETs is kept already. */
	if (server_has_gathered(server))
		return first;
	buffer_clear(&server->kept);
	return append_kept(server, from, run->at);
}

/* Keep more messages of a batch that began in an earlier run. Returns false if it cannot. */
static bool continue_batch(struct relay_run *run, const uint8_t *data)
{
	struct server_link *server = run->server;

	/* Fewer requests in flight: the server has answered some, perhaps of this batch. */
	if (server->kept_requests == 0 || run->in_flight < server->kept_requests ||
		server->requests.count < run->in_flight || !append_kept(server, data, run->at))
		return false;
	server->kept_requests += server->requests.count - run->in_flight;
	return true;
}

/*
 * The usual case: the run is one whole batch, sent to a server without requests in flight, and
 * the buffer is large enough. Returns false if this is not the case.
 */
static bool keep_whole_batch(struct relay_run *run)
{
	struct server_link *server = run->server;
	const size_t length = (size_t)(run->at - run->start);

	if (run->in_flight > 0 || run->status != READY_IDLE || run->at != run->batch ||
		run->last_batch || server->batch_progress == BATCH_OPEN || run->is_replay ||
		length > server->kept.capacity || statements_are_due(server))
		return false;
	memcpy(server->kept.data, run->start, length);
	server->kept.length = length;
	server->kept_requests = server->requests.count;
	server->kept_answers = 0;
	return true;
}

static void keep_piece(struct relay_run *run, const uint8_t *data)
{
	struct server_link *server = run->server;
	const bool ended = run->batch == run->at;
	const uint8_t *from = ended ? run->last_batch : run->batch;
	const bool goes_on = server->batch_progress == BATCH_OPEN && from == NULL;

	server->batch_progress = ended ? BATCH_ENDED : BATCH_OPEN;
	if (!(goes_on ? continue_batch(run, data) : begin_batch(run, from, ended)))
		server->kept_requests = 0;
}

void replay_keep(struct relay_run *run, const uint8_t *data)
{
	struct server_link *server = run->server;

	/* Nothing has been passed on, or not to this server. */
	if (!server || run->at == data)
		return;
	if (!run->from->rules[PQ_SYNC].keeps_batch)
		server->kept_requests = 0;
	else if (!keep_whole_batch(run))
		keep_piece(run, data);
}

/* --- outdated plans ----------------------------------------------------------------------- */

/*
 * Have the columns changed? The text may be translated, the routine is not. The same SQLSTATE from
 * other routines is an error of the client's SQL.
 */
static bool has_other_columns(const struct report *report)
{
	return report_is(report, "0A000") && report->routine &&
		strcmp(report->routine, "RevalidateCachedQuery") == 0;
}

/*
 * Is a type of the parameters gone? It may have been created again, with another OID, which only a
 * new Parse finds. PostgreSQL does not translate its internal errors.
 */
static bool has_lost_type(const struct report *report)
{
	static const char text[] = "cache lookup failed for type ";

	return report_is(report, "XX000") && report->text &&
		strncmp(report->text, text, sizeof(text) - 1) == 0;
}

bool replay_is_stale(const struct report *report)
{
	return has_other_columns(report) || has_lost_type(report);
}

/*
 * The plan of the oldest request is outdated, and a change of the schema seldom affects one
 * plan only: prepare all statements of this server again when they are next used, here and on
 * other servers.
 */
static void outdate_plans(struct server_link *server)
{
	server->unnamed = 0;
	if (server->statements)
		server_statements_distrust(server->statements);
}

/*
 * A client has prepared another statement under our name, in SQL. Note the name as present with
 * an outdated plan, so that it is closed before our statement is prepared.
 */
static bool mark_name_in_use(struct server_link *server)
{
	const struct statement_operation *operation =
		server->statements ? server_statements_next(server->statements) : NULL;

	if (!operation || operation->kind != STATEMENT_PREPARE)
		return false;
	operation->server->present = true;
	operation->server->generation = operation->server->statement->generation - 1;
	return true;
}

/*
 * Is it an EXECUTE of a statement that the server was known to have? The client gets the error, as
 * from PostgreSQL: a Query is not replayed.
 */
static bool is_execute_query(const struct server_link *server, const struct request *first)
{
	const struct statement_operation *operation =
		server->statements && (first->action & REQUEST_NOTED) && first->type == PQ_QUERY
		? server_statements_next(server->statements)
		: NULL;

	return operation && operation->kind == STATEMENT_EXECUTE && operation->client &&
		operation->client->confirmed && !operation->spoilt;
}

/*
 * Does the error show that the server does not have a statement that is noted for it, or has it
 * with an outdated plan? Then correct the notes.
 */
static bool correct_noted(struct server_link *server, const struct report *report)
{
	const struct request *first = requests_first(&server->requests);

	if (first && first->type == PQ_PARSE && (first->action & REQUEST_NOTED) &&
		report_is(report, "42P05"))
		return mark_name_in_use(server);
	/* 26000: the statement was deallocated in a way that was not noticed. */
	if (!first || (!replay_is_stale(report) && !report_is(report, "26000")))
		return false;
	if (is_execute_query(server, first)) {
		outdate_plans(server);
		return false;
	}
	if ((first->action & ~REQUEST_UNNAMED) != REQUEST_FORWARD ||
		(first->type != PQ_BIND && first->type != PQ_DESCRIBE))
		return false;
	outdate_plans(server);
	return true;
}

bool replay_may_begin(const struct relay_run *run)
{
	const struct server_link *server = run->server;

	/* None of the batch was answered, and nothing was sent after it. */
	return server->kept_requests > 0 && server->requests.count == server->kept_requests &&
		run->client && run->client->link.remaining == 0;
}

/*
 * Must the client get the error? Yes, if it has asked for the columns before and does not with
 * this Bind: it would read the rows with the wrong columns.
 */
static bool needs_error(const struct relay_run *run)
{
	const struct requests *requests = &run->server->requests;
	const struct client_statements *known = run->client ? run->client->statements : NULL;

	/* A client that uses the unnamed statement has prepared it again. */
	if (requests_first(requests)->action & REQUEST_UNNAMED)
		return false;
	return requests_first(requests)->type == PQ_BIND && (!known || known->remembers) &&
		(requests->count < 2 || requests_at(requests, 1)->type != PQ_DESCRIBE);
}

/*
 * Send a Sync, up to which the server skips: the client has not ended the batch yet, and its
 * next messages will follow the replay. Returns false when out of memory or when sending
 * failed.
 */
static bool end_batch(struct server_link *server)
{
	static const uint8_t sync[] = {PQ_SYNC, 0, 0, 0, 4};

	if (!requests_add(&server->requests, PQ_SYNC, REQUEST_FORWARD) ||
		stream_send_bytes(&server->link.stream, sync, sizeof(sync)) == STREAM_SENT_NOT)
		return false;
	server->batch++;
	return true;
}

bool replay_begin(struct relay_run *run, const struct report *report)
{
	struct server_link *server = run->server;
	const bool changed = has_other_columns(report);

	if (!run->whole || !correct_noted(server, report))
		return false;
	if (!replay_may_begin(run) || (changed && needs_error(run))) {
		if (run->client && run->client->statements)
			run->client->statements->told = changed;
		return false;
	}
	if (server->batch_progress == BATCH_OPEN && !end_batch(server))
		return false;
	requests_drop_until(&server->requests, PQ_SYNC);
	statements_lost(server);
	requests_swallow_first(&server->requests);
	server->batch_progress = BATCH_FAILED;
	stream_pause(&run->client->link.stream);
	return true;
}
