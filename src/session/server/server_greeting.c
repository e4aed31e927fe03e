/* SPDX-License-Identifier: ISC */
#include "session/server/server_greeting.h"

#include "net/tls.h"
#include "session/link/close.h"
#include "session/link/tls_setup.h"
#include "session/server/own_connection.h"
#include "session/server/server_login_state.h"
#include "wire/startup.h"
#include "wire/writer.h"

void server_greeting_start_up(struct server_link *server)
{
	const struct pool *pool = server->link.pool;
	const struct database_config *config = pool->database->config;
	const char *const pairs[][2] = {
		{"database", config->dbname},
		{"client_encoding", config->client_encoding},
		{"datestyle", config->datestyle},
		{"timezone", config->timezone},
		{"application_name",
			server->watches ? "pgusher host watch" : config->application_name},
	};
	struct buffer message;
	size_t mark;

	buffer_init(&message);
	mark = startup_begin(&message, PROTOCOL_3_0);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (!pairs[i][1])
			continue;
		writer_string(&message, pairs[i][0]);
		writer_string(&message, pairs[i][1]);
	}
	server->login->owner->write_startup(server, &message);
	writer_string(&message, "user");
	writer_string(&message, pool->user->name);
	startup_end(&message, mark);
	if (!message.failed)
		own_connection_note_startup(server, message.data, message.length);
	if (link_send(&server->link, &message))
		server_enter(server, SERVER_AUTHENTICATING);
	else
		server_close_for(server, REASON_STARTUP_PKT_FAILED);
}

static void start_tls(struct server_link *server, bool direct)
{
	struct tls_context *context = tls_setup_towards_servers(link_registry(&server->link));
	struct stream *stream = &server->link.stream;

	if (context && tls_connect(stream, context, server->login->route.host, direct))
		return;
	if (tls_error(stream))
		link_log_repeated(&server->link, LEVEL_WARNING, "TLS handshake error: %s",
			tls_error(stream));
	server->login->tls_failed = true;
	server_close_for(server, REASON_CONNECT_FAILED);
}

/* Protocol: "SSL Session Encryption". */
static void request_tls(struct server_link *server)
{
	struct buffer message;

	buffer_init(&message);
	startup_write_request(&message, SSL_REQUEST_CODE);
	server->login->tls_requested = link_send(&server->link, &message);
	if (!server->login->tls_requested)
		server_close_for(server, REASON_SSLREQ_PROCESSING_FAILED);
}

void server_greeting_receive_tls_answer(
	struct server_link *server, const uint8_t *data, size_t length)
{
	const struct settings *settings = link_registry(&server->link)->process->settings;

	server->login->tls_requested = false;
	if (data[0] == 'S' && length > 1)
		server_close_for(server, REASON_UNENCRYPTED_DATA_AFTER_SSL_RESPONSE);
	else if (data[0] == 'S')
		start_tls(server, false);
	else if (data[0] != 'N' || length > 1)
		server_close_for(server, REASON_BAD_SSLREQ_ANSWER);
	else if (settings->server_tls_sslmode >= TLS_MODE_REQUIRE)
		server_close_for(server, REASON_SERVER_REFUSED_SSL);
	else
		server_greeting_start_up(server);
}

/* Unix sockets (route.host is NULL) need no TLS. */
void server_greeting_begin(struct server_link *server)
{
	const struct settings *settings = link_registry(&server->link)->process->settings;

	server->login->tls_requested = false;
	server->login->tls_failed = false;
	if (settings->server_tls_sslmode == TLS_MODE_DISABLE || !server->login->route.host)
		server_greeting_start_up(server);
	else if (settings->server_tls_negotiation == TLS_NEGOTIATION_DIRECT)
		start_tls(server, true);
	else
		request_tls(server);
}
