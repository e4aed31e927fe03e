/* SPDX-License-Identifier: ISC */
#include "session/relay_rules.h"

#include <string.h>

#include "model/client_group.h"
#include "session/auth_query.h"
#include "session/failover.h"
#include "session/pairing.h"
#include "session/server_session.h"
#include "wire/message.h"
#include "wire/parameters.h"
#include "wire/reader.h"
#include "wire/report.h"

/* --- clocks ------------------------------------------------------------------------------- */

/* A query cycle begins with its first message, a transaction with its first query. */
static void start_clocks(struct client_link *client)
{
	struct totals *totals = &client->link.pool->stats.current;
	const usec_t now = loop_now(client->link.stream.loop);

	if (client->query_start == 0) {
		client->query_start = now;
		totals->queries++;
	}
	if (client->transaction_start == 0) {
		client->transaction_start = now;
		totals->transactions++;
	}
}

/* Its time with a server: what it waited for one before has been counted as a wait. */
static uint64_t time_with_server(const struct client_link *client, usec_t start, usec_t now)
{
	return (uint64_t)(now - (start > client->served ? start : client->served));
}

static void add_latencies(const struct client_link *client, bool ends_transaction, usec_t now)
{
	struct latency *latency = client->link.pool->latency;
	const usec_t query = client->query_start, transaction = client->transaction_start;

	if (!latency)
		return;
	if (ends_transaction && query && query == transaction) {
		latency_add_single(latency, time_with_server(client, query, now));
		return;
	}
	if (query)
		latency_add(latency, LATENCY_QUERY, time_with_server(client, query, now));
	if (ends_transaction && transaction)
		latency_add(latency, LATENCY_TRANSACTION,
			time_with_server(client, transaction, now));
}

/* For those who watch single queries. */
__attribute__((noinline, cold)) static void log_times(
	const struct client_link *client, bool ends_transaction, usec_t now)
{
	if (client->query_start)
		link_log(&client->link, LEVEL_DEBUG, "query time: %lld us",
			(long long)(now - client->query_start));
	if (ends_transaction && client->transaction_start)
		link_log(&client->link, LEVEL_DEBUG, "transaction time: %lld us",
			(long long)(now - client->transaction_start));
}

/* Nothing is owed any more: the query is over, and in status I the transaction too. */
static void stop_clocks(struct client_link *client, char status)
{
	struct totals *totals = &client->link.pool->stats.current;
	const usec_t now = loop_now(client->link.stream.loop);

	add_latencies(client, status == 'I', now);
	if (log_enabled(LEVEL_DEBUG))
		log_times(client, status == 'I', now);
	if (client->query_start) {
		totals->query_time += (uint64_t)(now - client->query_start);
		client->query_start = 0;
	}
	if (status == 'I' && client->transaction_start) {
		totals->transaction_time += (uint64_t)(now - client->transaction_start);
		client->transaction_start = 0;
	}
}

/* --- from a client ------------------------------------------------------------------------ */

/* Protocol: "Message Flow", Extended Query and Simple Query: every one of these is answered. */
static enum verdict judge_request(struct relay_run *run)
{
	struct server_link *server = run->server;

	/* What is skipped needs no place in the ring, which might not have enough of them. */
	if (!server->skipping || run->frame.type == PQ_SYNC) {
		if (!requests_add(&server->requests, run->frame.type, REQUEST_FORWARD)) {
			run->client->ring_full = true;
			return RELAY_HOLD;
		}
		server->skipping = false;
	}
	server->transaction_status = 0;
	start_clocks(run->client);
	return RELAY_PASS;
}

static enum verdict judge_query(struct relay_run *run)
{
	if (link_registry(run->from)->settings->disable_pqexec) {
		link_log_repeated(run->from, LEVEL_ERROR, "client used \"Query\" packet type");
		return relay_fail(run, failure_of(REASON_PQEXEC_DISALLOWED));
	}
	return judge_request(run);
}

/*
 * The end of a COPY has an entry of its own: Syncs before it are not answered. What comes when
 * the server owes nothing is the tail of a COPY that has failed: nobody waits for it.
 */
