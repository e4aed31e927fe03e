/* SPDX-License-Identifier: ISC */
#include "session/notify/delivery.h"

#include "model/registry.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/notify/handoff_state.h"
#include "session/notify/notifier.h"
#include "wire/message.h"
#include "wire/writer.h"

/* --- into the queue ----------------------------------------------------------------------- */

void delivery_offer(struct channel_listener *listener, struct notification *notification)
{
	if (listener->missed)
		return;
	listener->missed = !notification_queue_add(&listener->queue, notification);
	channels_place(listener, LISTENER_READY);
}

void delivery_offer_all(struct channel *channel, struct notification *notification)
{
	struct subscription *each;

	TAILQ_FOREACH (each, &channel->subscriptions, in_channel) {
		if (!each->handoff)
			delivery_offer(each->listener, notification);
		else if (each->handoff->marked_here)
			notification_queue_add(&each->handoff->late, notification);
	}
}

struct notification *delivery_warning(void)
{
	struct notification *notice = NULL;
	struct buffer message = {0};

	writer_notice(&message, "WARNING", "01000",
		"the connection that listens for this client was lost: notifications may be missing");
	if (!message.failed)
		notice = notification_new(message.data, message.length);
	buffer_free(&message);
	return notice;
}

/* --- to the client ------------------------------------------------------------------------ */

/* Is nothing of an answer on its way from this paired server? */
static bool is_between(const struct server_link *server)
{
	return server->transaction_status == READY_IDLE &&
		requests_is_empty(&server->requests) && server->link.remaining == 0 &&
		server->task == SERVER_TASK_NONE && server->batch_progress == BATCH_ENDED;
}

/*
 * A client that waits for a server has got nothing of its answer yet, so that a message may come
 * before it, as from PostgreSQL.
 */
static bool may_receive(const struct client_link *client)
{
	if (client->link.cut || stream_is_blocked(&client->link.stream) ||
		client->step == CLIENT_STEP_SKIPPING || client->step == CLIENT_STEP_LISTENING)
		return false;
	switch (client_state(client)) {
	case CLIENT_IDLE:
	case CLIENT_WAITING:
		return true;
	case CLIENT_PAIRED:
		return is_between((const struct server_link *)client->link.peer);
	case CLIENT_GREETING:
	case CLIENT_AUTHENTICATING:
	case CLIENT_LOOKING_UP:
	case CLIENT_WELCOMING:
	case CLIENT_LAUNCHING:
	case CLIENT_CANCEL_WAITING:
	case CLIENT_CANCEL_SENT:
	case CLIENT_CONSOLE:
	case CLIENT_CLOSED:
	case CLIENT_STATES:
		break;
	}
	return false;
}

/* Its server ends the answer: see pool/return_to_pool. */
static void wait_for_end_of_answer(struct channel_listener *listener)
{
	const struct client_link *client = listener->client;

	channels_place(listener, LISTENER_LATER);
	if (client->link.peer)
		server_of(client->link.peer)->owes_messages = true;
}

void delivery_to_client(struct client_link *client)
{
	struct channel_listener *listener = client->listener;

	if (!listener || listener->queue.count == 0)
		return;
	if (!may_receive(client)) {
		wait_for_end_of_answer(listener);
		return;
	}
	client->link.pool->notifications += listener->queue.count;
	if (!notification_queue_send(&listener->queue, &client->link.stream)) {
		client_close_for(client, REASON_UNEXPECTED_EOF);
		return;
	}
	client->link.pool->notifications -= listener->queue.count;
	channels_place(listener, listener->queue.count > 0 ? LISTENER_LATER : LISTENER_QUIET);
}

/* The LISTEN that it has sent is judged again, and now has an answer. */
static void go_on(struct client_link *client)
{
	client_set_step(client, CLIENT_STEP_NONE);
	client_limits_start(client);
	relay_client_resume(client);
}

/*
 * A client that may receive gets all of a burst, however long: only what has to wait for the client is
 * a backlog.
 */
static bool has_long_backlog(const struct channel_listener *listener)
{
	const int64_t most =
		link_registry(&listener->client->link)->process->settings->max_notify_backlog;

	return most > 0 && listener->queue.bytes > (size_t)most &&
		!may_receive(listener->client);
}

