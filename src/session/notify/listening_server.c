/* SPDX-License-Identifier: ISC */
#include "session/notify/listening_server.h"

#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "session/link/close.h"
#include "session/notify/delivery.h"
#include "session/notify/handoff.h"
#include "session/notify/handoff_state.h"
#include "session/notify/listening_limits.h"
#include "wire/sql.h"
#include "wire/writer.h"

/* Queries that are sent before the first of them is answered. */
enum { IN_FLIGHT_MAX = 256 };

/* --- wanted ------------------------------------------------------------------------------- */

bool listening_server_is_wanted(const struct pool *pool)
{
	return pool->hub && !pool->hub->server && pool->hub->count > 0;
}

/* --- a server comes ----------------------------------------------------------------------- */

/* No server listens on any channel. */
static void forget_channels(struct channel_hub *hub)
{
	struct channel *channel, *next;

	while ((channel = TAILQ_FIRST(&hub->asked)) != NULL)
		TAILQ_REMOVE(&hub->asked, channel, in_list);
	hub->in_flight = 0;
	notification_unref(hub->error);
	hub->error = NULL;
	hub->broken = false;
	if (hub->marker) {
		hub->marker->state = CHANNEL_ABSENT;
		channels_note_due(hub->marker);
	}
	HASH_ITER (by_name, hub->channels, channel, next) {
		channel->state = CHANNEL_ABSENT;
		if (channel->subscribers > 0)
			channels_note_due(channel);
		else if (!channel->is_due)
			channels_drop_unused(channel);
	}
}

void listening_server_launched(struct server_link *server)
{
	server->listens = true;
	server->link.pool->hub->server = server;
	cap_change_listening(server->link.pool, 1);
	forget_channels(server->link.pool->hub);
}

/* --- to the server ------------------------------------------------------------------------ */

static void write_command(struct buffer *out, const char *verb, const char *name)
{
	const size_t mark = writer_begin(out, PQ_QUERY);

	writer_bytes(out, verb, strlen(verb));
	sql_append_name(out, name);
	writer_byte(out, 0);
	writer_end(out, mark);
}

/* Take the first channel of those that are due, and write its command if it needs one. */
static void take_due(struct channel_hub *hub, struct buffer *out)
{
	struct channel *channel = TAILQ_FIRST(&hub->due);
	const bool wanted = channel->subscribers > 0 || channel == hub->marker;

	TAILQ_REMOVE(&hub->due, channel, in_list);
	channel->is_due = false;
	if (wanted == (channel->state == CHANNEL_PRESENT)) {
		channels_drop_unused(channel);
		return;
	}
	write_command(out, wanted ? "LISTEN " : "UNLISTEN ", channel->name);
	channel->state = wanted ? CHANNEL_ASKED : CHANNEL_LEAVING;
	TAILQ_INSERT_TAIL(&hub->asked, channel, in_list);
	hub->in_flight++;
}

static void send_due(struct channel_hub *hub)
{
	struct buffer message = {0};

	if (!channels_has_server(hub))
		return;
	while (!TAILQ_EMPTY(&hub->due) && hub->in_flight < IN_FLIGHT_MAX)
		take_due(hub, &message);
	if (message.length == 0 && !message.failed)
		return;
	if (!link_send(&hub->server->link, &message)) {
		buffer_free(&message);
		server_close_for(hub->server, REASON_SERVER_CONNECTION_CLOSED);
	}
}

void listening_server_begin(struct server_link *server)
{
	server_enter(server, SERVER_LISTENING);
	link_log(&server->link, LEVEL_LOG, "listens for the clients of its pool");
	send_due(server->link.pool->hub);
}

void listening_server_work(struct pool *pool)
{
	struct channel_hub *hub = pool->hub;

	if (!hub)
		return;
	delivery_run(hub);
	/* A client that was closed may have been the last one. */
	if (!pool->hub)
		return;
	handoff_check(hub);
	send_due(hub);
	channels_release(pool);
}

void listening_server_run_ended(struct server_link *server)
{
	struct channel_hub *hub = server->link.pool->hub;

	if (hub->broken) {
		server_close_for(server, REASON_LISTEN_FAILED);
		return;
	}
	delivery_run(hub);
	if (server->link.state != SERVER_LISTENING)
		return;
	handoff_check(hub);
	send_due(hub);
}

/* --- errors for clients that wait --------------------------------------------------------- */

/* Let the client go on with its LISTEN, which ends with this error. */
static void end_listen(struct channel_listener *listener, struct notification *error)
{
	if (!listener->error && error)
		listener->error = notification_ref(error);
	listener->resuming = true;
	channels_place(listener, LISTENER_READY);
}

