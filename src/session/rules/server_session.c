/* SPDX-License-Identifier: ISC */
#include "session/rules/server_session.h"

#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/parameters/parameter_sync.h"
#include "session/pool/draining.h"
#include "session/pool/pairing.h"
#include "session/relay/relay.h"
#include "session/relay/relay_rules.h"
#include "session/server/server_login.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/writer.h"

bool link_set_parameter(struct link *link, unsigned index, const char *value)
{
	struct registry *registry = link_registry(link);

	return link_take_parameters(
		link, parameters_with(registry->parameters, link->parameters, index, value));
}

bool server_ask(struct server_link *server, const char *sql)
{
	struct buffer message;
	bool sent;

	buffer_init(&message);
	writer_query(&message, sql);
	server->link.rules = relay_own_server;
	server->transaction_status = 0;
	server->unnamed = 0;
	sent = !message.failed && requests_add(&server->requests, PQ_QUERY, REQUEST_SWALLOW) &&
		stream_send_bytes(&server->link.stream, message.data, message.length) !=
			STREAM_SENT_NOT;
	buffer_free(&message);
	if (!sent)
		server_close_for(server, REASON_SERVER_CONNECTION_CLOSED);
	return sent;
}

const char *server_prelude(const struct server_link *server)
{
	return server->connect_query_failed
		? NULL
		: server->link.pool->database->config->connect_query;
}

void server_own_error(struct server_link *server, const uint8_t *body, size_t length)
{
	struct report report;
	const char *severity, *text;

	report_parse(body, length, &report);
	severity = report.severity ? report.severity : "ERROR";
	text = report.text ? report.text : "no message";
	if (server->setting)
		link_log_repeated(&server->link, LEVEL_ERROR, "varcache_apply failed: %s: %s",
			severity, text);
	else if (server->link.state == SERVER_PREPARING)
		link_log_repeated(&server->link, LEVEL_ERROR,
			"S: error while executing exec_on_query: %s: %s", severity, text);
	else if (server->drained)
		server->dirty = true;
	server->connect_query_failed =
		server->connect_query_failed || server->link.state == SERVER_PREPARING;
	/* Else errors of reset and check queries are not looked at: their ReadyForQuery counts. */
}

void server_own_done(struct server_link *server)
{
	switch (server_state(server)) {
	case SERVER_PAIRED:
		parameter_sync_done(server);
		break;
	case SERVER_LOOKING_UP:
		lookup_done(server);
		break;
	case SERVER_DRAINING:
		draining_own_done(server);
		break;
	case SERVER_PREPARING:
		if (server->transaction_status == 'I')
			server_login_done(server);
		else
			server_close_for(server, REASON_RESET_QUERY_FAILED);
		break;
	case SERVER_RESETTING:
	case SERVER_CHECKING:
		if (server_is_clean(server))
			pairing_tested(server);
		else
			server_close_for(server,
				server->link.state == SERVER_RESETTING
					? REASON_RESET_QUERY_FAILED
					: REASON_TEST_QUERY_FAILED);
		break;
	case SERVER_CONNECTING:
	case SERVER_AUTHENTICATING:
	case SERVER_IDLE:
	case SERVER_HELD:
	case SERVER_STALE:
	case SERVER_CANCELING:
	case SERVER_CLOSED:
	case SERVER_STATES:
		break;
	}
}

/* --- events ------------------------------------------------------------------------------- */

static void on_readable(struct stream *stream)
{
	relay_server_readable((struct server_link *)stream);
}

/* The server has taken all that was written: its client may be read again. */
static void on_drained(struct stream *stream)
{
	struct server_link *server = (struct server_link *)stream;
	struct client_link *client;

	if (server->link.state == SERVER_DRAINING)
		draining_proceed(server, 0);
	if (!server->link.peer)
		return;
	client = client_of(server->link.peer);
	if (!client->ring_full && !server->setting && !server->replaying)
		stream_resume(&client->link.stream);
	pairing_settle(server);
}

const struct stream_handlers server_session_handlers = {
	.readable = on_readable,
	.drained = on_drained,
};

/* It is to come to rest. */
static void on_last_readable(struct stream *stream)
{
	relay_receive_rest((struct link *)stream);
}

const struct stream_handlers server_resting_handlers = {
	.readable = on_last_readable,
	.drained = on_drained,
};
