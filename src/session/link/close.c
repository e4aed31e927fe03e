/* SPDX-License-Identifier: ISC */
#include "session/link/close.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model/host/host_items.h"
#include "model/link_walk.h"
#include "model/registry.h"
#include "model/statistics/client_group.h"
#include "model/statistics/reason_facts.h"
#include "net/tls.h"
#include "session/link/login_counts.h"
#include "wire/writer.h"

/* Age of the connection in whole seconds. */
static long long age_of(const struct link *link)
{
	return (loop_now(link->stream.loop) - link->connect_time) / USEC_PER_SEC;
}

static void log_closing(struct link *link, const struct failure *why)
{
	const long long age = age_of(link);

	if (!link_registry(link)->process->settings->log_disconnections)
		return;
	link_log_facts(link, reason_level(why->reason),
		&(struct link_facts){
			.facts = {{"reason", why->text, 0}, {"age", NULL, age}},
			.count = 2,
		},
		"closing because: %s (age=%llds)", why->text, age);
}

/* --- clients ------------------------------------------------------------------------------ */

/* Clients that have waited in vain are told what the hosts of their database have said. */
static void write_last_error(
	const struct client_link *client, const struct failure *why, struct buffer *message)
{
	struct buffer detail = {0};

	if (client->link.pool && client->link.pool->failing &&
		(why->reason == REASON_QUERY_WAIT_TIMEOUT ||
			why->reason == REASON_CLIENT_LOGIN_TIMEOUT_SERVER_DOWN))
		host_items_explain(client->link.pool, &detail);
	buffer_append(&detail, "", 1);
	writer_error_detail(
		message, "FATAL", why->sqlstate, why->text, (const char *)detail.data);
	buffer_free(&detail);
}

/*
 * Send a last ErrorResponse, and receive what the client has sent and was not read yet: closing
 * a socket with unread bytes would reset the connection, and the client would lose the message.
 */
static void send_last_error(struct client_link *client, const struct failure *why, bool log)
{
	const struct registry *registry = link_registry(&client->link);
	struct stream *stream = &client->link.stream;
	struct buffer message;

	/* Connections for cancel requests get no answer. */
	if (why->sqlstate[0] == '\0' || client->link.state == CLIENT_CANCEL_WAITING ||
		client->link.state == CLIENT_CANCEL_SENT)
		return;
	if (log && registry->process->settings->log_pooler_errors)
		link_log_kind(&client->link, LEVEL_WARNING, reason_text(why->reason), 0,
			"pooler error: %s", why->text);
	/* An ErrorResponse in the middle of a half-sent message would be read as part of it. */
	if (client->link.cut || stream_is_blocked(stream))
		return;
	if (!registry->close_events->before_error(client))
		return;
	buffer_init(&message);
	write_last_error(client, why, &message);
	if (!message.failed &&
		stream_send_bytes(stream, message.data, message.length) == STREAM_SENT_ALL)
		stream_receive(stream, registry->loop->receive, LOOP_RECEIVE_HEADROOM);
	buffer_free(&message);
}

static void free_client(struct loop_task *task)
{
	struct client_link *client = (struct client_link *)((char *)task -
		offsetof(struct client_link, link.ending));

	slab_give(&link_registry(&client->link)->clients, client);
}

/* Does the failure show that the client does not use the protocol of PostgreSQL? */
static bool speaks_other_protocol(const struct client_link *client, const struct failure *why)
{
	return client->link.state == CLIENT_GREETING &&
		(why->reason == REASON_BAD_PACKET || why->reason == REASON_BAD_PACKET_HEADER ||
			why->reason == REASON_FAILED_TO_ACCEPT_SSL ||
			why->reason == REASON_PROXY_HEADER_REFUSED);
}

/*
 * At most one line a second for all such clients; none if a TLS error or a PROXY header was logged
 * already.
 */
static void log_other_protocol(const struct client_link *client, const struct failure *why)
{
	if (link_registry(&client->link)->process->settings->log_disconnections &&
		!tls_error(&client->link.stream) && why->reason != REASON_PROXY_HEADER_REFUSED)
		link_log_kind(&client->link, reason_level(why->reason), LINK_STRANGER, 1,
			"closing because: %s (age=%llds)", why->text, age_of(&client->link));
}

/* Port probes and aborted logins are closed without a line of their own. */
static bool needs_log_line(const struct client_link *client, const struct failure *why)
{
	return !speaks_other_protocol(client, why) &&
		(client_is_logged_in(client) || why->reason != REASON_CLIENT_UNEXPECTED_EOF);
}