/* End what has not been confirmed. Returns whether the channel has other subscriptions. */
static bool refuse(struct channel *channel, struct notification *error)
{
	struct subscription *each, *next;

	channel->state = CHANNEL_LEAVING; /* so that it does not vanish during the walk */
	TAILQ_FOREACH_SAFE (each, &channel->subscriptions, in_channel, next) {
		if (each->confirmed || each->handoff)
			continue;
		end_listen(each->listener, error);
		channels_unsubscribe(each);
	}
	channel->state = CHANNEL_ABSENT;
	return channel->subscribers > 0;
}

void listening_server_refused(struct pool *pool, const struct failure *why)
{
	struct channel *channel, *next;
	struct notification *error;
	struct buffer message = {0};

	if (!pool->hub)
		return;
	writer_error(&message, "ERROR", why->sqlstate, why->text);
	error = message.failed ? NULL : notification_new(message.data, message.length);
	buffer_free(&message);
	HASH_ITER (by_name, pool->hub->channels, channel, next) {
		if (!refuse(channel, error))
			channels_drop_unused(channel);
	}
	notification_unref(error);
	handoff_abandon(pool->hub);
}

/* --- from the server ---------------------------------------------------------------------- */

bool listening_server_take_notification(
	const struct relay_run *run, const struct notifier_message *message)
{
	struct channel_hub *hub = run->server->link.pool->hub;
	struct notification *notification;
	struct channel *channel;

	if (hub->marker && strcmp(message->channel, hub->marker->name) == 0) {
		handoff_marked(hub, message->payload);
		return true;
	}
	channel = channels_find(hub, message->channel);
	if (!channel || channel->subscribers == 0)
		return true;
	notification = notifier_message_for_clients(run, message->pid);
	if (!notification)
		return false;
	delivery_offer_all(channel, notification);
	notification_unref(notification);
	return true;
}

/* Clients that listened before must not be left without notice: then the server is closed. */
static void listen_has_failed(struct channel *channel)
{
	struct channel_hub *hub = channel->hub;

	if (refuse(channel, hub->error) || channel == hub->marker)
		hub->broken = true;
	else
		channels_drop_unused(channel);
}

static void listen_is_done(struct channel *channel)
{
	struct subscription *each;

	channel->state = CHANNEL_PRESENT;
	TAILQ_FOREACH (each, &channel->subscriptions, in_channel) {
		if (!each->confirmed && !each->handoff)
			end_listen(each->listener, NULL);
	}
}

/* The oldest query in flight has ended. */
static void end_query(struct channel_hub *hub)
{
	struct channel *channel = TAILQ_FIRST(&hub->asked);
	const bool listened = channel->state == CHANNEL_ASKED;

	TAILQ_REMOVE(&hub->asked, channel, in_list);
	hub->in_flight--;
	if (listened && hub->error) {
		listen_has_failed(channel);
	} else if (listened) {
		listen_is_done(channel);
		if (channel->subscribers == 0 && channel != hub->marker)
			channels_note_due(channel);
	} else {
		hub->broken = hub->broken || hub->error;
		channel->state = CHANNEL_ABSENT;
		if (channel->subscribers > 0)
			channels_note_due(channel);
		else
			channels_drop_unused(channel);
	}
	notification_unref(hub->error);
	hub->error = NULL;
}

bool listening_server_take_ready(struct channel_hub *hub)
{
	if (TAILQ_EMPTY(&hub->asked))
		return false;
	end_query(hub);
	return true;
}

/* Without a query in flight the server says why it ends the session. */
bool listening_server_take_error(struct channel_hub *hub, const void *message, size_t length)
{
	if (TAILQ_EMPTY(&hub->asked) || hub->error)
		return true;
	hub->error = notification_new(message, length);
	return hub->error != NULL;
}

/* --- the end ------------------------------------------------------------------------------ */

/* Is the client warned for a handoff? What its own server brings is not lost. */
static bool is_handed(const struct subscription *subscription)
{
	return subscription->handoff && !subscription->handoff->marked_here;
}

/* Each client once, on however many channels it listens. */
static void warn(struct channel_hub *hub, struct notification *notice)
{
	unsigned count = 0;

	struct channel *channel, *next;
	struct subscription *each;

	hub->losses++;
	HASH_ITER (by_name, hub->channels, channel, next) {
		TAILQ_FOREACH (each, &channel->subscriptions, in_channel) {
			if (!each->confirmed || is_handed(each) ||
				each->listener->losses == hub->losses)
				continue;
			each->listener->losses = hub->losses;
			delivery_offer(each->listener, notice);
			count++;
		}
	}
	log_write(LEVEL_WARNING,
		"%s/%s: the connection that listens was lost: %u clients are warned",
		hub->pool->database->name, hub->pool->user->name, count);
}

