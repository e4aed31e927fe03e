/* SPDX-License-Identifier: ISC */
/* Judges the messages of servers that are paired with a client, or were (DRAINING). */
#include "session/notify/delivery.h"
#include "session/pool/draining.h"
#include "session/relay/query_clocks.h"
#include "session/relay/relay_rules.h"
#include "session/rules/restore.h"
#include "session/rules/server_answers.h"
#include "session/rules/server_errors.h"
#include "wire/message.h"

/* NoticeResponse and NotificationResponse may arrive at any time and change no state. */
static enum verdict judge_notice(struct relay_run *run)
{
	if (server_answers_unsolicited(run))
		run->requested = run->whole ? run->at + run->frame.total : NULL;
	return RELAY_PASS;
}

static enum verdict judge_notification(struct relay_run *run)
{
	judge_notice(run);
	return delivery_judge_paired(run);
}

/* ReadyForQuery ends a Query, a FunctionCall or a Sync. Returns its verdict. */
static inline enum verdict end_request(struct server_link *server)
{
	const struct request *first = server_answers_first(server);
	enum verdict verdict = RELAY_PASS;

	if (first &&
		(first->type == PQ_QUERY || first->type == PQ_SYNC ||
			first->type == PQ_FUNCTION_CALL)) {
		if (request_is(first, REQUEST_SWALLOW))
			verdict = RELAY_DROP;
		if (!(first->action & REQUEST_NOTED))
			requests_drop(&server->requests);
		else if (server->request_error)
			requests_drop_through(&server->requests, first->type, first->type);
		else {
			statements_done(server);
			requests_drop(&server->requests);
		}
	} else if (server->request_error) {
		requests_drop_through(&server->requests, PQ_SYNC, PQ_SYNC);
	}
	statements_lost(server);
	server->request_error = REQUEST_ERROR_NONE;
	server->copy = COPY_NONE;
	return verdict;
}

/* The failed batch is replayed: its error does not come from the client. */
static enum verdict start_replay(struct relay_run *run, char status)
{
	run->server->batch_progress = BATCH_ENDED;
	run->server->transaction_status = status;
	run->replay_due = true;
	return RELAY_DROP;
}

/* Drop what this run has of the answer: it is replaced by our error. */
static enum verdict refuse_transaction(struct relay_run *run)
{
	run->count = 0;
	run->slice = run->at;
	return relay_fail(run, failure_of(REASON_TRANSACTION_BLOCKS_NOT_ALLOWED));
}

/*
 * Returns true if this ReadyForQuery answers the last request, so that the transaction status
 * is known. Sets *verdict for the message.
 */
static inline bool take_ready(struct relay_run *run, char status, enum verdict *verdict)
{
	struct server_link *server = run->server;

	*verdict = end_request(server);
	if (server->batch_progress == BATCH_FAILED) {
		*verdict = start_replay(run, status);
		return false;
	}
	run->requested = run->at + run->frame.total;
	*verdict = server_answers_add_own(run, *verdict);
	if (!requests_is_empty(&server->requests) && server_answers_first(server)) {
		run->requested = NULL;
		return false;
	}
	server->transaction_status = status;
	return true;
}

static enum verdict judge_ready(struct relay_run *run)
{
	size_t length;
	const uint8_t *status = relay_body(run, &length);
	enum verdict verdict;

	if (length != 1 || !relay_is_status(*status))
		return relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	if (*status != READY_IDLE) {
		/* What follows a BEGIN cannot be replayed. */
		run->server->kept_requests = 0;
		if (server_mode(run->server) == POOL_MODE_STATEMENT)
			return refuse_transaction(run);
	}
	if (take_ready(run, (char)*status, &verdict))
		query_clocks_stop(run->client, (char)*status);
	return verdict;
}

static enum verdict judge_parameter(struct relay_run *run)
{
	const enum verdict verdict = relay_remember_parameter(run);

	judge_notice(run);
	return verdict;
}

static enum verdict judge_unknown_from_server(struct relay_run *run)
{
	link_log_repeated(run->from, LEVEL_ERROR, "unknown pkt from server: '%c'",
		run->frame.type >= ' ' && run->frame.type < 127 ? run->frame.type : '?');
	return relay_fail(run, failure_of(REASON_UNKNOWN_SERVER_PKT));
}

