/* SPDX-License-Identifier: ISC */
/* Judges the messages of servers that run our SETs. */
#include <string.h>

#include "model/statements_in_flight.h"
#include "session/notify/delivery.h"
#include "session/parameters/parameter_sync.h"
#include "session/pool/draining.h"
#include "session/pool/pairing.h"
#include "session/relay/own_query.h"
#include "session/relay/pair.h"
#include "session/relay/relay_rules.h"
#include "session/statements/statement_answers.h"
#include "wire/message.h"
#include "wire/report.h"

/* --- the SETs fail ------------------------------------------------------------------------ */

/* Returns the reason to close the server with. */
static enum reason reason_of_error(const struct server_link *server)
{
	/* The RESET of a parameter of another client may have failed. */
	return !server_has_gathered(server) && parameters_has_followed(server->link.parameters)
		? REASON_RESET_QUERY_FAILED
		: REASON_INVALID_SERVER_PARAMETER;
}

/*
 * Does the client get the server's error for its query? Else both are closed, as PgBouncer does.
 * Another server may take temp_buffers, which cannot change after the first temporary table of a
 * session; nor is the client at fault if a RESET or connect_query failed.
 */
static bool is_told(const struct relay_run *run)
{
	const struct server_link *server = run->server;
	const struct pool *pool = server->link.pool;

	if (!run->whole || !run->client || server->pins ||
		pool->session_state == SESSION_STATE_IGNORE ||
		pool->registry->process->settings->startup_parameters == STARTUP_STRICT)
		return false;
	if (server_has_gathered(server))
		return true;
	return server->sync_resets == 0 &&
		((!server->sync_reused && !parameters_has_followed(server->link.parameters)) ||
			!parameters_get_followed(run->client->link.parameters, "temp_buffers"));
}

/* Keep the first error. Messages that were sent behind the SETs are kept there. */
static enum verdict keep_refusal(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (!server->sync_refused && !server_has_gathered(server)) {
		buffer_clear(&server->kept);
		buffer_append(&server->kept, run->at, run->frame.total);
	}
	server->sync_refused = true;
	return RELAY_DROP;
}

/*
 * Has a time limit that another client has left ended our SETs? Not in a session that had no
 * client before: another one would have the same limit.
 */
static bool hit_time_limit(const struct server_link *server)
{
	return server->sync_reused && !server->sync_canceled;
}

static enum verdict judge_set_error(struct relay_run *run)
{
	struct server_link *server = run->server;
	struct report report = {0};
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		report_parse(body, length, &report);
	if (report_ends_session(&report)) {
		/* It has not run the messages after the SETs. */
		parameter_sync_take_back(server);
		return relay_fail(run,
			failure_of(report_is_time_limit(&report) && hit_time_limit(server)
					? REASON_SETTING_TIMED_OUT
					: REASON_SERVER_CONN_CRASHED));
	}
	if (run->whole)
		own_query_error(server, body, length);
	if (!report_is(&report, "57014") &&
		!(report_is_time_limit(&report) && hit_time_limit(server)))
		return is_told(run) ? keep_refusal(run)
				    : relay_fail(run, failure_of(reason_of_error(server)));
	server->request_error = REQUEST_ERROR_UNTIL_READY;
	return RELAY_DROP;
}

/*
 * A time limit of another client has hit our SETs, or a cancel request, which was meant for the
 * query of the client.
 */
static enum verdict end_canceled(struct relay_run *run, char status)
{
	struct server_link *server = run->server;

	if (status == READY_FAILED_TRANSACTION)
		parameter_sync_take_back(server);
	return relay_fail(run,
		failure_of(hit_time_limit(server) ? REASON_SETTING_TIMED_OUT
						  : REASON_SETTING_CANCELED));
}

/*
 * The client waits for a server again, and this one refuses the messages that were sent with the
 * SETs. It has its old parameters: the SETs were a part of the failed transaction. If the client has
 * left since the error, the server is closed, as it is when the client leaves before that.
 */
static enum verdict end_refused(struct relay_run *run, char status)
{
	struct server_link *server = run->server;
	struct client_link *client = run->client;
	bool cut;

