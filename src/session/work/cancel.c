/* SPDX-License-Identifier: ISC */
#include "session/work/cancel.h"

#include <string.h>

#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/pool/cancel_queue.h"
#include "session/pool/draining.h"
#include "session/pool/peering.h"
#include "session/pool/return_to_pool.h"
#include "session/work/cancel_unsent.h"
#include "wire/startup.h"

enum {
	/* Requests that may wait in a pool; the first one for a query always may. */
	WAITING_FOR_SERVERS = 100,
};

static void on_readable(struct stream *stream);

/* --- the asker ---------------------------------------------------------------------------- */

/* Does its query still wait for a server, or for our SETs on one? */
static bool is_unsent(const struct client_link *owner)
{
	const struct server_link *server = (const struct server_link *)owner->link.peer;

	return server
		? server_is_syncing(server) && !server_has_gathered(server)
		: owner->link.state == CLIENT_WAITING || owner->link.state == CLIENT_LAUNCHING;
}

/* Does its server run something for it? Between two queries of a transaction it does not. */
static bool is_served(const struct client_link *owner)
{
	const struct server_link *server = (const struct server_link *)owner->link.peer;

	return server &&
		(!requests_is_empty(&server->requests) || server->transaction_status == 0);
}

/* Ask the server of this client, which has a key. */
static void queue_for(struct client_link *client, const struct client_link *owner)
{
	struct pool *pool = owner->link.pool;
	struct server_link *target = server_of(owner->link.peer);

	/* Who says the same for the hundredth time does not keep a descriptor for that. */
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
		cancel_unsent_answer(owner);
	} else if (!is_served(owner)) {
		client_close_for(client, REASON_CANCEL_FOR_IDLE_CLIENT);
	} else if (!server_of(owner->link.peer)->cancel_key) {
		/* A server without a key cannot be asked. */
		client_close_for(client, REASON_FAILED_CANCEL_REQUEST);
	} else {
		queue_for(client, owner);
	}
}

void cancel_client_closed(struct client_link *client, enum client_state state)
{
	if (state == CLIENT_CANCEL_WAITING && client->cancel)
		client->cancel->cancels_queued--;
	else if (state == CLIENT_CANCEL_SENT && client->cancel)
		client->cancel->canceling = NULL; /* the request itself goes on */
	client->cancel = NULL;
}

/* --- the carrier -------------------------------------------------------------------------- */

static const struct stream_handlers carrier_handlers = {
	.readable = on_readable,
	.drained = on_readable,
};

/* Is another query of its client's running now, or none? Its server has not been released. */
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

/* With the key of the server, or for a peer with the one that was brought. */
static bool send_request(struct server_link *carrier, const void *key, size_t length)
{
	struct buffer message;
	bool sent;

	buffer_init(&message);
	startup_write_cancel(&message, key, length);
	sent = !message.failed &&
		stream_send_bytes(&carrier->link.stream, message.data, message.length) ==
			STREAM_SENT_ALL;
	buffer_wipe(&message);
	return sent;
}

/* Send it, for this client or, without one, for ourselves. False: the carrier is closed. */
static bool carry(struct server_link *carrier, struct server_link *target,
	const struct client_link *client)
{
	server_enter(carrier, SERVER_CANCELING);
	stream_set_handlers(&carrier->link.stream, &carrier_handlers);
	/* A peer has answered: that is its whole login. */
	if (!target)
		carrier->link.pool->failing = false;
	if (target ? !send_request(carrier, target->cancel_key, target->cancel_key_length)
		   : !send_request(carrier, client->key, client->key_length)) {
		server_close_for(carrier, REASON_SERVER_CONNECTION_CLOSED);
		return false;
	}
	if (target)
		target->cancels++;
	carrier->cancel_target = target;
	carrier->link.request_time = loop_now(carrier->link.stream.loop);
	/* Others that wait need connections of their own. */
	pool_needs_work(carrier->link.pool);
	return true;
}