static enum verdict judge_copy_end(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (!server->copying_in && requests_is_empty(&server->requests))
		return RELAY_DROP;
	if (!requests_add(&server->requests, run->frame.type, REQUEST_FORWARD)) {
		run->client->ring_full = true;
		return RELAY_HOLD;
	}
	return RELAY_PASS;
}

static enum verdict judge_terminate(struct relay_run *run)
{
	return relay_fail(run, failure_of(REASON_CLIENT_CLOSE_REQUEST));
}

static enum verdict judge_unknown_from_client(struct relay_run *run)
{
	link_log_repeated(run->from, LEVEL_ERROR, "unknown pkt from client: %u/0x%x",
		run->frame.type, run->frame.type);
	return relay_fail(run, failure_of(REASON_UNKNOWN_PKT));
}

/* Have a server for an idle client. */
static enum verdict take_server(struct relay_run *run)
{
	switch (pairing_take(run->client)) {
	case TAKEN_READY:
		run->server = server_of(run->from->peer);
		return RELAY_AGAIN;
	case TAKEN_SETTING:
	case TAKEN_WAITING:
		return RELAY_HOLD;
	case TAKEN_CLOSED:
		break;
	}
	return RELAY_STOP;
}

/* The first message of an idle client: now it needs a server. */
static enum verdict judge_first_request(struct relay_run *run)
{
	start_clocks(run->client);
	return take_server(run);
}

/*
 * Flush is answered by nothing: so it has no place in the ring and starts no clock. With a body it
 * would be answered by an error and by silence, which might come when somebody else has the server.
 */
static enum verdict judge_flush(struct relay_run *run)
{
	return run->frame.total == FRAME_HEADER_SIZE ? RELAY_PASS : relay_refuse_header(run);
}

static enum verdict judge_first_flush(struct relay_run *run)
{
	return run->frame.total == FRAME_HEADER_SIZE ? take_server(run)
						     : relay_refuse_header(run);
}

/* CopyData, CopyDone and CopyFail of a COPY that failed long ago. */
static enum verdict judge_late_copy(struct relay_run *run)
{
	(void)run;
	return RELAY_DROP;
}

/* --- from a paired server ----------------------------------------------------------------- */

/* The oldest request, past the end of a COPY that never began. */
static const struct request *first_request(struct server_link *server)
{
	const struct request *first;

	while ((first = requests_first(&server->requests)) != NULL) {
		if ((first->type != PQ_COPY_DONE && first->type != PQ_COPY_FAIL) ||
			server->copying_in)
			break;
		requests_drop(&server->requests);
	}
	return first;
}

static void drop_if(struct server_link *server, uint8_t type)
{
	const struct request *first = requests_first(&server->requests);

	/* A simple Query is ended by its ReadyForQuery and by nothing before. */
	if (!first || first->type == PQ_QUERY)
		return;
	first = first_request(server);
	if (first && first->type == type)
		requests_drop(&server->requests);
}

static enum verdict judge_parse_complete(struct relay_run *run)
{
	drop_if(run->server, PQ_PARSE);
	return RELAY_PASS;
}

static enum verdict judge_bind_complete(struct relay_run *run)
{
	drop_if(run->server, PQ_BIND);
	return RELAY_PASS;
}

static enum verdict judge_close_complete(struct relay_run *run)
{
	drop_if(run->server, PQ_CLOSE);
	return RELAY_PASS;
}

/* RowDescription and NoData answer Describe. */
static enum verdict judge_description(struct relay_run *run)
{
	drop_if(run->server, PQ_DESCRIBE);
	return RELAY_PASS;
}

/* EmptyQueryResponse and PortalSuspended answer Execute. */
static enum verdict judge_executed(struct relay_run *run)
{
	drop_if(run->server, PQ_EXECUTE);
	return RELAY_PASS;
}

static enum verdict judge_command_complete(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (!server->copying_in)
		return judge_executed(run);
	requests_end_copy(&server->requests, PQ_COPY_DONE, PQ_COPY_DONE);
	server->copying_in = false;
	return RELAY_PASS;
}

static enum verdict judge_copy_in(struct relay_run *run)
{
	run->server->copying_in = true;
	return RELAY_PASS;
}

/*
 * Is the message one that the server sends of itself: it has answered everything, and said
 * nothing else since?
 */
static bool is_unasked(const struct relay_run *run)
{
	return run->quiet && run->quiet == run->at;
}

