/* SPDX-License-Identifier: ISC */
/* What the messages of a server mean that a client is paired with, or was. */
#include <string.h>

#include "model/statements_in_flight.h"
#include "session/parameters/followed.h"
#include "session/pool/draining.h"
#include "session/relay/query_clocks.h"
#include "session/relay/relay_rules.h"
#include "session/rules/restore.h"
#include "session/server/failover.h"
#include "session/statements/replay.h"
#include "session/statements/statement_answers.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/writer.h"

/* The oldest request, past the end of a COPY that never began. */
static const struct request *first_request(struct server_link *server)
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
static inline enum verdict with_our_answers(struct relay_run *run, enum verdict verdict)
{
	const struct server_statements *statements = run->server->statements;
	const struct request *next;

	/* Each of them is noted, and nearly always nothing is. */
	if (!statements || statements->in_flight == 0)
		return verdict;
	next = first_request(run->server);
	/* Behind half a message nothing can be said: relay.c does it when the rest has passed. */
	if (!next || !request_is(next, REQUEST_ANSWER) || !run->whole)
		return verdict;
	relay_step_over(run, verdict);
	statement_answers_insert(run);
	return RELAY_AGAIN;
}

/* The same, where it is not simply the oldest request's answer that goes on. */
static enum verdict judge_odd_answer(struct relay_run *run, uint8_t type)
{
	struct server_link *server = run->server;
	const struct request *first = requests_first(&server->requests);
	enum verdict verdict = RELAY_PASS;

	/* A simple Query is ended by its ReadyForQuery and by nothing before. */
	if (!first || first->type == PQ_QUERY)
		return RELAY_PASS;
	first = first_request(server);
	if (!first || first->type != type)
		return RELAY_PASS;
	/* What we owe comes before what the server says. */
	if (request_is(first, REQUEST_ANSWER)) {
		statement_answers_insert(run);
		return RELAY_AGAIN;
	}
	verdict = request_is(first, REQUEST_SWALLOW) ? RELAY_DROP : RELAY_PASS;
	if (first->action & REQUEST_NOTED)
		statements_done(server);
	requests_drop(&server->requests);
	return with_our_answers(run, verdict);
}

/* The message is the answer to requests of this type. */
static inline enum verdict judge_answer(struct relay_run *run, uint8_t type)
{
	struct server_link *server = run->server;
	const struct request *first = requests_first(&server->requests);

	if (!first || first->type != type || first->action != REQUEST_FORWARD)
		return judge_odd_answer(run, type);
	requests_drop(&server->requests);
	return with_our_answers(run, RELAY_PASS);
}

static enum verdict judge_parse_complete(struct relay_run *run)
{
	return judge_answer(run, PQ_PARSE);
}

static enum verdict judge_bind_complete(struct relay_run *run)
{
	return judge_answer(run, PQ_BIND);
}

static enum verdict judge_close_complete(struct relay_run *run)
{
	return judge_answer(run, PQ_CLOSE);
}

/* Does it run what stands in for a DEALLOCATE of the client's? See session/statements/statements. */
static bool stands_for_deallocate(const struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);

	return first && first->action == (REQUEST_FORWARD | REQUEST_NOTED) &&
		(first->type == PQ_QUERY || first->type == PQ_EXECUTE);
}

/*
 * Describe of a statement is answered in two messages, and the error of a plan out of date comes
 * between them: when that one heals, the first has not been either.
 */
static enum verdict judge_parameter_description(struct relay_run *run)
{
	const uint8_t *behind = run->at + run->frame.total;
	struct report report;
	struct frame next;

