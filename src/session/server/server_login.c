/* SPDX-License-Identifier: ISC */
#include "session/server/server_login.h"

#include <errno.h>
#include <string.h>

#include "model/peer.h"
#include "net/tls.h"
#include "session/link/close.h"
#include "session/notify/listening_server.h"
#include "session/relay/own_query.h"
#include "session/relay/relay_rules.h"
#include "session/server/host_capacity.h"
#include "session/server/host_fit.h"
#include "session/server/host_probe.h"
#include "session/server/host_report.h"
#include "session/server/host_role.h"
#include "session/server/own_connection.h"
#include "session/server/server_authentication.h"
#include "session/server/server_failure.h"
#include "session/server/server_greeting.h"
#include "session/server/server_login_state.h"
#include "session/server/server_welcome.h"
#include "wire/frame.h"
#include "wire/message.h"

enum {
	/* A server that sends a longer message during its login is closed. */
	MESSAGE_MAX = 64 * 1024,
};

static const struct stream_handlers login_handlers;

/* --- begin -------------------------------------------------------------------------------- */

bool server_login_begin(struct pool *pool, const struct server_link *for_cancel,
	const struct server_login_owner *owner)
{
	struct server_link *server = server_login_new(pool, owner);
	struct server_login *login;

	if (!server)
		return false;
	pool->last_launch = server->link.connect_time;
	login = server->login;
	login->for_cancel = for_cancel != NULL || peer_of_pool(pool) > 0;
	if (for_cancel)
		return server_route_begin_at(
			&login->route, server, for_cancel, &login_handlers);
	return server_route_begin(&login->route, server, &login_handlers);
}

bool server_login_begin_replacement(struct pool *pool, const struct server_login_owner *owner)
{
	struct server_link *server = server_login_new(pool, owner);

	if (!server)
		return false;
	pool->last_launch = server->link.connect_time;
	server->replacement = true;
	return server_route_begin(&server->login->route, server, &login_handlers);
}

bool server_login_begin_listening(struct pool *pool, const struct server_login_owner *owner)
{
	struct server_link *server = server_login_new(pool, owner);

	if (!server)
		return false;
	pool->last_launch = server->link.connect_time;
	listening_server_launched(server);
	return server_route_begin(&server->login->route, server, &login_handlers);
}

bool server_login_begin_watch(
	struct pool *pool, struct host *host, const struct server_login_owner *owner)
{
	struct server_link *server = server_login_new(pool, owner);

	if (!server)
		return false;
	server->watches = true;
	pool->watch_logins++;
	host->watch = server;
	return server_route_begin_for(&server->login->route, server, host, &login_handlers);
}

bool server_login_begin_replication(
	struct client_link *client, const struct server_login_owner *owner)
{
	struct server_link *server = server_login_new(client->link.pool, owner);

	if (!server)
		return false;
	server->replication = client->replication;
	server->launched_for = client;
	client->replica->server = server;
	return server_route_begin(&server->login->route, server, &login_handlers);
}

void server_login_check_progress(struct server_link *server, usec_t now)
{
	if (server->login)
		server_route_check_progress(&server->login->route, now);
}

/* A host name that is still being looked up counts as what hangs later. */
void server_login_time_out(struct server_link *server)
{
	const bool is_connecting =
		server->login && !server->login->route.connected && server->where_length > 0;

	server_close_for(
		server, is_connecting ? REASON_CONNECT_UNANSWERED : REASON_CONNECT_TIMEOUT);
}

/* --- end ---------------------------------------------------------------------------------- */

static void finish(struct server_link *server, struct buffer *head)
{
	const struct server_login_owner *owner = server->login->owner;

	/* Not as a server that has logged in: it may be retired, and would be closed. */
	host_role_lives(server, loop_now(server->link.stream.loop) - server->link.connect_time);
	server_login_free(server);
	counters_connected(server, CONNECT_OK);
	counters_host(server, true);
	server->transaction_status = 'I';
	stream_set_handlers(&server->link.stream, owner->session);
	owner->ready(server, head);
}

/*
 * A replication client gets a welcome with the parameters of its own server; they are not used
 * for other clients.
 */
static void finish_replication(struct server_link *server)
{
	struct buffer head;

	buffer_init(&head);
	server_welcome_write(server, &head);
	finish(server, &head);
	buffer_free(&head);
}

