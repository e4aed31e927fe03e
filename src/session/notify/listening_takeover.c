/* SPDX-License-Identifier: ISC */
#include "session/notify/listening_takeover.h"

#include <string.h>

#include "session/notify/delivery.h"
#include "session/notify/listening_server.h"
#include "wire/frame.h"
#include "wire/message.h"

/* --- writing ------------------------------------------------------------------------------ */

bool listening_takeover_is_settled(const struct server_link *server)
{
	const struct channel_hub *hub = server->link.pool->hub;

	return hub->server == server && hub->in_flight == 0 && !hub->broken &&
		TAILQ_EMPTY(&hub->handoffs);
}

void listening_takeover_write_channels(const struct server_link *server, struct buffer *out)
{
	const struct channel_hub *hub = server->link.pool->hub;
	const struct channel *channel;

	for (channel = hub->channels; channel; channel = channel->by_name.next) {
		if (channel->state == CHANNEL_PRESENT)
			buffer_append(out, channel->name, strlen(channel->name) + 1);
	}
	if (hub->marker && hub->marker->state == CHANNEL_PRESENT)
		buffer_append(out, hub->marker->name, strlen(hub->marker->name) + 1);
}

void listening_takeover_write_messages(
	const struct channel_listener *listener, struct buffer *out)
{
	const struct notification_queue *queue = &listener->queue;

	for (uint32_t i = 0; i < queue->count; i++) {
		const struct notification *item = queue->items[queue->first + i];

		buffer_append(out, item->bytes, item->length);
	}
}

/* --- reading ------------------------------------------------------------------------------ */

static bool are_names(const char *names, size_t length)
{
	const char *end = names + length;

	if (length > 0 && end[-1] != '\0')
		return false;
	for (; names < end; names += strlen(names) + 1) {
		if (*names == '\0' || strlen(names) >= CHANNEL_NAME_SIZE)
			return false;
	}
	return true;
}

static bool subscribe(struct client_link *client, const char *names, size_t length)
{
	const char *end = names + length;

	for (; names < end; names += strlen(names) + 1) {
		struct subscription *subscription = channels_subscription(client, names);
		bool too_many;

		if (!subscription)
			subscription = channels_subscribe(client, names, &too_many);
		if (!subscription)
			return false;
		subscription->confirmed = true;
	}
	return true;
}

static bool offer(struct channel_listener *listener, const uint8_t *message, size_t length)
{
	struct notification *notification = notification_new(message, length);

	if (!notification)
		return false;
	delivery_offer(listener, notification);
	notification_unref(notification);
	return true;
}

static bool take_messages(
	struct channel_listener *listener, const uint8_t *messages, size_t length)
{
	const uint8_t *end = messages + length;
	struct frame frame;

	while (messages < end) {
		if (frame_peek(messages, (size_t)(end - messages), UINT32_MAX, &frame) !=
				FRAME_WHOLE ||
			(frame.type != PQ_NOTIFICATION_RESPONSE &&
				frame.type != PQ_NOTICE_RESPONSE) ||
			!offer(listener, messages, frame.total))
			return false;
		messages += frame.total;
	}
	return true;
}

bool listening_takeover_take_client(struct client_link *client, const char *names,
	size_t length, const uint8_t *messages, size_t messages_length)
{
	struct channel_listener *listener = channels_open_listener(client);

	return listener && are_names(names, length) && subscribe(client, names, length) &&
		take_messages(listener, messages, messages_length);
}

/* The server listens on this channel; if no client does, it is to UNLISTEN. */
static bool take_channel(struct channel_hub *hub, const char *name)
{
	struct channel *channel = channels_open_channel(hub, name);

	if (!channel)
		return false;
	channel->state = CHANNEL_PRESENT;
	channels_note_due(channel);
	return true;
}

bool listening_takeover_take_server(
	struct server_link *server, const char *names, size_t length)
{
	struct channel_hub *hub = channels_open(server->link.pool);
	const char *end = names + length;

	if (!hub || hub->server || !are_names(names, length))
		return false;
	listening_server_launched(server);
	for (; names < end; names += strlen(names) + 1) {
		if (!take_channel(hub, names))
			return false;
	}
	return true;
}

void listening_takeover_drop_server(struct server_link *server)
{
	if (!server->listens)
		return;
	server->link.pool->hub->server = NULL;
	cap_change_listening(server->link.pool, -1);
}

void listening_takeover_end(struct pool *pool)
{
	if (!pool->hub)
		return;
	if (!pool->hub->server)
		listening_server_lost(pool->hub);
	pool_needs_work(pool);
}