	/* An error that is too long to wait for, or what it follows, goes on as it comes. */
	if (!run->whole || run->frame.total > RELAY_WHOLE_MAX / 2 || !replay_may_begin(run))
		return RELAY_PASS;
	switch (frame_peek(behind, (size_t)(run->end - behind), run->max_message, &next)) {
	case FRAME_WHOLE:
		report_parse(frame_body(behind), frame_body_size(&next), &report);
		return next.type == PQ_ERROR_RESPONSE && replay_is_stale(&report) ? RELAY_DROP
										  : RELAY_PASS;
	case FRAME_PARTIAL:
		return next.type == PQ_ERROR_RESPONSE && next.total <= RELAY_WHOLE_MAX / 2
			? RELAY_MORE
			: RELAY_PASS;
	case FRAME_SHORT:
		return RELAY_MORE;
	case FRAME_MALFORMED:
		break;
	}
	return RELAY_PASS;
}

/* RowDescription and NoData answer Describe. */
static enum verdict judge_description(struct relay_run *run)
{
	return judge_answer(run, PQ_DESCRIBE);
}

/* EmptyQueryResponse and PortalSuspended answer Execute. */
static enum verdict judge_executed(struct relay_run *run)
{
	return judge_answer(run, PQ_EXECUTE);
}

/* In place of what the server has said of what stood in. A Query is ended by ReadyForQuery. */
static enum verdict answer_deallocate(struct relay_run *run)
{
	static const char message[] = "C\0\0\0\017DEALLOCATE";
	struct server_link *server = run->server;

	relay_insert(run, message, sizeof(message));
	if (requests_first(&server->requests)->type == PQ_QUERY)
		return RELAY_DROP;
	statements_done(server);
	requests_drop(&server->requests);
	return with_our_answers(run, RELAY_DROP);
}

/* SET, RESET, DISCARD ALL, DEALLOCATE ALL: messages of these lengths are looked at. */
static inline bool may_tell(const struct relay_run *run)
{
	enum { BEFORE_TAG = FRAME_HEADER_SIZE };
	static const uint32_t lengths = 1u << (BEFORE_TAG + sizeof("SET")) |
		1u << (BEFORE_TAG + sizeof("RESET")) |
		1u << (BEFORE_TAG + sizeof("DISCARD ALL")) |
		1u << (BEFORE_TAG + sizeof("DEALLOCATE ALL"));

	return run->frame.total < 32 && (lengths >> run->frame.total & 1);
}

/* Commands that change the session behind the back of what is known about it. */
static bool note_command(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (server->follows && !followed_note_command(run))
		return false;
	restore_note_command(run);
	if (relay_forgets_all(run))
		statements_forget_all(server, run->client);
	return true;
}

static enum verdict judge_command_complete(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (may_tell(run) && !note_command(run))
		return relay_fail(run, failure_of(REASON_NO_MEMORY));
	if (stands_for_deallocate(server))
		return answer_deallocate(run);
	if (!server->copy)
		return judge_executed(run);
	requests_end_copy(&server->requests, PQ_COPY_DONE, PQ_COPY_DONE);
	server->copy = COPY_NONE;
	return with_our_answers(run, RELAY_PASS);
}

static enum verdict judge_copy_in(struct relay_run *run)
{
	run->server->copy = COPY_IN;
	return RELAY_PASS;
}

/*
 * Is the message one that the server sends of itself: it has answered everything, and said
 * nothing else since?
 */
static bool is_unasked(const struct relay_run *run)
{
	return run->requested && run->requested == run->at;
}

/* Protocol: "Message Flow", Extended Query: an error in it is followed by silence up to a Sync. */
static bool is_extended(const struct request *request)
{
	return request && request->type != PQ_QUERY && request->type != PQ_FUNCTION_CALL &&
		request->type != PQ_SYNC;
}

/* One that is too long to be whole: the code stands in front. */
static void read_error(const struct relay_run *run, struct report *report)
{
	const size_t there = (size_t)(run->end - run->at);

	report_parse(run->at + FRAME_HEADER_SIZE,
		(there < run->frame.total ? there : run->frame.total) - FRAME_HEADER_SIZE,
		report);
}

/* The request was made to fail so that our words can stand for the server's. */
static enum verdict tell_refusal(struct relay_run *run, enum reason reason)
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

/* As PostgreSQL says it: drivers that know what to do look at the routine. */
static enum verdict tell_stale(struct relay_run *run)
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