/* The next message is the answer to a query of pgusher's own. */
static void begin_preparing(struct server_link *server)
{
	if (server->link.state == SERVER_PREPARING)
		return;
	server_enter(server, SERVER_PREPARING);
	stream_set_handlers(&server->link.stream, server->login->owner->session);
}

/* The server has logged in and has executed its connect_query: hand it to the login's owner. */
static void end_login(struct server_link *server)
{
	struct pool *pool = server->link.pool;

	if (server->watches) {
		finish(server, NULL);
		return;
	}
	/* Afterwards this function is called again. */
	if (host_capacity_is_due_at_login(server)) {
		begin_preparing(server);
		host_capacity_send(server);
		return;
	}
	pool->login_at = loop_now(pool->registry->loop);
	pool->login_time = pool->login_at - server->link.connect_time;

	/*
	 * Close the server when the pool gets no welcome: no client could log in and use the
	 * server, so further servers would be launched in vain.
	 */
	if (!server->replication && !server_welcome_keep(server)) {
		server_close_for(server, REASON_NO_MEMORY);
		return;
	}
	if (server->replication)
		finish_replication(server);
	else
		finish(server, NULL);
	/* If more clients or cancel requests wait, the next server can be launched now. */
	if (pool_wanted_servers(pool) + pool_welcoming_clients(pool) + pool->cancels_due > 0 ||
		!TAILQ_EMPTY(&pool->cancels))
		pool_needs_work(pool);
}

/* --- messages of a server that logs in ---------------------------------------------------- */

/* A physical replication session cannot execute SQL. What watches a host needs nothing of it. */
static const char *connect_query(const struct server_link *server)
{
	if (server->replication == REPLICATION_PHYSICAL || server->watches)
		return NULL;
	return server->link.pool->database->config->connect_query;
}

/* The role of its host is not what the pool asks for: go on to another one, if there is one. */
static bool has_wrong_role(const struct server_link *server)
{
	return !server->login->route.choice.takes_any && host_fit_refuses(server);
}

static void try_other_role(struct server_link *server)
{
	struct host_choice *choice = &server->login->route.choice;

	host_role_lives(server, 0);
	choice->role_refused =
		choice->role_refused || host_fit_is_preference(server->link.pool);
	choice->answered = true;
	server_login_reset(server);
	server_route_next(&server->login->route, REASON_SERVER_ROLE);
}

/* Its role is as well known as it can be. */
static void take_role(struct server_link *server)
{
	const char *query = connect_query(server);

	host_report_logged_in(server);
	if (has_wrong_role(server)) {
		try_other_role(server);
	} else if (query) {
		begin_preparing(server);
		own_query_send(server, query);
	} else {
		end_login(server);
	}
}

static void on_ready(struct server_link *server, const uint8_t *body, size_t length)
{
	if (!server->login->authenticated || length != 1 || body[0] != 'I') {
		server_close_for(server, REASON_BAD_PKT_HEADER);
	} else if (host_fit_must_be_asked(server)) {
		server->login->asks_role = true;
		begin_preparing(server);
		host_probe_send(server);
	} else {
		take_role(server);
	}
}

void server_login_query_done(struct server_link *server)
{
	if (host_capacity_is_asked(server))
		host_capacity_done(server);
	if (!server->login->asks_role) {
		end_login(server);
		return;
	}
	server->login->asks_role = false;
	take_role(server);
}

static void on_message(
	struct server_link *server, const uint8_t *message, const struct frame *frame)
{
	const uint8_t *body = frame_body(message);
	const size_t length = frame_body_size(frame);

	switch (frame->type) {
	case PQ_AUTHENTICATION:
		server_authentication_answer(server, body, length);
		break;
	case PQ_PARAMETER_STATUS:
		server_welcome_take_parameter(server, message, frame);
		break;
	case PQ_BACKEND_KEY_DATA:
		server_welcome_take_key(server, body, length);
		break;
	case PQ_NOTICE_RESPONSE:
		break;
	case PQ_ERROR_RESPONSE:
		server_failure_receive_error(server, body, length);
		break;
	case PQ_READY_FOR_QUERY:
		on_ready(server, body, length);
		break;
	default:
		link_log_repeated(&server->link, LEVEL_ERROR, "unknown pkt from server: '%c'",
			frame->type >= ' ' && frame->type < 127 ? frame->type : '?');
		server_close_for(server, REASON_UNKNOWN_PKT_FROM_SERVER);
		break;
	}
}

/* --- events ------------------------------------------------------------------------------- */