/* What does not reach the server is not tried again at once: there would be no pause before it. */
static void carry_for_client(struct server_link *carrier, struct client_link *client)
{
	struct server_link *target = client->cancel;

	if (!carry(carrier, target, client)) {
		client_close_for(client, REASON_FAILED_CANCEL_REQUEST);
		return;
	}
	if (target)
		target->cancels_queued--;
	carrier->canceling = client;
	client->cancel = carrier;
	client_enter(client, CLIENT_CANCEL_SENT);
	client_limits_start(client);
}

bool cancel_use_connection(struct server_link *carrier)
{
	struct client_link *client;
	struct server_link *due;

	drop_stale(carrier->link.pool);
	client = cancel_queue_next_client(carrier->link.pool, carrier);
	due = cancel_queue_next_draining(carrier->link.pool, carrier);
	if (cancel_queue_client_first(client, due)) {
		carry_for_client(carrier, client);
	} else if (due) {
		draining_withdraw_cancel(due);
		carry(carrier, due, NULL);
	}
	return client || due;
}

/* The server answers a CancelRequest by closing the connection, whatever it did about it. */
static void on_readable(struct stream *stream)
{
	struct server_link *carrier = (struct server_link *)stream;
	uint8_t ignored[256];
	const ssize_t got = stream_receive(stream, ignored, sizeof(ignored));

	if (got == STREAM_AGAIN || got > 0)
		return;
	carrier->cancel_done = true;
	server_close_for(carrier, REASON_CANCEL_SENT);
}

/* The connection is gone, but not by the server's doing: the request may still be on its way. */
static void lose_request(struct server_link *target)
{
	if (target->link.state == SERVER_HELD || target->link.state == SERVER_DRAINING)
		server_close_for(target, REASON_CANCEL_WAIT_TIMEOUT);
	else
		server_retire(target, SERVER_CLOSED_OTHER);
}

/* What was asked for before it was sent has been done along with it. */
static void answer_others(const struct server_link *carrier, const struct server_link *target)
{
	struct link *link, *next;

	if (target->cancels_queued == 0)
		return;
	TAILQ_FOREACH_SAFE (link, &target->link.pool->cancels, place, next) {
		if (link->state == CLIENT_CANCEL_WAITING && client_of(link)->cancel == target &&
			link->request_time <= carrier->link.request_time)
			client_close_for(client_of(link), REASON_CANCEL_SENT);
	}
}

static void carrier_gone(struct server_link *carrier)
{
	struct client_link *client = carrier->canceling;
	struct server_link *target = carrier->cancel_target;

	carrier->canceling = NULL;
	carrier->cancel_target = NULL;
	if (client) {
		client->cancel = NULL;
		client_close_for(client, REASON_CANCEL_SENT);
	}
	if (!target)
		return;
	target->cancels--;
	if (carrier->cancel_done)
		answer_others(carrier, target);
	if (!carrier->cancel_done)
		lose_request(target);
	else if (target->cancels == 0 && target->link.state == SERVER_HELD)
		return_to_pool(target);
	else if (target->cancels == 0 && target->link.state == SERVER_DRAINING)
		draining_cancel_done(target);
}

/* A request that was sent for ourselves has had what effect it could. */
static void leave_carriers(struct server_link *target)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (
		link, &target->link.pool->servers[SERVERS_ACTIVE_CANCEL], place, next) {
		struct server_link *carrier = server_of(link);

		if (carrier->cancel_target != target)
			continue;
		carrier->cancel_target = NULL;
		if (!carrier->canceling)
			server_close_for(carrier, REASON_CANCEL_SENT);
	}
	target->cancels = 0;
}

void cancel_server_closed(struct server_link *server)
{
	if (server->cancel_target || server->canceling)
		carrier_gone(server);
	cancel_queue_drop(server);
	draining_withdraw_cancel(server);
	if (server->cancels > 0)
		leave_carriers(server);
}
