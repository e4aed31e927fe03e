/* SPDX-License-Identifier: ISC */
/* SHOW LISTENERS: the channels that clients listen on by the listening server of their pool. */
#include <stdio.h>

#include "admin/show/show_stream.h"
#include "session/notify/channels.h"

static const struct column columns[] = {
	{"database", COLUMN_TEXT},
	{"user", COLUMN_TEXT},
	{"channel", COLUMN_TEXT},
	{"subscribers", COLUMN_NUMERIC}, /* clients that listen on it */
	{"server", COLUMN_TEXT}, /* the ptr of SHOW SERVERS; NULL: none listens on it now */
	/* Bytes of notifications, of any channel, that its subscribers have not got yet. */
	{"backlog", COLUMN_NUMERIC},
};

static void add_server(struct result *result, const struct channel *channel)
{
	char text[24];

	if (!channels_is_present(channel)) {
		result_text(result, NULL);
		return;
	}
	snprintf(text, sizeof(text), "0x%llx", link_handle(&channel->hub->server->link));
	result_text(result, text);
}

static uint64_t backlog_of(const struct channel *channel)
{
	const struct subscription *each;
	uint64_t bytes = 0;

	TAILQ_FOREACH (each, &channel->subscriptions, in_channel)
		bytes += each->listener->queue.bytes;
	return bytes;
}

static void add_row(struct show_stream *show, void *object, unsigned kind)
{
	struct result *result = &show->result;
	const struct channel *channel = object;
	const struct pool *pool = channel->hub->pool;

	(void)kind;
	if (channel->subscribers == 0)
		return;
	result_begin_row(result);
	result_text(result, pool->label);
	result_text(result, pool->user->name);
	result_text(result, channel->name);
	result_count(result, channel->subscribers);
	add_server(result, channel);
	result_count(result, backlog_of(channel));
	result_end_row(result);
}

/* In the order in which clients first listened on them. */
static void list_channels(struct show_stream *show)
{
	struct pool *pool;

	registry_sort(show->registry);
	TAILQ_FOREACH (pool, &show->registry->process->directory.pools, in_directory) {
		struct channel *channel = pool->hub ? pool->hub->channels : NULL;

		for (; channel; channel = channel->by_name.next)
			show_stream_add_object(show, &channel->handle, channel, 0);
	}
}

static const struct topic_walk listeners = {.list = list_channels, .add_rows = add_row};

const struct topic show_listeners = WALKED_TOPIC("LISTENERS", columns, &listeners);
