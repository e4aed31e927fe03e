/* SPDX-License-Identifier: ISC */
#include "session/state/pins.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/registry.h"
#include "wire/writer.h"

/* At most so many bytes of an object's name are kept. */
enum { NAME_SIZE = 128 };

const char *pins_cause(session_topics topics)
{
	if (topics & TOPIC_TEMPORARY)
		return "temporary object";
	if (topics & TOPIC_LOCKS)
		return "advisory lock";
	if (topics & TOPIC_CURSORS)
		return "cursor with hold";
	if (topics & TOPIC_STATEMENTS)
		return "prepared statement";
	if (topics & TOPIC_CHANNELS)
		return "listen";
	return topics & TOPIC_LIBRARY ? "load" : "none";
}

/* --- warnings ----------------------------------------------------------------------------- */

static void warn(struct client_link *client, session_topics topics, const char *why)
{
	struct buffer message;
	char text[200];

	snprintf(text, sizeof(text), "%s: %s will not be there in the next transaction", why,
		pins_cause(topics));
	link_log_repeated(&client->link, LEVEL_WARNING, "%s", text);
	buffer_init(&message);
	writer_notice(&message, "WARNING", "01000", text);
	link_send(&client->link, &message);
}

void pins_warn(const struct server_link *server, struct client_link *client, const char *why)
{
	warn(client, (session_topics)server->pins, why);
}

void pins_warn_of_channels(struct client_link *client)
{
	warn(client, TOPIC_CHANNELS, "listen is error");
}

/* --- pinning ------------------------------------------------------------------------------ */

static void keep_name(struct server_link *server, const char *name)
{
	char text[NAME_SIZE];

	free(server->pinned_by);
	server->pinned_by = NULL;
	if (!name)
		return;
	text_copy(text, sizeof(text), name);
	server->pinned_by = strdup(text);
}

void pins_clear(struct server_link *server)
{
	if (server->pins)
		pool_unpin(server->link.pool);
	server->pins = 0;
	keep_name(server, NULL);
}

/* Count the topic that pins_cause() names. */
static void count_pin(struct pool *pool, session_topics topics)
{
	for (unsigned i = 0; i < TOPIC_BITS; i++) {
		if (topics & 1u << i) {
			pool->pins[i]++;
			return;
		}
	}
}

bool pins_set(struct server_link *server, struct client_link *client, session_topics topics,
	const char *name)
{
	struct pool *pool = server->link.pool;

	if (topics == 0) {
		pins_clear(server);
		return true;
	}
	if (pool->session_state != SESSION_STATE_FOLLOW) {
		warn(client, topics,
			pool->session_state == SESSION_STATE_WARN ? "session_state is warn"
								  : "session_state is error");
		return false;
	}
	if (!server->pins) {
		if (!pool_may_pin(pool)) {
			warn(client, topics, "max_pinned is reached");
			return false;
		}
		pool_pin(pool);
		count_pin(pool, topics);
		server->pinned_since = loop_now(server->link.stream.loop);
		link_log(&client->link, LEVEL_LOG, "pinned to its server: %s",
			name ? name : pins_cause(topics));
	}
	server->pins = topics;
	if (name)
		keep_name(server, name);
	return true;
}

const char *pins_are_over(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;
	const usec_t limit = pool->registry->process->settings->max_pinned_time;

	if (pool->session_state != SESSION_STATE_FOLLOW)
		return "session_state has changed";
	if (pool_is_paused(pool))
		return "the pool is paused";
	return limit > 0 && loop_now(server->link.stream.loop) - server->pinned_since > limit
		? "max_pinned_time is reached"
		: NULL;
}