static bool has_confirmed(const struct channel_hub *hub)
{
	const struct channel *channel;

	for (channel = hub->channels; channel; channel = channel->by_name.next) {
		const struct subscription *each;

		TAILQ_FOREACH (each, &channel->subscriptions, in_channel) {
			if (each->confirmed)
				return true;
		}
	}
	return false;
}

static void tell_loss(struct channel_hub *hub)
{
	struct notification *notice = delivery_warning();

	hub->pool->listening_losses++;
	if (notice)
		warn(hub, notice);
	notification_unref(notice);
}

void listening_server_lost(struct channel_hub *hub)
{
	if (has_confirmed(hub))
		tell_loss(hub);
	handoff_listening_server_lost(hub);
	forget_channels(hub);
}

/* Another process has the server, and the clients: nothing is said to them. */
static void hand_over_channels(struct channel_hub *hub)
{
	struct channel *channel;

	forget_channels(hub);
	while ((channel = TAILQ_FIRST(&hub->due)) != NULL) {
		TAILQ_REMOVE(&hub->due, channel, in_list);
		channel->is_due = false;
		channels_drop_unused(channel);
	}
}

void listening_server_closed(
	struct server_link *server, enum server_state state, const struct failure *why)
{
	struct pool *pool = server->link.pool;

	if (!server->listens)
		return;
	pool->hub->server = NULL;
	cap_change_listening(pool, -1);
	pool->hub->wanted_since = loop_now(pool->registry->loop);
	if (why->reason == REASON_DISKO_OVER) {
		hand_over_channels(pool->hub);
		channels_release(pool);
		return;
	}
	if (state == SERVER_LISTENING)
		listening_server_lost(pool->hub);
	else if (pool->failing && pool->refused)
		listening_server_refused(pool, why);
	else
		handoff_abandon(pool->hub);
	channels_release(pool);
	pool_needs_work(pool);
}

/* --- upkeep ------------------------------------------------------------------------------- */

static bool is_idle(const struct channel_hub *hub, usec_t now)
{
	const usec_t limit = hub->pool->registry->process->settings->server_idle_timeout;

	return hub->count == 0 && TAILQ_EMPTY(&hub->handoffs) && limit > 0 &&
		now - hub->used > limit;
}

static void inspect(struct channel_hub *hub, usec_t now)
{
	if (!channels_has_server(hub))
		return;
	if (hub->server->close_needed)
		server_close_for(hub->server, REASON_DATABASE_CONFIGURATION_CHANGED);
	else if (pool_is_paused(hub->pool))
		server_close_for(hub->server, REASON_PAUSE_MODE);
	else if (listening_limits_exceeded(hub->pool))
		server_close_for(hub->server, REASON_LISTENING_SERVERS);
	else if (is_idle(hub, now))
		server_close_for(hub->server, REASON_SERVER_IDLE_TIMEOUT);
}

void listening_server_upkeep(struct pool *pool, usec_t now)
{
	if (!pool->hub)
		return;
	handoff_expire(pool->hub, now);
	delivery_sweep(pool->hub);
	if (pool->hub)
		inspect(pool->hub, now);
	if (pool->hub)
		channels_release(pool);
	if (listening_server_is_wanted(pool))
		pool_needs_work(pool);
}

/* --- clients that move -------------------------------------------------------------------- */

/*
 * Have the client listen on these channels, `length` bytes of names, each with a NUL, on which another
 * server has listened before.
 */
static bool subscribe_again(struct client_link *client, const char *names, size_t length)
{
	struct channel_listener *listener = channels_open_listener(client);
	struct notification *notice = listener ? delivery_warning() : NULL;
	const char *end = names + length;
	bool good = notice != NULL;

	for (; good && names < end; names += strlen(names) + 1) {
		bool too_many;
		struct subscription *subscription =
			channels_subscribe(client, names, &too_many);

		good = subscription != NULL;
		if (subscription)
			subscription->confirmed = true;
	}
	if (good)
		delivery_offer(listener, notice);
	notification_unref(notice);
	pool_needs_work(client->link.pool);
	return good;
}

bool listening_server_move_client(struct client_link *client, struct pool *pool)
{
	struct notification_queue queue = client->listener->queue;
	struct buffer names = {0};
	bool good;

	client->listener->queue = (struct notification_queue){0};
	channels_write_names(client->listener, &names);
	channels_forget_client(client);
	client_move(client, pool);
	good = !names.failed &&
		subscribe_again(client, (const char *)names.data, names.length) &&
		notification_queue_move(&queue, &client->listener->queue);
	buffer_free(&names);
	if (!good) {
		notification_queue_clear(&queue);
		return false;
	}
	client->listener->queue = queue;
	/* Its LISTEN that waits is judged again, in the new pool. */
	client->listener->resuming = client->step == CLIENT_STEP_LISTENING;
	channels_place(client->listener, LISTENER_READY);
	return true;
}