void client_close(struct client_link *client, const struct failure *why)
{
	struct registry *registry = link_registry(&client->link);
	struct link *link = &client->link;
	struct server_link *server = NULL;
	const enum client_state state = client_state(client);
	bool log;

	if (state == CLIENT_CLOSED)
		return;
	log = needs_log_line(client, why);
	counters_client_closed(client, state, why);
	login_counts_failed(client, state, why);
	if (link->peer) {
		server = server_of(link->peer);
		registry->close_events->unpair(link);
		/* It waits for the rest of a message, and so is of no use for other clients. */
		server->dirty = server->dirty || server->link.cut;
		/* It may be paused because its client's socket was full. */
		stream_resume(&server->link.stream);
	}
	send_last_error(client, why, log);
	if (log)
		log_closing(link, why);
	else if (speaks_other_protocol(client, why))
		log_other_protocol(client, why);
	if (state == CLIENT_CONSOLE)
		registry->process->console.closed(client);
	client_group_leave(client);
	if (client->step == CLIENT_STEP_ASKED)
		client->asking->asked_for = NULL;
	client_enter(client, CLIENT_CLOSED);
	handles_take_back(&registry->process->handles, &link->handle, link);
	link_walk_strike(registry, link);
	registry->close_events->client_closed(client, state, why);
	cancel_keys_forget(&registry->process->cancel_keys, client);
	wheel_remove(&registry->loop->wheel, &client->deadline);
	stream_close(&link->stream);
	link_drop_held(link);
	parameters_unref(link->parameters);
	parameters_unref(client->asked);
	link->parameters = client->asked = NULL;
	limits_give_client(client);
	limits_give_socket(registry);
	sources_give(client);
	explicit_bzero(client->key, sizeof(client->key));
	loop_defer(registry->loop, &link->ending, free_client);
	registry->close_events->after_client_closed(
		client, server, why->reason == REASON_CLIENT_CLOSE_REQUEST);
}

void client_leave(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct link *link = &client->link;

	CHECK(client->link.state == CLIENT_GREETING);
	client_enter(client, CLIENT_CLOSED);
	handles_take_back(&registry->process->handles, &link->handle, link);
	link_walk_strike(registry, link);
	wheel_remove(&registry->loop->wheel, &client->deadline);
	link_drop_held(link);
	parameters_unref(link->parameters);
	link->parameters = NULL;
	loop_defer(registry->loop, &link->ending, free_client);
}

void client_close_for(struct client_link *client, enum reason reason)
{
	const struct failure why = failure_of(reason);

	client_close(client, &why);
}

/* --- servers ------------------------------------------------------------------------------ */

static void free_server(struct loop_task *task)
{
	struct server_link *server = (struct server_link *)((char *)task -
		offsetof(struct server_link, link.ending));

	slab_give(&link_registry(&server->link)->servers, server);
}

/*
 * Protocol: "Message Flow", Termination. Terminate is sent during a query as well, but not to a
 * server that got half a message: the server would read Terminate as the rest, and might
 * execute it. Nor to a server that another process has taken over.
 */
static void send_terminate(struct server_link *server, const struct failure *why)
{
	struct buffer message;

	if (why->reason == REASON_DISKO_OVER || !stream_is_open(&server->link.stream) ||
		server->link.cut || stream_is_blocked(&server->link.stream))
		return;
	buffer_init(&message);
	writer_terminate(&message);
	link_send(&server->link, &message);
}

/*
 * Is the server closed before it received anything of its client's query, so that the query can
 * be sent to another server? If the connection broke, only for a server that was connected
 * before the query began: a server that crashes whenever our SETs are executed would be tried
 * for ever.
 */
static bool is_query_unsent(const struct server_link *server, const struct failure *why)
{
	const struct client_link *client = (const struct client_link *)server->link.peer;

	/* No other server has what pins this one. */
	if (!client || !server_is_syncing(server) || server_has_gathered(server) ||
		server->pins)
		return false;
	return why->reason == REASON_RESET_QUERY_FAILED ||
		why->reason == REASON_SETTING_CANCELED ||
		why->reason == REASON_SETTING_TIMED_OUT ||
		(reason_breaks_connection(why->reason) &&
			server->link.connect_time < client->query_start);
}

void server_close(struct server_link *server, const struct failure *why)
{
	struct link *link = &server->link;
	struct pool *pool = link->pool;
	const struct close_events *events = pool->registry->close_events;
	struct client_link *client = NULL;
	const enum server_state state = server_state(server);
	const bool query_unsent = is_query_unsent(server, why);

	if (state == SERVER_CLOSED)
		return;
	if (link->peer) {
		client = client_of(link->peer);
		events->unpair(link);
	}
	counters_server_closed(server, state, why, client && !query_unsent);
	log_closing(link, why);
	if ((server_is_connected(server) || state == SERVER_PREPARING ||
		    state == SERVER_LISTENING || state == SERVER_WATCHING) &&
		!reason_breaks_connection(why->reason))
		send_terminate(server, why);
	server_enter(server, SERVER_CLOSED);
	handles_take_back(&link_registry(link)->process->handles, &link->handle, link);
	link_walk_strike(link_registry(link), link);
	stream_close(&link->stream);
	link_drop_held(link);
	parameters_unref(link->parameters);
	parameters_unref(server->sync_target);
	link->parameters = server->sync_target = NULL;
	requests_clear(&server->requests);
	server_drop_key(server);
	cap_give_server(pool);
	loop_defer(pool->registry->loop, &link->ending, free_server);
	events->server_closed(server, state, why);
	host_use(server, NULL);
	pool_needs_work(pool);
	if (query_unsent)
		events->query_unsent(client, why);
	else if (client)
		client_close(client, why);
}

void server_close_for(struct server_link *server, enum reason reason)
{
	const struct failure why = failure_of(reason);

	server_close(server, &why);
}

void server_log_closing(struct server_link *server, enum reason reason)
{
	const struct failure why = failure_of(reason);

	log_closing(&server->link, &why);
}