/* Protocol: "Message Flow", Extended Query: an error in it is followed by silence up to a Sync. */
static bool is_extended(const struct request *request)
{
	return request && request->type != PQ_QUERY && request->type != PQ_FUNCTION_CALL &&
		request->type != PQ_SYNC;
}

/* An error is passed on. The code stands in front, so half a message will do. */
static void note_error(const struct relay_run *run)
{
	static const char read_only_sql_transaction[] = "25006";
	const size_t there = (size_t)(run->end - run->at);
	struct report report;

	report_parse(run->at + FRAME_HEADER_SIZE,
		(there < run->frame.total ? there : run->frame.total) - FRAME_HEADER_SIZE,
		&report);
	pool_count_error(run->server->link.pool, report.sqlstate);
	if (report.sqlstate && strcmp(report.sqlstate, read_only_sql_transaction) == 0)
		failover_server_is_read_only(run->server);
}

static enum verdict judge_error(struct relay_run *run)
{
	struct server_link *server = run->server;
	bool skips;

	/* The last words of a dying server, between two clients: nobody's business. */
	if (is_unasked(run) && pool_mode(server->link.pool) != POOL_MODE_SESSION)
		return RELAY_DROP;
	note_error(run);
	skips = is_extended(first_request(server));
	if (server->copying_in)
		requests_end_copy(&server->requests, PQ_COPY_DONE, PQ_COPY_FAIL);
	server->copying_in = false;
	server->request_failed = true;
	if (skips) {
		requests_drop_until(&server->requests, PQ_SYNC);
		server->skipping = requests_is_empty(&server->requests);
	}
	return RELAY_PASS;
}

/* NoticeResponse and NotificationResponse may come at any time and change nothing. */
static enum verdict judge_notice(struct relay_run *run)
{
	if (is_unasked(run))
		run->quiet = run->whole ? run->at + run->frame.total : NULL;
	return RELAY_PASS;
}

static bool is_status(uint8_t status)
{
	return status == 'I' || status == 'T' || status == 'E';
}

/* ReadyForQuery ends a Query, a FunctionCall or a Sync. */
static enum verdict judge_ready(struct relay_run *run)
{
	struct server_link *server = run->server;
	const struct request *first = first_request(server);
	size_t length;
	const uint8_t *status = relay_body(run, &length);

	if (length != 1 || !is_status(*status))
		return relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	if (first &&
		(first->type == PQ_QUERY || first->type == PQ_SYNC ||
			first->type == PQ_FUNCTION_CALL))
		requests_drop(&server->requests);
	else if (server->request_failed)
		requests_drop_through(&server->requests, PQ_SYNC, PQ_SYNC);
	server->request_failed = server->skipping = false;
	server->copying_in = false;
	if (!requests_is_empty(&server->requests) && first_request(server))
		return RELAY_PASS;
	server->transaction_status = (char)*status;
	run->quiet = run->at + run->frame.total;
	stop_clocks(run->client, (char)*status);
	if (*status != 'I' && pool_mode(server->link.pool) == POOL_MODE_STATEMENT) {
		/* What the batch had to say so far is not told either. */
		run->count = 0;
		run->slice = run->at;
		return relay_fail(run, failure_of(REASON_TRANSACTION_BLOCKS_NOT_ALLOWED));
	}
	return RELAY_PASS;
}

/*
 * Remember a ParameterStatus for the server, and for its client. False: the message is broken or
 * there is no memory.
 */
static bool remember_parameter(struct relay_run *run)
{
	struct registry *registry = link_registry(run->from);
	struct reader reader;
	size_t length;
	const uint8_t *body = relay_body(run, &length);
	const char *name, *value;
	int index;

	reader_init(&reader, body, length);
	name = reader_string(&reader);
	value = reader_string(&reader);
	if (reader.failed)
		return false;
	index = parameter_index(registry->parameters, name);
	if (index < 0)
		return true;
	if (!server_set_parameter(run->from, (unsigned)index, value))
		return false;
	if (!run->client || run->server->setting)
		return true;
	if (!server_set_parameter(&run->client->link, (unsigned)index, value))
		return false;
	client_group_join(run->client);
	return true;
}

