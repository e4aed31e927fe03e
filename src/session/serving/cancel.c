/* SPDX-License-Identifier: ISC */
#include "session/serving/cancel.h"

#include <string.h>

#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/pool/cancel_queue.h"
#include "session/pool/draining.h"
#include "session/pool/peering.h"
#include "session/pool/return_to_pool.h"
#include "session/serving/unsent_query.h"
#include "wire/startup.h"

enum {
	/* Requests that may wait in a pool; the first one for a query is always accepted. */
	WAITING_FOR_SERVERS = 100,
};

static void on_readable(struct stream *stream);

/* --- the requester ------------------------------------------------------------------------ */

/*
 * Returns true if the query of the client waits for a server, also for one that listens, or for
 * pgusher's SETs there. A client does not leave a server that is pinned: it would lose what it has
 * there.
 */
static bool is_unsent(const struct client_link *owner)
{
	const struct server_link *server = (const struct server_link *)owner->link.peer;

	return server
		? server_is_syncing(server) && !server_has_gathered(server) && !server->pins
		: owner->link.state == CLIENT_WAITING ||
			owner->link.state == CLIENT_LAUNCHING ||
			owner->step == CLIENT_STEP_LISTENING;
}

/* Returns true if its server runs a query, so not between two queries of a transaction. */
static bool is_running(const struct client_link *owner)
{
	const struct server_link *server = (const struct server_link *)owner->link.peer;

	return server &&
		(!requests_is_empty(&server->requests) || server->transaction_status == 0);
}

/* Queue the request for the server of `owner`, which has a key. */
static void queue_request(struct client_link *client, const struct client_link *owner)
{
	struct pool *pool = owner->link.pool;
	struct server_link *target = server_of(owner->link.peer);

	/* A repeated request must not occupy one more descriptor. */
	if (target->cancels_queued > 0 &&
		pool->client_count[CLIENT_CANCEL_WAITING] >= WAITING_FOR_SERVERS) {
		client_close_for(client, REASON_CANCEL_WAITS_ALREADY);
		return;
	}
	client->query_start = owner->query_start;
	cancel_queue_add(client, pool, target);
}

void cancel_request(struct client_link *client, const uint8_t *key, size_t length)
{
	struct registry *registry = link_registry(&client->link);
	struct client_link *owner;

	if (!key) {
		client_close_for(client, REASON_BAD_CANCEL_REQUEST);
		return;
	}
	owner = cancel_keys_find(&registry->process->cancel_keys, key, length);
	if (!owner && peering_is_foreign(registry, key, length)) {
		peering_forward(client, key, length);
	} else if (!owner) {
		client_close_for(client, REASON_CANCEL_KEY_UNKNOWN);
	} else if (owner->link.state == CLIENT_CONSOLE) {
		registry->process->console.canceled(owner);
		client_close_for(client, REASON_CANCEL_FOR_CONSOLE_CLIENT);
	} else if (is_unsent(owner)) {
		client_close_for(client, REASON_CANCEL_FOR_WAITING_CLIENT);
		unsent_query_end(owner, REASON_SETTING_CANCELED);
	} else if (!is_running(owner)) {
		client_close_for(client, REASON_CANCEL_FOR_IDLE_CLIENT);
	} else if (!server_of(owner->link.peer)->cancel_key) {
		/* A server without a key accepts no cancel requests. */
		client_close_for(client, REASON_FAILED_CANCEL_REQUEST);
	} else {
		queue_request(client, owner);
	}
}

void cancel_client_closed(struct client_link *client, enum client_state state)
{
	if (state == CLIENT_CANCEL_WAITING && client->cancel)
		client->cancel->cancels_queued--;
	else if (state == CLIENT_CANCEL_SENT && client->cancel)
		client->cancel->canceling = NULL; /* the request remains in flight */
	client->cancel = NULL;
}

/* --- the cancel connection ---------------------------------------------------------------- */

static const struct stream_handlers connection_handlers = {
	.readable = on_readable,
	.drained = on_readable,
};

/* Returns true if the client of the target runs another query now, or none. */
static bool is_stale(const struct client_link *client)
{
	const struct server_link *target = client->cancel;
	const struct client_link *owner =
		target ? (const struct client_link *)target->link.peer : NULL;

	return owner && owner->query_start != client->query_start;
}

static void drop_stale(struct pool *pool)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, &pool->cancels, place, next) {
		if (link->state == CLIENT_CANCEL_WAITING && is_stale(client_of(link)))
			client_close_for(client_of(link), REASON_CANCEL_FOR_CLIENT_NOW_IDLE);
	}
}

/* Send a CancelRequest with this key: of the server, or for a peer the key of the requester. */
static bool send_request(struct server_link *connection, const void *key, size_t length)
{
	struct buffer message;
	bool sent;

	buffer_init(&message);
	startup_write_cancel(&message, key, length);
	sent = !message.failed &&
		stream_send_bytes(&connection->link.stream, message.data, message.length) ==
			STREAM_SENT_ALL;
	buffer_wipe(&message);
	return sent;
}