/* An error is passed on, or ours in its place. */
static enum verdict tell_error(struct relay_run *run, const struct report *report)
{
	const struct request *first = first_request(run->server);

	if (!first || !(report_is(report, "26000") || report_is(report, "25P02")))
		return RELAY_PASS;
	if (request_is(first, REQUEST_UNKNOWN))
		return tell_refusal(run, REASON_PREPARED_STATEMENT_DID_NOT_EXIST);
	if (request_is(first, REQUEST_REFUSED))
		return tell_refusal(run, REASON_PREPARED_STATEMENTS_TOO_LARGE);
	if (request_is(first, REQUEST_STALE) && report_is(report, "26000"))
		return tell_stale(run);
	return RELAY_PASS;
}

/* Nothing of what was sent is done until the next Sync, or the end of the Query. */
static void skip_requests(struct server_link *server)
{
	const bool skips = is_extended(first_request(server));

	if (server->copy)
		requests_end_copy(&server->requests, PQ_COPY_DONE, PQ_COPY_FAIL);
	server->copy = COPY_NONE;
	if (server->request_error == REQUEST_ERROR_NONE)
		server->request_error = REQUEST_ERROR_UNTIL_READY;
	if (skips) {
		statements_failed(server);
		requests_drop_until(&server->requests, PQ_SYNC);
		server->request_error = requests_is_empty(&server->requests)
			? REQUEST_ERROR_UNTIL_SYNC
			: REQUEST_ERROR_UNTIL_READY;
	}
	statements_lost(server);
}

static enum verdict judge_error(struct relay_run *run)
{
	struct server_link *server = run->server;
	struct report report;
	enum verdict verdict;

	/* The last words of a dying server, between two clients: nobody's business. */
	if (is_unasked(run) && server_mode(server) != POOL_MODE_SESSION)
		return RELAY_DROP;
	read_error(run, &report);
	if (replay_begin(run, &report))
		return RELAY_DROP;
	if (run->client)
		pool_count_error(server->link.pool, report.sqlstate);
	if (report_is(&report, "25006"))
		failover_server_is_read_only(server);
	verdict = tell_error(run, &report);
	skip_requests(server);
	return verdict;
}

/* NoticeResponse and NotificationResponse may come at any time and change nothing. */
static enum verdict judge_notice(struct relay_run *run)
{
	if (is_unasked(run))
		run->requested = run->whole ? run->at + run->frame.total : NULL;
	return RELAY_PASS;
}

