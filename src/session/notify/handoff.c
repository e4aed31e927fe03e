/* SPDX-License-Identifier: ISC */
#include "session/notify/handoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "session/link/close.h"
#include "session/notify/delivery.h"
#include "session/notify/handoff_state.h"
#include "session/notify/listening_limits.h"
#include "wire/sql.h"
#include "wire/writer.h"

/* How long a server waits for the listening one, and how long if clients of its pool need it. */
#define LONGEST (10 * USEC_PER_SEC)
#define LONGEST_IF_WANTED (2 * USEC_PER_SEC)

/* --- the end ------------------------------------------------------------------------------ */

/* From here on the client gets everything from the listening server. */
static void open_gates(struct handoff *handoff)
{
	struct channel_listener *listener = handoff->listener;
	struct subscription *each;

	if (!listener)
		return;
	TAILQ_FOREACH (each, &listener->subscriptions, in_listener) {
		if (each->handoff == handoff)
			each->handoff = NULL;
	}
	for (uint32_t i = 0; i < handoff->late.count; i++)
		delivery_offer(listener, handoff->late.items[handoff->late.first + i]);
}

static void end(struct handoff *handoff)
{
	struct channel_hub *hub = handoff->hub;

	open_gates(handoff);
	notification_queue_clear(&handoff->late);
	if (handoff->server)
		handoff->server->handoff = NULL;
	TAILQ_REMOVE(&hub->handoffs, handoff, in_hub);
	free(handoff);
	pool_needs_work(hub->pool);
}

/* Both servers have brought the token: the listening server brings all that comes now. */
static void end_if_complete(struct handoff *handoff)
{
	if (handoff->marked_there && handoff->marked_here) {
		open_gates(handoff);
		notification_queue_clear(&handoff->late);
		pool_needs_work(handoff->hub->pool);
	}
	if (!handoff->server && handoff->marked_there && handoff->marked_here)
		end(handoff);
}

/* Where the one server stops and the other begins is not known any more. */
static void give_up(struct handoff *handoff)
{
	struct channel_listener *listener = handoff->listener;
	struct notification *notice = delivery_warning();

	if (listener && notice)
		delivery_offer(listener, notice);
	notification_unref(notice);
	handoff->marked_there = handoff->marked_here = true;
	end_if_complete(handoff);
}

/* --- the queries -------------------------------------------------------------------------- */

static void write_commands(const struct handoff *handoff, struct buffer *out)
{
	const size_t mark = writer_begin(out, PQ_QUERY);
	const char *name = handoff->hub->marker->name;

	buffer_printf(out, "LISTEN %s; NOTIFY %s, '%s'", name, name, handoff->token);
	writer_byte(out, 0);
	writer_end(out, mark);
}

/* Stop listening; with the token before it unless the listening server cannot get that. */
static void send_commands(struct handoff *handoff, bool with_token)
{
	struct server_link *server = handoff->server;
	struct buffer message = {0};

	if (with_token)
		write_commands(handoff, &message);
	writer_query(&message, "UNLISTEN *");
	handoff->begun = true;
	handoff->answers = with_token ? 2 : 1;
	server->transaction_status = 0;
	server->unnamed = 0;
	if (link_send(&server->link, &message))
		return;
	buffer_free(&message);
	server_close_for(server, REASON_SERVER_CONNECTION_CLOSED);
}

static bool is_ready(const struct handoff *handoff)
{
	const struct channel_hub *hub = handoff->hub;
	const struct subscription *each;

	if (!hub->marker || !channels_is_present(hub->marker))
		return false;
	TAILQ_FOREACH (each, &handoff->listener->subscriptions, in_listener) {
		if (each->handoff == handoff && !channels_is_present(each->channel))
			return false;
	}
	return true;
}

void handoff_check(struct channel_hub *hub)
{
	struct handoff *handoff, *next;

	TAILQ_FOREACH_SAFE (handoff, &hub->handoffs, in_hub, next) {
		if (handoff->begun || !handoff->server)
			continue;
		/* For a client that has left, nothing is handed over. */
		if (!handoff->listener)
			send_commands(handoff, false);
		else if (is_ready(handoff))
			send_commands(handoff, true);
	}
}

void handoff_abandon(struct channel_hub *hub)
{
	struct handoff *handoff, *next;

	TAILQ_FOREACH_SAFE (handoff, &hub->handoffs, in_hub, next) {
		if (!handoff->begun && handoff->server)
			send_commands(handoff, false);
	}
}

void handoff_expire(struct channel_hub *hub, usec_t now)
{
	const usec_t longest = pool_wanted_servers(hub->pool) > 0 ? LONGEST_IF_WANTED : LONGEST;
	struct handoff *handoff, *next;

	TAILQ_FOREACH_SAFE (handoff, &hub->handoffs, in_hub, next) {
		if (now - handoff->since < longest)
			continue;
		if (!handoff->begun && handoff->server)
			send_commands(handoff, false);
		else if (!handoff->marked_here)
			give_up(handoff);
	}
}

/* --- begin -------------------------------------------------------------------------------- */