static void run(struct server_link *server, const uint8_t *data, size_t length)
{
	struct frame frame;
	enum frame_result found = FRAME_SHORT;
	const unsigned attempt = server->login->attempts;

	while (server->link.state <= SERVER_AUTHENTICATING && length > 0) {
		found = frame_peek(data, length, MESSAGE_MAX, &frame);
		if (found != FRAME_WHOLE)
			break;
		on_message(server, data, &frame);
		/* The rest comes from a host that was given up. */
		if (server->login && server->login->attempts != attempt)
			return;
		data += frame.total;
		length -= frame.total;
	}
	if (server->link.state == SERVER_CLOSED || length == 0)
		return;
	if (server->link.state <= SERVER_AUTHENTICATING && found == FRAME_MALFORMED) {
		server_close_for(server, REASON_BAD_PKT_HEADER);
		return;
	}
	/*
	 * The server has sent data behind ReadyForQuery without a request. A client may be
	 * paired with the server already and must receive whole messages: keep the data.
	 */
	if (server->link.state > SERVER_AUTHENTICATING)
		server->dirty = true;
	if (!link_hold(&server->link, data, length))
		server_close_for(server, REASON_NO_MEMORY);
}

static void on_readable(struct stream *stream)
{
	struct server_link *server = (struct server_link *)stream;
	struct loop *loop = stream->loop;
	uint8_t *into = loop->receive + LOOP_RECEIVE_HEADROOM;
	const uint32_t held = server->link.held_length;
	const ssize_t got = stream_receive(stream, into, LOOP_RECEIVE_SIZE);

	if (got == STREAM_AGAIN)
		return;
	if (got <= 0) {
		if (tls_error(stream))
			link_log_repeated(&server->link, LEVEL_WARNING,
				"TLS handshake error: %s", tls_error(stream));
		server->login->tls_failed = tls_is_shaking_hands(stream);
		server_route_lost(&server->login->route, REASON_SERVER_CONN_CRASHED);
		return;
	}
	server->link.request_time = loop_now(loop);
	server_route_set_answered(&server->login->route);
	if (server->login->tls_requested) {
		server_greeting_receive_tls_answer(server, into, (size_t)got);
		return;
	}
	if (held) {
		memcpy(into - held, server->link.held, held);
		link_drop_held(&server->link);
	}
	run(server, into - held, (size_t)got + held);
}

static void on_drained(struct stream *stream)
{
	(void)stream;
}

static void log_connected(const struct server_link *server, const struct address *local)
{
	char text[ADDRESS_TEXT_SIZE];

	if (!link_registry(&server->link)->process->settings->log_connections)
		return;
	if (local->family == AF_UNIX)
		link_log(&server->link, LEVEL_LOG, "new connection to server");
	else
		link_log(&server->link, LEVEL_LOG, "new connection to server (from %s)",
			address_text(local, text));
}

static void on_connected(struct stream *stream, int error)
{
	struct server_link *server = (struct server_link *)stream;
	char address[ADDRESS_TEXT_SIZE];
	struct address local;

	if (error) {
		link_log_repeated(&server->link, LEVEL_WARNING,
			"sbuf_connect failed to connect to %s: %s",
			address_text(&server->link.remote, address), strerror(error));
		server_route_next(&server->login->route, REASON_CONNECT_FAILED);
		return;
	}
	server->login->route.connected = true;
	local = address_local(stream->fd);
	log_connected(server, &local);
	own_connection_note(server, &local);
	if (!server->watches && server->login->owner->connected(server))
		return;
	/*
	 * The cancel request for which the connection was launched has been served by another
	 * one. Close this one: the pool may have no room for one more server.
	 */
	if (server->login->for_cancel)
		server_close_for(server, REASON_CANCEL_FOR_CLIENT_NOW_IDLE);
	else
		server_greeting_begin(server);
}

static void on_secured(struct stream *stream)
{
	struct server_link *server = (struct server_link *)stream;
	const bool wanted = link_registry(&server->link)->process->settings->log_connections;
	char text[TLS_TEXT_SIZE];

	link_log(&server->link, wanted ? LEVEL_LOG : LEVEL_NOISE, "SSL established: %s",
		tls_text(stream, text));
	server_route_set_answered(&server->login->route);
	server_greeting_start_up(server);
}

static const struct stream_handlers login_handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.connected = on_connected,
	.secured = on_secured,
};