	if (!client)
		return relay_fail(run, failure_of(reason_of_error(server)));
	cut = client->link.remaining > 0 && !client->link.discarding;
	parameter_sync_take_back(server);
	if (status != READY_FAILED_TRANSACTION || server_has_gathered(server))
		return relay_fail(run, failure_of(REASON_RESET_QUERY_FAILED));
	client->refused = true;
	requests_drop(&server->requests);
	if (requests_is_empty(&server->requests))
		server->transaction_status = status;
	run->client = NULL;
	run->to = NULL;
	server_set_task(server, SERVER_TASK_NONE);
	pair_unpair(&server->link);
	server->link.cut = cut;
	pairing_wait(client);
	draining_client_unpaired(server, true);
	return server->link.state == SERVER_CLOSED ? RELAY_STOP : RELAY_DROP;
}

/* --- the SETs succeed --------------------------------------------------------------------- */

static void drop_sync(struct relay_run *run)
{
	struct server_link *server = run->server;

	run->start = run->at + run->frame.total;
	requests_drop(&server->requests);
	server_set_task(server, SERVER_TASK_NONE);
	if (requests_is_empty(&server->requests)) {
		server->transaction_status = READY_IDLE;
		run->requested = run->at + run->frame.total;
	}
}

/* Returns false when out of memory. */
static bool return_to_client(struct server_link *server, struct client_link *client)
{
	/* The client is resumed after this run, or when the server has taken what was sent. */
	if (!stream_is_blocked(&server->link.stream))
		client->ring_full = true;
	return parameter_sync_adopt(client, server);
}

/* From here on the server answers the messages that were sent together with our SETs. */
static enum verdict end_gathered(struct relay_run *run)
{
	struct server_link *server = run->server;

	drop_sync(run);
	if (server->link.state == SERVER_DRAINING) {
		if (!draining_start(server))
			return relay_fail(run, failure_of(REASON_CLIENT_DISCONNECT_NOT_READY));
	} else if (!return_to_client(server, run->client)) {
		return relay_fail(run, failure_of(REASON_NO_MEMORY));
	}
	if (!statements_are_due(server))
		return RELAY_DROP;
	relay_step_over(run, RELAY_DROP);
	statement_answers_insert(run);
	return RELAY_AGAIN;
}

static enum verdict judge_set_complete(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (server->sync_resets > 0 && relay_has_tag(run, "RESET"))
		server->sync_resets--;
	return RELAY_DROP;
}

static enum verdict judge_set_row(struct relay_run *run)
{
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		parameter_sync_take_limit(run->server, body, length);
	return RELAY_DROP;
}

/* SETs that were sent alone may be several queries: the last ends them. */
static enum verdict judge_set_ready(struct relay_run *run)
{
	struct server_link *server = run->server;
	const char status = relay_ready_status(run);

	if (!status)
		return relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	if (server->request_error)
		return end_canceled(run, status);
	if (server->sync_refused && server_has_gathered(server))
		return end_refused(run, status);
	if (server_has_gathered(server))
		return status == READY_IDLE
			? end_gathered(run)
			: relay_fail(run, failure_of(REASON_INVALID_SERVER_PARAMETER));
	if (server->requests.count <= 1 || status != READY_IDLE)
		return relay_end_own(run, status);
	requests_drop(&server->requests);
	return RELAY_DROP;
}

/* --- the table ---------------------------------------------------------------------------- */

/* The first row is the default, which later initializers override. */
#pragma GCC diagnostic ignored "-Woverride-init"

const struct relay_rule relay_syncing_server[RELAY_TYPES] = {
	RELAY_EVERY(relay_drop_own),
	/* A server that is pinned may listen for its client. */
	[PQ_NOTIFICATION_RESPONSE] = {delivery_judge_syncing, .whole = true},
	[PQ_COMMAND_COMPLETE] = {judge_set_complete, .whole = true},
	[PQ_DATA_ROW] = {judge_set_row, .whole = true},
	[PQ_ERROR_RESPONSE] = {judge_set_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {relay_judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_set_ready, .whole = true},
};