/* Returns false if a name cannot be subscribed; those before it are then. */
static bool subscribe(
	struct handoff *handoff, struct client_link *client, const char *names, size_t length)
{
	const char *end = names + length;

	for (; names < end; names += strlen(names) + 1) {
		struct subscription *subscription = channels_subscription(client, names);
		bool too_many;

		if (subscription)
			continue;
		subscription = channels_subscribe(client, names, &too_many);
		if (!subscription)
			return false;
		subscription->handoff = handoff;
		subscription->confirmed = true;
	}
	return true;
}

/* Undo what subscribe() has done. */
static void withdraw(struct handoff *handoff, struct client_link *client)
{
	struct subscription *each, *next;

	if (!client->listener)
		return;
	TAILQ_FOREACH_SAFE (each, &client->listener->subscriptions, in_listener, next) {
		if (each->handoff == handoff)
			channels_unsubscribe(each);
	}
}

static struct handoff *make(struct server_link *server, struct channel_hub *hub)
{
	struct handoff *handoff = calloc(1, sizeof(*handoff));

	if (!handoff)
		return NULL;
	handoff->hub = hub;
	handoff->server = server;
	handoff->since = loop_now(hub->pool->registry->loop);
	snprintf(handoff->token, sizeof(handoff->token), "%llu",
		(unsigned long long)++hub->tokens);
	TAILQ_INSERT_TAIL(&hub->handoffs, handoff, in_hub);
	server->handoff = handoff;
	return handoff;
}

static void set_off(struct handoff *handoff, struct server_link *server, bool shared)
{
	server_set_task(server, SERVER_TASK_HANDOFF);
	if (!shared)
		send_commands(handoff, false);
	else if (is_ready(handoff))
		send_commands(handoff, true);
	else
		pool_needs_work(handoff->hub->pool);
}

bool handoff_begin(struct server_link *server, struct client_link *client, const char *names,
	size_t length)
{
	struct channel_hub *hub = channels_open(server->link.pool);
	struct handoff *handoff;

	if (!hub)
		return false;
	handoff = make(server, hub);
	if (!handoff)
		return false;
	if (!client) {
		set_off(handoff, server, false);
		return true;
	}
	if (!listening_limits_allow(hub->pool) || !channels_suit(client) ||
		!channels_marker(hub) || !subscribe(handoff, client, names, length)) {
		withdraw(handoff, client);
		end(handoff);
		return false;
	}
	handoff->listener = client->listener;
	set_off(handoff, server, true);
	return true;
}

/* --- what the servers bring --------------------------------------------------------------- */

void handoff_marked(struct channel_hub *hub, const char *token)
{
	struct handoff *each, *next;

	TAILQ_FOREACH_SAFE (each, &hub->handoffs, in_hub, next) {
		if (strcmp(each->token, token) != 0)
			continue;
		each->marked_here = true;
		end_if_complete(each);
		return;
	}
}

void handoff_listening_server_lost(struct channel_hub *hub)
{
	struct handoff *each, *next;

	/* Those that have not begun lose nothing: their servers still listen. */
	TAILQ_FOREACH_SAFE (each, &hub->handoffs, in_hub, next) {
		if (each->begun && !each->marked_here)
			give_up(each);
	}
}

bool handoff_done(struct server_link *server)
{
	struct handoff *handoff = server->handoff;
	const bool good = !handoff->error && server->transaction_status == READY_IDLE;

	server->handoff = NULL;
	handoff->server = NULL;
	if (!handoff->marked_there)
		give_up(handoff);
	else
		end_if_complete(handoff);
	return good;
}

void handoff_server_closed(struct server_link *server)
{
	struct handoff *handoff = server->handoff;

	if (!handoff)
		return;
	server->handoff = NULL;
	handoff->server = NULL;
	/* Behind the token of this server all comes from the listening one. */
	if (handoff->marked_there)
		end_if_complete(handoff);
	else
		give_up(handoff);
}

/* Before the token, what the listening server does not bring yet. */
static bool is_expected(const struct handoff *handoff, const char *channel)
{
	const struct subscription *subscription = handoff->listener
		? channels_subscription(handoff->listener->client, channel)
		: NULL;

	return !handoff->marked_there && subscription && subscription->handoff == handoff;
}

void handoff_take_notification(
	const struct relay_run *run, const struct notifier_message *message)
{
	struct handoff *handoff = run->server->handoff;
	const struct channel *marker = handoff->hub->marker;
	struct notification *notification;

	if (marker && strcmp(message->channel, marker->name) == 0) {
		handoff->marked_there =
			handoff->marked_there || strcmp(message->payload, handoff->token) == 0;
		end_if_complete(handoff);
		return;
	}
	if (!is_expected(handoff, message->channel))
		return;
	notification = notifier_message_for_clients(run, message->pid);
	if (notification)
		delivery_offer(handoff->listener, notification);
	notification_unref(notification);
	pool_needs_work(handoff->hub->pool);
}

void handoff_take_error(struct server_link *server)
{
	server->handoff->error = true;
}

bool handoff_take_ready(struct server_link *server, bool *last)
{
	struct handoff *handoff = server->handoff;

	if (handoff->answers == 0)
		return false;
	*last = --handoff->answers == 0;
	return true;
}