static enum verdict judge_parameter(struct relay_run *run)
{
	if (!run->whole || !remember_parameter(run))
		return relay_fail(run, failure_of(REASON_BROKEN_PARAMETER_STATUS));
	return judge_notice(run);
}

static enum verdict judge_unknown_from_server(struct relay_run *run)
{
	link_log_repeated(run->from, LEVEL_ERROR, "unknown pkt from server: '%c'",
		run->frame.type >= ' ' && run->frame.type < 127 ? run->frame.type : '?');
	return relay_fail(run, failure_of(REASON_UNKNOWN_SERVER_PKT));
}

/* --- from a server that answers us -------------------------------------------------------- */

static enum verdict judge_own_answer(struct relay_run *run)
{
	(void)run;
	return RELAY_DROP;
}

static enum verdict judge_own_parameter(struct relay_run *run)
{
	if (!run->whole || !remember_parameter(run))
		return relay_fail(run, failure_of(REASON_BROKEN_PARAMETER_STATUS));
	return RELAY_DROP;
}

static enum verdict judge_own_error(struct relay_run *run)
{
	size_t length;

	if (run->whole) {
		const uint8_t *body = relay_body(run, &length);

		server_own_error(run->server, body, length);
	}
	return RELAY_DROP;
}

/* Class 57 is the operator's: the server ends, whatever we ask of it. */
static bool is_last_word(const struct relay_run *run)
{
	struct report report;
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	report_parse(body, length, &report);
	return report.sqlstate && strncmp(report.sqlstate, "57P", 3) == 0;
}

static enum verdict judge_set_error(struct relay_run *run)
{
	if (run->whole && is_last_word(run))
		return relay_fail(run, failure_of(REASON_SERVER_CONN_CRASHED));
	judge_own_error(run);
	return relay_fail(run, failure_of(REASON_INVALID_SERVER_PARAMETER));
}

/* What comes behind the end of our own query was not asked for. */
static enum verdict end_own(struct relay_run *run, char status)
{
	requests_clear(&run->server->requests);
	run->server->transaction_status = status;
	run->own_done = true;
	run->from->rules = relay_unused_server;
	return RELAY_DROP;
}

static enum verdict judge_own_ready(struct relay_run *run)
{
	size_t length;
	const uint8_t *status = relay_body(run, &length);

	if (length != 1 || !is_status(*status))
		return relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	return end_own(run, (char)*status);
}

/* --- from a server that looks up a user for us -------------------------------------------- */

/* One that is too long to be whole is longer than any secret. */
static enum verdict judge_looked_up(struct relay_run *run)
{
	enum reason why = REASON_AUTH_QUERY_FAILED;
	size_t length;
	const uint8_t *body = relay_body(run, &length);
	enum auth_query_progress progress = AUTH_QUERY_BROKEN;

	if (run->whole)
		progress = auth_query_answer(run->server, run->frame.type, body, length, &why);
	switch (progress) {
	case AUTH_QUERY_GOES_ON:
		return RELAY_DROP;
	case AUTH_QUERY_ENDS:
		return end_own(run, READY_IDLE);
	case AUTH_QUERY_BROKEN:
		break;
	}
	return relay_fail(run, failure_of(why));
}

/* --- from a server that was asked nothing ------------------------------------------------- */

static enum verdict judge_unused(struct relay_run *run)
{
	const uint8_t type = run->frame.type;

	if (!run->server->dirty)
		link_log_repeated(run->from, LEVEL_WARNING,
			"got packet '%c' from server when not linked",
			type >= ' ' && type < 127 ? type : '?');
	run->server->dirty = true;
	return RELAY_DROP;
}

static enum verdict judge_unused_notification(struct relay_run *run)
{
	(void)run;
	return RELAY_DROP;
}

/* --- the tables --------------------------------------------------------------------------- */

/*
 * Each table says first what all types mean and then which of them mean something else, so the
 * later initializer of the same element is the one that is meant.
 */
#pragma GCC diagnostic ignored "-Woverride-init"

#define EVERY(judge) [0 ... RELAY_TYPES - 1] = {judge, .at_once = true}
#define PASSES                                                                                 \
	{                                                                                      \
		NULL                                                                           \
	}

