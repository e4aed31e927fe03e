/* SPDX-License-Identifier: ISC */
#include "session/notify/channels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "session/notify/handoff_state.h"

/* --- hubs --------------------------------------------------------------------------------- */

struct channel_hub *channels_open(struct pool *pool)
{
	struct channel_hub *hub = pool->hub;

	if (hub)
		return hub;
	hub = calloc(1, sizeof(*hub));
	if (!hub)
		return NULL;
	hub->pool = pool;
	TAILQ_INIT(&hub->due);
	TAILQ_INIT(&hub->asked);
	TAILQ_INIT(&hub->ready);
	TAILQ_INIT(&hub->later);
	TAILQ_INIT(&hub->handoffs);
	pool->hub = hub;
	return hub;
}

static void drop(struct channel *channel)
{
	struct channel_hub *hub = channel->hub;

	if (channel->is_due)
		TAILQ_REMOVE(&hub->due, channel, in_list);
	HASH_DELETE(by_name, hub->channels, channel);
	handles_take_back(&hub->pool->registry->process->handles, &channel->handle, channel);
	hub->count--;
	free(channel);
}

void channels_release(struct pool *pool)
{
	struct channel_hub *hub = pool->hub;
	struct channel *channel, *next;

	if (!hub || hub->server || hub->listeners > 0 || !TAILQ_EMPTY(&hub->handoffs))
		return;
	/* Those that no client listens on, and that no server was asked to leave any more. */
	HASH_ITER (by_name, hub->channels, channel, next)
		drop(channel);
	if (hub->marker && hub->marker->is_due)
		TAILQ_REMOVE(&hub->due, hub->marker, in_list);
	free(hub->marker);
	free(hub);
	pool->hub = NULL;
}

/* Until there is a server, its parameters will be those of any new session. */
bool channels_suit(const struct client_link *client)
{
	const struct pool *pool = client->link.pool;
	const struct parameters *set = pool->hub && channels_has_server(pool->hub)
		? pool->hub->server->link.parameters
		: pool->welcome;
	const int index = parameter_index(pool->registry->parameters, "client_encoding");
	const char *here, *there;

	if (!set || index < 0)
		return false;
	here = parameters_get(client->link.parameters, (unsigned)index);
	there = parameters_get(set, (unsigned)index);
	return here && there && strcmp(here, there) == 0;
}

/* --- channels ----------------------------------------------------------------------------- */

static unsigned hash_of(const struct channel_hub *hub, const char *name)
{
	return (unsigned)keyed_hash_of(&hub->pool->registry->name_hash, name, strlen(name));
}

struct channel *channels_find(const struct channel_hub *hub, const char *name)
{
	struct channel *found = NULL;

	if (hub->channels)
		HASH_FIND_BYHASHVALUE(
			by_name, hub->channels, name, strlen(name), hash_of(hub, name), found);
	return found;
}

static struct channel *new_channel(struct channel_hub *hub, const char *name)
{
	const size_t size = strlen(name) + 1;
	struct channel *channel = calloc(1, sizeof(*channel) + size);

	if (!channel)
		return NULL;
	channel->hub = hub;
	TAILQ_INIT(&channel->subscriptions);
	memcpy(channel->name, name, size);
	return channel;
}

struct channel *channels_open_channel(struct channel_hub *hub, const char *name)
{
	struct channel *channel = channels_find(hub, name);

	if (channel)
		return channel;
	channel = new_channel(hub, name);
	if (!channel)
		return NULL;
	HASH_ADD_KEYPTR_BYHASHVALUE(by_name, hub->channels, channel->name, strlen(name),
		hash_of(hub, name), channel);
	if (!channel->by_name.tbl) {
		free(channel);
		return NULL;
	}
	hub->count++;
	return channel;
}

/* Only pgusher knows the name, so that no client gets the tokens. */
struct channel *channels_marker(struct channel_hub *hub)
{
	struct random *random = &hub->pool->registry->loop->random;
	char name[CHANNEL_NAME_SIZE];
	uint64_t secret[2];

	if (hub->marker)
		return hub->marker;
	random_fill(random, secret, sizeof(secret));
	snprintf(name, sizeof(name), "pgusher_%016llx%016llx", (unsigned long long)secret[0],
		(unsigned long long)secret[1]);
	hub->marker = new_channel(hub, name);
	if (hub->marker)
		channels_note_due(hub->marker);
	return hub->marker;
}

void channels_note_due(struct channel *channel)
{
	struct channel_hub *hub = channel->hub;

	if (channel->is_due || channel->state == CHANNEL_ASKED ||
		channel->state == CHANNEL_LEAVING)
		return;
	channel->is_due = true;
	TAILQ_INSERT_TAIL(&hub->due, channel, in_list);
	pool_needs_work(hub->pool);
}

void channels_drop_unused(struct channel *channel)
{
	if (channel != channel->hub->marker && channel->subscribers == 0 &&
		channel->state == CHANNEL_ABSENT)
		drop(channel);
}

