/* SPDX-License-Identifier: ISC */
#include "session/rules/server_errors.h"

#include "model/statistics/pool_figures.h"
#include "session/notify/unlisten.h"
#include "session/rules/server_answers.h"
#include "session/server/failover.h"
#include "session/state/changes.h"
#include "session/state/refusal.h"
#include "session/statements/replay.h"
#include "session/statements/sql_errors.h"
#include "wire/report.h"
#include "wire/writer.h"

/*
 * Returns true for messages of the extended protocol: after an error the server ignores them up
 * to a Sync. Protocol: "Message Flow", Extended Query.
 */
static bool is_extended(const struct request *request)
{
	return request && request->type != PQ_QUERY && request->type != PQ_FUNCTION_CALL &&
		request->type != PQ_SYNC;
}

/* Of a message that is too long to be whole, its start has the SQLSTATE. */
static void read_error(const struct relay_run *run, struct report *report)
{
	const size_t there = (size_t)(run->end - run->at);

	report_parse(run->at + FRAME_HEADER_SIZE,
		(there < run->frame.total ? there : run->frame.total) - FRAME_HEADER_SIZE,
		report);
}

/* Send an error of ours instead: the request was made to fail for that purpose. */
static enum verdict send_refusal(struct relay_run *run, enum reason reason)
{
	const struct failure why = failure_of(reason);
	struct buffer message;

	buffer_init(&message);
	writer_error(&message, "ERROR", why.sqlstate, why.text);
	if (!message.failed)
		relay_insert(run, message.data, message.length);
	buffer_free(&message);
	return RELAY_DROP;
}

/* The same error as PostgreSQL sends: some drivers check the routine to prepare again. */
static enum verdict send_plan_changed(struct relay_run *run)
{
	static const char names[] = "SERROR\0VERROR\0C0A000\0M";
	const struct failure why = failure_of(REASON_CACHED_PLAN_CHANGED);
	struct buffer message;
	size_t mark;

	buffer_init(&message);
	mark = writer_begin(&message, PQ_ERROR_RESPONSE);
	writer_bytes(&message, names, sizeof(names) - 1);
	writer_string(&message, why.text);
	writer_string(&message, "RRevalidateCachedQuery");
	writer_byte(&message, 0);
	writer_end(&message, mark);
	if (!message.failed)
		relay_insert(run, message.data, message.length);
	buffer_free(&message);
	return RELAY_DROP;
}

/* Pass the error on, or send another one instead. */
static enum verdict replace_error(struct relay_run *run, const struct report *report)
{
	const struct request *first = server_answers_first(run->server);

	if (first && first->action & REQUEST_BARRED)
		return refusal_answer(run);
	if (!first || !(report_is(report, "26000") || report_is(report, "25P02")))
		return RELAY_PASS;
	if (request_is(first, REQUEST_UNKNOWN))
		return send_refusal(run, REASON_PREPARED_STATEMENT_DID_NOT_EXIST);
	if (request_is(first, REQUEST_REFUSED))
		return send_refusal(run, REASON_PREPARED_STATEMENTS_TOO_LARGE);
	if (request_is(first, REQUEST_STALE) && report_is(report, "26000"))
		return send_plan_changed(run);
	return RELAY_PASS;
}

/* The server skips requests up to the next Sync, or to the end of the Query. */
static void skip_requests(struct server_link *server)
{
	const bool skips = is_extended(server_answers_first(server));

	/* Before the end of a COPY is dropped: what follows it has not failed, it is skipped. */
	if (skips)
		statements_failed(server);
	if (server->copy)
		requests_end_copy(&server->requests, PQ_COPY_DONE, PQ_COPY_FAIL);
	server->copy = COPY_NONE;
	if (server->request_error == REQUEST_ERROR_NONE)
		server->request_error = REQUEST_ERROR_UNTIL_READY;
	if (skips) {
		requests_drop_until(&server->requests, PQ_SYNC);
		server->request_error = requests_is_empty(&server->requests)
			? REQUEST_ERROR_UNTIL_SYNC
			: REQUEST_ERROR_UNTIL_READY;
	}
	statements_lost(server);
}

static bool is_spoilt(const struct server_link *server)
{
	const struct statement_operation *operation = statements_oldest(server);

	return operation && operation->spoilt;
}

/* pgusher's PREPARE before a Query has failed, and the Query comes next. */
static void spoil_query(struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);

	/* Its Sync is pgusher's, too. */
	if (first && first->type == PQ_SYNC && request_is(first, REQUEST_SWALLOW) &&
		server->statements)
		server_statements_spoil_next(server->statements);
}

enum verdict server_errors_judge(struct relay_run *run)
{
	struct server_link *server = run->server;
	struct report report;
	enum verdict verdict;
	bool carried;

	/* An error between transactions (the server shuts down) fails no request: drop it. */
	if (server_answers_unsolicited(run) && server_mode(server) != POOL_MODE_SESSION)
		return RELAY_DROP;
	read_error(run, &report);
	if (replay_begin(run, &report))
		return RELAY_DROP;
	changes_doubt(server);
	if (is_spoilt(server) || sql_errors_are_swallowed(server)) {
		skip_requests(server);
		return RELAY_DROP;
	}
	if (run->client) {
		unlisten_undo(run->client);
		pool_count_error(server->link.pool, report.sqlstate);
	}
	if (report_is(&report, "25006"))
		failover_server_is_read_only(server);
	verdict = replace_error(run, &report);
	if (verdict == RELAY_PASS)
		verdict = sql_errors_judge(run);
	carried = sql_errors_are_carried(server);
	skip_requests(server);
	if (carried)
		spoil_query(server);
	return verdict;
}