static void close_for_backlog(struct client_link *client)
{
	client->link.pool->notify_overflows++;
	client_close_for(client, REASON_NOTIFY_BACKLOG);
}

static void look_at(struct channel_listener *listener)
{
	struct client_link *client = listener->client;
	const bool resuming = listener->resuming && client->step == CLIENT_STEP_LISTENING;

	channels_place(listener, LISTENER_QUIET);
	listener->resuming = false;
	if (listener->missed || has_long_backlog(listener))
		close_for_backlog(client);
	else if (resuming)
		go_on(client);
	else
		delivery_to_client(client);
}

void delivery_run(struct channel_hub *hub)
{
	const struct pool *pool = hub->pool;
	struct channel_listener *listener;

	/* A client that is closed may have been the last one, for which there was a hub. */
	while (pool->hub == hub && (listener = TAILQ_FIRST(&hub->ready)) != NULL)
		look_at(listener);
}

void delivery_sweep(struct channel_hub *hub)
{
	struct channel_listener *listener, *next;

	TAILQ_FOREACH_SAFE (listener, &hub->later, in_hub, next)
		channels_place(listener, LISTENER_READY);
	delivery_run(hub);
}

/* --- from the server that a client has or had --------------------------------------------- */

/*
 * Between a LISTEN of its client and the handoff, a server listens for its client. What the listening
 * server of the pool brings too, or the server of an older handoff, comes only from there.
 */
static bool comes_twice(const struct client_link *client, const char *channel)
{
	const struct subscription *subscription = channels_subscription(client, channel);

	return subscription && subscription->confirmed;
}

/*
 * Queue the notification of the run's message: the caller has to see to it that the queue is looked
 * at. Returns false when out of memory.
 */
static bool queue_message(struct relay_run *run, struct channel_listener *listener,
	const struct notifier_message *message)
{
	struct notification *notification = notifier_message_for_clients(run, message->pid);

	if (!notification)
		return false;
	delivery_offer(listener, notification);
	notification_unref(notification);
	pool_needs_work(listener->hub->pool);
	return true;
}

/* What waits for the client was sent before this message: it must not be overtaken. */
static enum verdict queue_behind(struct relay_run *run, const struct notifier_message *message)
{
	struct channel_listener *listener = channels_open_listener(run->client);

	if (!listener || !queue_message(run, listener, message))
		return relay_fail(run, failure_of(REASON_NO_MEMORY));
	run->server->owes_messages = true;
	return RELAY_DROP;
}

/* Read the message if it concerns the client of the run: where session_state is not ignored. */
static bool read_for_client(const struct relay_run *run, struct notifier_message *message)
{
	return run->client && run->whole &&
		pool_configured_session_state(run->client->link.pool) != SESSION_STATE_IGNORE &&
		notifier_read(run, message);
}

enum verdict delivery_judge_paired(struct relay_run *run)
{
	struct notifier_message message;

	if (!read_for_client(run, &message))
		return RELAY_PASS;
	if (comes_twice(run->client, message.channel))
		return RELAY_DROP;
	if (run->client->listener && run->client->listener->queue.count > 0)
		return queue_behind(run, &message);
	notifier_write_pid(
		relay_replace_front(run, NOTIFIER_FRONT, NOTIFIER_FRONT), run, message.pid);
	return RELAY_PASS;
}

enum verdict delivery_judge_syncing(struct relay_run *run)
{
	struct notifier_message message;

	if (!read_for_client(run, &message) || comes_twice(run->client, message.channel))
		return RELAY_DROP;
	return queue_behind(run, &message);
}

enum verdict delivery_judge_asked(struct relay_run *run)
{
	struct client_link *client = run->server->asked_for;
	struct channel_listener *listener = client ? channels_open_listener(client) : NULL;
	struct notifier_message message;

	if (!client || !run->whole || !notifier_read(run, &message) ||
		comes_twice(client, message.channel))
		return RELAY_DROP;
	if (!listener || !queue_message(run, listener, &message))
		return relay_fail(run, failure_of(REASON_NO_MEMORY));
	return RELAY_DROP;
}