/*
 * Protocol: "Streaming Replication Protocol", START_REPLICATION. A stream is not a query, so no
 * time limit applies to it.
 */
static enum verdict judge_copy_both(struct relay_run *run)
{
	if (!run->server->replication)
		return judge_unknown_from_server(run);
	run->server->copy = COPY_BOTH;
	query_clocks_stop(run->client, 'I');
	return RELAY_PASS;
}

/* --- from a DRAINING server: see pool/draining -------------------------------------------- */

static enum verdict judge_drained_ready(struct relay_run *run)
{
	enum verdict verdict = RELAY_DROP;
	size_t length;
	const uint8_t *status = relay_body(run, &length);

	if (length != 1 || !relay_is_status(*status))
		return relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	/* A ReadyForQuery too many could later be taken for the answer of another client. */
	if (run->server->transaction_status != 0)
		run->server->dirty = true;
	else if (!take_ready(run, (char)*status, &verdict))
		draining_request_ended(run->server);
	return verdict == RELAY_AGAIN ? RELAY_AGAIN : RELAY_DROP;
}

static enum verdict judge_drained_copy_in(struct relay_run *run)
{
	server_answers_copy_in(run);
	if (!draining_end_copy(run->server))
		return relay_fail(run, failure_of(REASON_CLIENT_DISCONNECT_NOT_READY));
	return RELAY_DROP;
}

/* --- the tables --------------------------------------------------------------------------- */

/* In each table the first row is the default, which later initializers override. */
#pragma GCC diagnostic ignored "-Woverride-init"

/*
 * Answers to requests, with or without a client: in these judges run->client may be NULL, and
 * then messages that pass are dropped.
 */
#define ANSWERS                                                                                \
	RELAY_EVERY(judge_unknown_from_server),                                                \
		[PQ_DATA_ROW] = RELAY_PASSES, [PQ_COPY_DATA] = RELAY_PASSES,                   \
		[PQ_COPY_DONE] = RELAY_PASSES, [PQ_COPY_OUT_RESPONSE] = RELAY_PASSES,          \
		[PQ_PARAMETER_DESCRIPTION] = {server_answers_parameter_description},           \
		[PQ_FUNCTION_CALL_RESPONSE] = RELAY_PASSES,                                    \
		[PQ_PARSE_COMPLETE] = {server_answers_parse_complete},                         \
		[PQ_BIND_COMPLETE] = {server_answers_bind_complete},                           \
		[PQ_CLOSE_COMPLETE] = {server_answers_close_complete},                         \
		[PQ_ROW_DESCRIPTION] = {server_answers_description},                           \
		[PQ_NO_DATA] = {server_answers_description},                                   \
		[PQ_EMPTY_QUERY_RESPONSE] = {server_answers_executed},                         \
		[PQ_PORTAL_SUSPENDED] = {server_answers_executed},                             \
		[PQ_COMMAND_COMPLETE] = {server_answers_command_complete, .whole = true},      \
		[PQ_ERROR_RESPONSE] = {server_errors_judge, .whole = true},                    \
		[PQ_NOTICE_RESPONSE] = {judge_notice},                                         \
		[PQ_NOTIFICATION_RESPONSE] = {judge_notification, .whole = true},              \
		[PQ_PARAMETER_STATUS] = {judge_parameter, .whole = true}

const struct relay_rule relay_paired_server[RELAY_TYPES] = {
	ANSWERS,
	[PQ_COPY_IN_RESPONSE] = {server_answers_copy_in},
	[PQ_COPY_BOTH_RESPONSE] = {judge_copy_both},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};

const struct relay_rule relay_reset_server[RELAY_TYPES] = {
	ANSWERS,
	[PQ_COPY_IN_RESPONSE] = {server_answers_copy_in},
	[PQ_READY_FOR_QUERY] = {restore_judge_ready, .whole = true},
};

const struct relay_rule relay_draining_server[RELAY_TYPES] = {
	ANSWERS,
	[PQ_COPY_IN_RESPONSE] = {judge_drained_copy_in},
	[PQ_READY_FOR_QUERY] = {judge_drained_ready, .whole = true},
};