const struct relay_rule relay_idle_client[RELAY_TYPES] = {
	EVERY(judge_unknown_from_client),
	[PQ_QUERY] = {judge_first_request},
	[PQ_PARSE] = {judge_first_request},
	[PQ_BIND] = {judge_first_request},
	[PQ_DESCRIBE] = {judge_first_request},
	[PQ_EXECUTE] = {judge_first_request},
	[PQ_CLOSE] = {judge_first_request},
	[PQ_SYNC] = {judge_first_request},
	[PQ_FLUSH] = {judge_first_flush, .at_once = true},
	[PQ_FUNCTION_CALL] = {judge_first_request},
	[PQ_COPY_DATA] = {judge_late_copy},
	[PQ_COPY_DONE] = {judge_late_copy},
	[PQ_COPY_FAIL] = {judge_late_copy},
	[PQ_TERMINATE] = {judge_terminate},
};

const struct relay_rule relay_paired_client[RELAY_TYPES] = {
	EVERY(judge_unknown_from_client),
	[PQ_QUERY] = {judge_query},
	[PQ_PARSE] = {judge_request},
	[PQ_BIND] = {judge_request},
	[PQ_DESCRIBE] = {judge_request},
	[PQ_EXECUTE] = {judge_request},
	[PQ_CLOSE] = {judge_request},
	[PQ_SYNC] = {judge_request},
	[PQ_FUNCTION_CALL] = {judge_request},
	[PQ_FLUSH] = {judge_flush, .at_once = true},
	[PQ_COPY_DATA] = PASSES,
	[PQ_COPY_DONE] = {judge_copy_end},
	[PQ_COPY_FAIL] = {judge_copy_end},
	[PQ_TERMINATE] = {judge_terminate},
};

const struct relay_rule relay_paired_server[RELAY_TYPES] = {
	EVERY(judge_unknown_from_server),
	[PQ_DATA_ROW] = PASSES,
	[PQ_COPY_DATA] = PASSES,
	[PQ_COPY_DONE] = PASSES,
	[PQ_COPY_OUT_RESPONSE] = PASSES,
	[PQ_PARAMETER_DESCRIPTION] = PASSES,
	[PQ_FUNCTION_CALL_RESPONSE] = PASSES,
	[PQ_PARSE_COMPLETE] = {judge_parse_complete},
	[PQ_BIND_COMPLETE] = {judge_bind_complete},
	[PQ_CLOSE_COMPLETE] = {judge_close_complete},
	[PQ_ROW_DESCRIPTION] = {judge_description},
	[PQ_NO_DATA] = {judge_description},
	[PQ_EMPTY_QUERY_RESPONSE] = {judge_executed},
	[PQ_PORTAL_SUSPENDED] = {judge_executed},
	[PQ_COMMAND_COMPLETE] = {judge_command_complete},
	[PQ_COPY_IN_RESPONSE] = {judge_copy_in},
	[PQ_COPY_BOTH_RESPONSE] = {judge_copy_in},
	[PQ_ERROR_RESPONSE] = {judge_error},
	[PQ_NOTICE_RESPONSE] = {judge_notice},
	[PQ_NOTIFICATION_RESPONSE] = {judge_notice},
	[PQ_PARAMETER_STATUS] = {judge_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};

const struct relay_rule relay_setting_server[RELAY_TYPES] = {
	EVERY(judge_own_answer),
	[PQ_ERROR_RESPONSE] = {judge_set_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_own_ready, .whole = true},
};

const struct relay_rule relay_own_server[RELAY_TYPES] = {
	EVERY(judge_own_answer),
	[PQ_ERROR_RESPONSE] = {judge_own_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_own_ready, .whole = true},
};

const struct relay_rule relay_lookup_server[RELAY_TYPES] = {
	[0 ... RELAY_TYPES - 1] = {judge_looked_up, .whole = true},
	[PQ_NOTICE_RESPONSE] = {judge_own_answer},
	[PQ_NOTIFICATION_RESPONSE] = {judge_own_answer},
	[PQ_PARAMETER_STATUS] = {judge_own_parameter, .whole = true},
};

const struct relay_rule relay_unused_server[RELAY_TYPES] = {
	EVERY(judge_unused),
	[PQ_NOTIFICATION_RESPONSE] = {judge_unused_notification},
};
