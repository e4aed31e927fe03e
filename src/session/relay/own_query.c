/* SPDX-License-Identifier: ISC */
#include "session/relay/own_query.h"

#include "session/link/close.h"
#include "session/relay/relay_rules.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/writer.h"

bool own_query_send(struct server_link *server, const char *sql)
{
	struct buffer message;

	buffer_init(&message);
	writer_query(&message, sql);
	server_set_task(server, SERVER_TASK_OWN_QUERY);
	server->transaction_status = 0;
	server->unnamed = 0;
	if (requests_add(&server->requests, PQ_QUERY, REQUEST_SWALLOW) &&
		link_send(&server->link, &message))
		return true;
	buffer_free(&message);
	server_close_for(server, REASON_SERVER_CONNECTION_CLOSED);
	return false;
}

const char *own_query_connect_query(const struct server_link *server)
{
	return server->connect_query_failed
		? NULL
		: server->link.pool->database->config->connect_query;
}

void own_query_error(struct server_link *server, const uint8_t *body, size_t length)
{
	struct report report;
	const char *severity, *text;

	report_parse(body, length, &report);
	severity = report.severity ? report.severity : "ERROR";
	text = report.text ? report.text : "no message";
	if (server_is_syncing(server))
		link_log_repeated(&server->link, LEVEL_ERROR, "varcache_apply failed: %s: %s",
			severity, text);
	else if (server->link.state == SERVER_PREPARING)
		link_log_repeated(&server->link, LEVEL_ERROR,
			"S: error while executing exec_on_query: %s: %s", severity, text);
	else if (server->drained ||
		(server->link.state == SERVER_RESETTING && report_is_time_limit(&report)))
		server->dirty = true; /* the session is not reset */
	server->connect_query_failed =
		server->connect_query_failed || server->link.state == SERVER_PREPARING;
	/* Errors of other reset and check queries are ignored: their ReadyForQuery decides. */
}