/* --- listeners ---------------------------------------------------------------------------- */

struct channel_listener *channels_open_listener(struct client_link *client)
{
	struct channel_hub *hub = channels_open(client->link.pool);
	struct channel_listener *listener = client->listener;

	if (listener || !hub)
		return hub ? listener : NULL;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return NULL;
	listener->client = client;
	listener->hub = hub;
	TAILQ_INIT(&listener->subscriptions);
	client->listener = listener;
	hub->listeners++;
	return listener;
}

static struct channel_listener_list *list_of(
	struct channel_listener *listener, enum listener_place place)
{
	return place == LISTENER_READY ? &listener->hub->ready : &listener->hub->later;
}

void channels_place(struct channel_listener *listener, enum listener_place place)
{
	if (listener->place == place)
		return;
	if (listener->place != LISTENER_QUIET)
		TAILQ_REMOVE(list_of(listener, listener->place), listener, in_hub);
	listener->place = place;
	if (place != LISTENER_QUIET)
		TAILQ_INSERT_TAIL(list_of(listener, place), listener, in_hub);
}

void channels_forget_client(struct client_link *client)
{
	struct channel_listener *listener = client->listener;
	struct handoff *handoff;
	struct pool *pool;

	if (!listener)
		return;
	pool = listener->hub->pool;
	channels_unsubscribe_all(client);
	TAILQ_FOREACH (handoff, &listener->hub->handoffs, in_hub) {
		if (handoff->listener == listener) {
			/* It need not wait any more. */
			handoff->listener = NULL;
			pool_needs_work(pool);
		}
	}
	channels_place(listener, LISTENER_QUIET);
	notification_queue_clear(&listener->queue);
	notification_unref(listener->error);
	buffer_free(&listener->unlistens);
	free(listener);
	client->listener = NULL;
	pool->hub->listeners--;
	channels_release(pool);
}

/* --- subscriptions ------------------------------------------------------------------------ */

struct subscription *channels_subscription(const struct client_link *client, const char *name)
{
	struct subscription *each;

	if (!client->listener)
		return NULL;
	TAILQ_FOREACH (each, &client->listener->subscriptions, in_listener) {
		if (strcmp(each->channel->name, name) == 0)
			return each;
	}
	return NULL;
}

struct subscription *channels_subscribe(
	struct client_link *client, const char *name, bool *too_many)
{
	struct channel_listener *listener = channels_open_listener(client);
	struct subscription *subscription;
	struct channel *channel;

	*too_many = false;
	if (!listener)
		return NULL;
	channel = channels_find(listener->hub, name);
	*too_many = listener->channels >= CHANNELS_PER_CLIENT ||
		(!channel && listener->hub->count >= CHANNELS_PER_POOL);
	if (*too_many)
		return NULL;
	if (!channel)
		channel = channels_open_channel(listener->hub, name);
	subscription = channel ? calloc(1, sizeof(*subscription)) : NULL;
	if (!subscription) {
		if (channel)
			channels_drop_unused(channel);
		return NULL;
	}
	if (listener->hub->subscriptions == 0)
		listener->hub->wanted_since = loop_now(listener->hub->pool->registry->loop);
	subscription->channel = channel;
	subscription->listener = listener;
	TAILQ_INSERT_TAIL(&channel->subscriptions, subscription, in_channel);
	TAILQ_INSERT_TAIL(&listener->subscriptions, subscription, in_listener);
	channel->subscribers++;
	listener->channels++;
	listener->hub->subscriptions++;
	listener->hub->used = loop_now(listener->hub->pool->registry->loop);
	if (channel->state == CHANNEL_ABSENT)
		channels_note_due(channel);
	return subscription;
}

void channels_unsubscribe(struct subscription *subscription)
{
	struct channel *channel = subscription->channel;
	struct channel_listener *listener = subscription->listener;

	TAILQ_REMOVE(&channel->subscriptions, subscription, in_channel);
	TAILQ_REMOVE(&listener->subscriptions, subscription, in_listener);
	channel->subscribers--;
	listener->channels--;
	listener->hub->subscriptions--;
	listener->hub->used = loop_now(listener->hub->pool->registry->loop);
	free(subscription);
	if (channel->subscribers == 0 && channel->state == CHANNEL_PRESENT)
		channels_note_due(channel);
	else
		channels_drop_unused(channel);
}

void channels_unsubscribe_all(struct client_link *client)
{
	struct subscription *first;

	while (client->listener &&
		(first = TAILQ_FIRST(&client->listener->subscriptions)) != NULL)
		channels_unsubscribe(first);
}

void channels_write_names(const struct channel_listener *listener, struct buffer *out)
{
	const struct subscription *each;

	TAILQ_FOREACH (each, &listener->subscriptions, in_listener) {
		if (each->confirmed)
			buffer_append(
				out, each->channel->name, strlen(each->channel->name) + 1);
	}
}