/*
 * Send the request of this client, or of our own if client is NULL. Returns false if the
 * connection was closed.
 */
static bool send_on_connection(struct server_link *connection, struct server_link *target,
	const struct client_link *client)
{
	server_enter(connection, SERVER_CANCELING);
	stream_set_handlers(&connection->link.stream, &connection_handlers);
	/* A peer needs no login, so the attempt has succeeded. */
	if (!target)
		connection->link.pool->failing = false;
	if (target ? !send_request(connection, target->cancel_key, target->cancel_key_length)
		   : !send_request(connection, client->key, client->key_length)) {
		server_close_for(connection, REASON_SERVER_CONNECTION_CLOSED);
		return false;
	}
	if (target) {
		target->cancels++;
		target->sync_canceled = target->sync_canceled || server_is_syncing(target);
	}
	connection->cancel_target = target;
	connection->link.request_time = loop_now(connection->link.stream.loop);
	/* Each waiting request needs a connection of its own. */
	pool_needs_work(connection->link.pool);
	return true;
}

/* A request that could not be sent is not retried: there would be no pause before. */
static void send_for_client(struct server_link *connection, struct client_link *client)
{
	struct server_link *target = client->cancel;

	if (!send_on_connection(connection, target, client)) {
		client_close_for(client, REASON_FAILED_CANCEL_REQUEST);
		return;
	}
	if (target)
		target->cancels_queued--;
	connection->canceling = client;
	client->cancel = connection;
	client_enter(client, CLIENT_CANCEL_SENT);
	client_limits_start(client);
}

bool cancel_use_connection(struct server_link *connection)
{
	struct client_link *client;
	struct server_link *due;

	drop_stale(connection->link.pool);
	client = cancel_queue_next_client(connection->link.pool, connection);
	due = cancel_queue_next_draining(connection->link.pool, connection);
	if (cancel_queue_client_first(client, due)) {
		send_for_client(connection, client);
	} else if (due) {
		draining_withdraw_cancel(due);
		send_on_connection(connection, due, NULL);
	}
	return client || due;
}

/* The server answers a CancelRequest by closing the connection, with or without effect. */
static void on_readable(struct stream *stream)
{
	struct server_link *connection = (struct server_link *)stream;
	uint8_t ignored[256];
	const ssize_t got = stream_receive(stream, ignored, sizeof(ignored));

	if (got == STREAM_AGAIN || got > 0)
		return;
	connection->cancel_done = true;
	server_close_for(connection, REASON_CANCEL_SENT);
}

/* The server has not closed the cancel connection, so the request may take effect later. */
static void lose_request(struct server_link *target)
{
	if (target->link.state == SERVER_HELD || target->link.state == SERVER_DRAINING)
		server_close_for(target, REASON_CANCEL_WAIT_TIMEOUT);
	else
		server_retire(target, SERVER_CLOSED_OTHER);
}

/* Requests that arrived before this one was sent are answered by it too. */
static void answer_others(
	const struct server_link *connection, const struct server_link *target)
{
	struct link *link, *next;

	if (target->cancels_queued == 0)
		return;
	TAILQ_FOREACH_SAFE (link, &target->link.pool->cancels, place, next) {
		if (link->state == CLIENT_CANCEL_WAITING && client_of(link)->cancel == target &&
			link->request_time <= connection->link.request_time)
			client_close_for(client_of(link), REASON_CANCEL_SENT);
	}
}

static void connection_closed(struct server_link *connection)
{
	struct client_link *client = connection->canceling;
	struct server_link *target = connection->cancel_target;

	connection->canceling = NULL;
	connection->cancel_target = NULL;
	if (client) {
		client->cancel = NULL;
		client_close_for(client, REASON_CANCEL_SENT);
	}
	if (!target)
		return;
	target->cancels--;
	if (connection->cancel_done)
		answer_others(connection, target);
	if (!connection->cancel_done)
		lose_request(target);
	else if (target->cancels == 0 && target->link.state == SERVER_HELD)
		return_to_pool(target);
	else if (target->cancels == 0 && target->link.state == SERVER_DRAINING)
		draining_cancel_done(target);
	else if (target->cancels == 0 && target->suspected)
		return_if_free(target); /* it has stayed with its client for this request */
}

/* The target was closed: close the connections with requests of our own for it. */
static void detach_connections(struct server_link *target)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (
		link, &target->link.pool->servers[SERVERS_ACTIVE_CANCEL], place, next) {
		struct server_link *connection = server_of(link);

		if (connection->cancel_target != target)
			continue;
		connection->cancel_target = NULL;
		if (!connection->canceling)
			server_close_for(connection, REASON_CANCEL_SENT);
	}
	target->cancels = 0;
}

void cancel_server_closed(struct server_link *server)
{
	if (server->cancel_target || server->canceling)
		connection_closed(server);
	cancel_queue_drop(server);
	draining_withdraw_cancel(server);
	if (server->cancels > 0)
		detach_connections(server);
}