/* ReadyForQuery ends a Query, a FunctionCall or a Sync. Does it go on to the client? */
static inline enum verdict end_request(struct server_link *server)
{
	const struct request *first = first_request(server);
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

/* The batch has failed for a reason that is none of the client's: it is said again. */
static enum verdict begin_anew(struct relay_run *run, char status)
{
	run->server->replaying = false;
	run->server->transaction_status = status;
	run->replay_due = true;
	return RELAY_DROP;
}

/* What the batch had to say so far is not told either. */
static enum verdict refuse_transaction(struct relay_run *run)
{
	run->count = 0;
	run->slice = run->at;
	return relay_fail(run, failure_of(REASON_TRANSACTION_BLOCKS_NOT_ALLOWED));
}

/*
 * True: that was the last of all, and the server's status is known. The verdict is for the message
 * itself.
 */
static inline bool take_ready(struct relay_run *run, char status, enum verdict *verdict)
{
	struct server_link *server = run->server;

	*verdict = end_request(server);
	if (server->replaying) {
		*verdict = begin_anew(run, status);
		return false;
	}
	run->requested = run->at + run->frame.total;
	*verdict = with_our_answers(run, *verdict);
	if (!requests_is_empty(&server->requests) && first_request(server)) {
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
		/* What has been sent behind the BEGIN is said in a transaction. */
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
 * Protocol: "Streaming Replication Protocol", START_REPLICATION. What flows now both ways ends
 * when somebody wants it to: it is no query that could take too long.
 */
static enum verdict judge_copy_both(struct relay_run *run)
{
	if (!run->server->replication)
		return judge_unknown_from_server(run);
	run->server->copy = COPY_BOTH;
	query_clocks_stop(run->client, 'I');
	return RELAY_PASS;
}

/* --- from one whose client has gone: see session/pool/draining --------------------------------- */

static enum verdict judge_drained_ready(struct relay_run *run)
{
	enum verdict verdict = RELAY_DROP;
	size_t length;
	const uint8_t *status = relay_body(run, &length);

	if (length != 1 || !relay_is_status(*status))
		return relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	/* What it says once too often may be the answer to somebody else's query later. */
	if (run->server->transaction_status != 0)
		run->server->dirty = true;
	else if (!take_ready(run, (char)*status, &verdict))
		draining_next_request(run->server);
	return verdict == RELAY_AGAIN ? RELAY_AGAIN : RELAY_DROP;
}

static enum verdict judge_drained_copy_in(struct relay_run *run)
{
	judge_copy_in(run);
	if (!draining_end_copy(run->server))
		return relay_fail(run, failure_of(REASON_CLIENT_DISCONNECT_NOT_READY));
	return RELAY_DROP;
}

/* --- the tables --------------------------------------------------------------------------- */

/*
 * Each table says first what all types mean and then which of them mean something else, so the
 * later initializer of the same element is the one that is meant.
 */
#pragma GCC diagnostic ignored "-Woverride-init"

/*
 * What a server's answers mean to what it owes, whether or not its client is still there: in these
 * rows' judges run->client may be NULL, and what passes then goes to nobody.
 */
#define ANSWERS                                                                                \
	RELAY_EVERY(judge_unknown_from_server),                                                \
		[PQ_DATA_ROW] = RELAY_PASSES, [PQ_COPY_DATA] = RELAY_PASSES,                   \
		[PQ_COPY_DONE] = RELAY_PASSES, [PQ_COPY_OUT_RESPONSE] = RELAY_PASSES,          \
		[PQ_PARAMETER_DESCRIPTION] = {judge_parameter_description},                    \
		[PQ_FUNCTION_CALL_RESPONSE] = RELAY_PASSES,                                    \
		[PQ_PARSE_COMPLETE] = {judge_parse_complete},                                  \
		[PQ_BIND_COMPLETE] = {judge_bind_complete},                                    \
		[PQ_CLOSE_COMPLETE] = {judge_close_complete},                                  \
		[PQ_ROW_DESCRIPTION] = {judge_description},                                    \
		[PQ_NO_DATA] = {judge_description},                                            \
		[PQ_EMPTY_QUERY_RESPONSE] = {judge_executed},                                  \
		[PQ_PORTAL_SUSPENDED] = {judge_executed},                                      \
		[PQ_COMMAND_COMPLETE] = {judge_command_complete, .whole = true},               \
		[PQ_ERROR_RESPONSE] = {judge_error, .whole = true},                            \
		[PQ_NOTICE_RESPONSE] = {judge_notice},                                         \
		[PQ_NOTIFICATION_RESPONSE] = {judge_notice},                                   \
		[PQ_PARAMETER_STATUS] = {judge_parameter, .whole = true}

const struct relay_rule relay_paired_server[RELAY_TYPES] = {
	ANSWERS,
	[PQ_COPY_IN_RESPONSE] = {judge_copy_in},
	[PQ_COPY_BOTH_RESPONSE] = {judge_copy_both},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};

const struct relay_rule relay_reset_server[RELAY_TYPES] = {
	ANSWERS,
	[PQ_COPY_IN_RESPONSE] = {judge_copy_in},
	[PQ_READY_FOR_QUERY] = {restore_judge_ready, .whole = true},
};

const struct relay_rule relay_draining_server[RELAY_TYPES] = {
	ANSWERS,
	[PQ_COPY_IN_RESPONSE] = {judge_drained_copy_in},
	[PQ_READY_FOR_QUERY] = {judge_drained_ready, .whole = true},
};
