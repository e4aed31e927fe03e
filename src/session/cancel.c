/* SPDX-License-Identifier: ISC */
#include "session/cancel.h"

#include <string.h>

#include "session/client_limits.h"
#include "session/ending.h"
#include "session/pairing.h"
#include "session/peering.h"
#include "wire/startup.h"

static void on_readable(struct stream *stream);

/* --- the asker ---------------------------------------------------------------------------- */

static void ignore(struct stream *stream)
{
	(void)stream;
}

/* Nothing more is read from it, not even its end: many do not wait for ours. */
static const struct stream_handlers asker_handlers = {
	.readable = ignore,
	.drained = ignore,
};

void cancel_queue(struct client_link *client, struct pool *pool, struct server_link *target)
{
	client->link.pool = pool;
	client->cancel = target;
	if (target)
		target->cancels_queued++;
	client_enter(client, CLIENT_CANCEL_WAITING);
	stream_set_handlers(&client->link.stream, &asker_handlers);
	stream_pause(&client->link.stream);
	client_limits_start(client);
	pool_needs_work(client->link.pool);
}

void cancel_request(struct client_link *client, const uint8_t *key, size_t length)
{
	struct registry *registry = link_registry(&client->link);
	struct client_link *owner;

	if (!key) {
		client_close_for(client, REASON_BAD_CANCEL_REQUEST);
		return;
	}
	owner = cancel_keys_find(&registry->cancel_keys, key, length);
	if (!owner && peering_is_foreign(registry, key, length)) {
		peering_forward(client, key, length);
	} else if (!owner) {
		client_close_for(client, REASON_CANCEL_KEY_UNKNOWN);
	} else if (owner->link.state == CLIENT_CONSOLE) {
		registry->console.canceled(owner);
		client_close_for(client, REASON_CANCEL_FOR_CONSOLE_CLIENT);
	} else if (!owner->link.peer) {
		client_close_for(client, REASON_CANCEL_FOR_IDLE_CLIENT);
	} else if (server_of(owner->link.peer)->setting) {
		client_close_for(client, REASON_CANCEL_FOR_SETTING_VARS);
	} else if (!server_of(owner->link.peer)->cancel_key) {
		/* A server without a key cannot be asked. */
		client_close_for(client, REASON_FAILED_CANCEL_REQUEST);
	} else {
		cancel_queue(client, owner->link.peer->pool, server_of(owner->link.peer));
	}
}

void cancel_asker_gone(struct client_link *client)
{
	if (client->link.state == CLIENT_CANCEL_WAITING && client->cancel)
		client->cancel->cancels_queued--;
	else if (client->link.state == CLIENT_CANCEL_SENT && client->cancel)
		client->cancel->canceling = NULL; /* the request itself goes on */
	client->cancel = NULL;
}

void cancel_forget_queued(struct server_link *target)
{
	struct link *link, *next;

	if (target->cancels_queued == 0)
		return;
	TAILQ_FOREACH_SAFE (link, &target->link.pool->cancels, place, next) {
		struct client_link *client = client_of(link);

		if (link->state == CLIENT_CANCEL_WAITING && client->cancel == target)
			client_close_for(client, REASON_CANCEL_FOR_CLIENT_NOW_IDLE);
	}
}

/* --- the carrier -------------------------------------------------------------------------- */

static const struct stream_handlers carrier_handlers = {
	.readable = on_readable,
	.drained = on_readable,
};

static bool same_place(const struct server_link *a, const struct server_link *b)
{
	return a->where_length == b->where_length &&
		memcmp(&a->where, &b->where, a->where_length) == 0;
}

const struct server_link *cancel_next_target(const struct pool *pool)
{
	const struct link *link;

	TAILQ_FOREACH (link, &pool->cancels, place) {
		if (link->state == CLIENT_CANCEL_WAITING)
			return ((const struct client_link *)link)->cancel;
	}
	return NULL;
}

static struct client_link *next_asker(const struct server_link *carrier)
{
	struct link *link;

	TAILQ_FOREACH (link, &carrier->link.pool->cancels, place) {
		const struct server_link *target = client_of(link)->cancel;

		/* A peer is one place for all of them. */
		if (link->state == CLIENT_CANCEL_WAITING &&
			(!target || same_place(target, carrier)))
			return client_of(link);
	}
	return NULL;
}

/* With the key of the server, or for a peer with the one that was brought. */
static bool send_request(struct server_link *carrier, const struct client_link *client)
{
	const struct server_link *target = client->cancel;

	struct buffer message;
	bool sent;

	buffer_init(&message);
	if (target)
		startup_write_cancel(&message, target->cancel_key, target->cancel_key_length);
	else
		startup_write_cancel(&message, client->key, client->key_length);
	sent = !message.failed &&
		stream_send_bytes(&carrier->link.stream, message.data, message.length) ==
			STREAM_SENT_ALL;
	buffer_wipe(&message);
	return sent;
}

bool cancel_use_connection(struct server_link *carrier)
{
	struct client_link *client = next_asker(carrier);
	struct server_link *target;

	if (!client)
		return false;
	target = client->cancel;
	server_enter(carrier, SERVER_CANCELING);
	stream_set_handlers(&carrier->link.stream, &carrier_handlers);
	if (!target)
		carrier->link.pool->failing =
			false; /* the peer answers: that is its whole login */
	if (!send_request(carrier, client)) {
		/* Without another try: there would be no pause before it. */
		client_close_for(client, REASON_FAILED_CANCEL_REQUEST);
		server_close_for(carrier, REASON_SERVER_CONNECTION_CLOSED);
		return true;
	}
	if (target) {
		target->cancels_queued--;
		target->cancels++;
	}
	carrier->canceling = client;
	carrier->cancel_target = target;
	client->cancel = carrier;
	client_enter(client, CLIENT_CANCEL_SENT);
	client_limits_start(client);
	/* Others that wait need connections of their own. */
	pool_needs_work(carrier->link.pool);
	return true;
}

/* The server answers a CancelRequest by closing the connection, whatever it did about it. */
static void on_readable(struct stream *stream)
{
	struct server_link *carrier = (struct server_link *)stream;
	uint8_t ignored[256];
	const ssize_t got = stream_receive(stream, ignored, sizeof(ignored));

	if (got != STREAM_AGAIN && got <= 0)
		server_close_for(carrier, REASON_CANCEL_SENT);
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
	if (target->cancels == 0 && target->link.state == SERVER_HELD)
		pairing_unhold(target);
}

void cancel_server_gone(struct server_link *server)
{
	struct link *link;

	if (server->cancel_target || server->canceling)
		carrier_gone(server);
	cancel_forget_queued(server);
	if (server->cancels == 0)
		return;
	TAILQ_FOREACH (link, &server->link.pool->servers[SERVERS_ACTIVE_CANCEL], place) {
		if (server_of(link)->cancel_target == server)
			server_of(link)->cancel_target = NULL;
	}
	server->cancels = 0;
}
