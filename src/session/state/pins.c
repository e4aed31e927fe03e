/* SPDX-License-Identifier: ISC */
#include "session/state/pins.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/pool_pins.h"
#include "model/registry.h"
#include "wire/pin_causes.h"
#include "wire/writer.h"

/* At most so many bytes of an object's name are kept. */
enum { NAME_SIZE = 128 };

/* Those of the topics for which servers of the pool are pinned; all of them after a RELOAD. */
static session_topics causes_of(const struct pool *pool, session_topics topics)
{
	const session_topics causes = topics & pool->pin_causes;

	return causes ? causes : topics;
}

const char *pins_cause(const struct server_link *server)
{
	return pin_causes_name(causes_of(server->link.pool, (session_topics)server->pins));
}

/* --- warnings ----------------------------------------------------------------------------- */

static void warn(struct client_link *client, session_topics topics, const char *why)
{
	struct buffer message;
	char text[200];

	snprintf(text, sizeof(text), "%s: %s will not be there in the next transaction", why,
		pin_causes_name(topics));
	link_log_repeated(&client->link, LEVEL_WARNING, "%s", text);
	buffer_init(&message);
	writer_notice(&message, "WARNING", "01000", text);
	link_send(&client->link, &message);
}

void pins_warn(const struct server_link *server, struct client_link *client, const char *why)
{
	warn(client, causes_of(server->link.pool, (session_topics)server->pins), why);
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

/* Count the topic that pin_causes_name() names. */
static void count_pin(struct pool *pool, session_topics topics)
{
	for (unsigned i = 0; i < TOPIC_BITS; i++) {
		if (topics & 1u << i) {
			pool->pins[i]++;
			return;
		}
	}
}

/* Each cause is told once: what the client does, it does again and again. */
static void warn_once(struct client_link *client, session_topics topics, const char *why)
{
	const session_topics cause = pin_causes_first(topics);

	if (client->warned & cause)
		return;
	client->warned |= cause;
	warn(client, topics, why);
}

/* The next time it may be pinned, so each loss is told; but almost each INSERT draws a value. */
static void warn_of_limit(struct client_link *client, session_topics topics)
{
	if (topics == TOPIC_SEQUENCES)
		warn_once(client, topics, "max_pinned is reached");
	else
		warn(client, topics, "max_pinned is reached");
}

/* Returns why no server of the pool is pinned for these topics; NULL: it is. */
static const char *why_not(const struct pool *pool, session_topics topics)
{
	switch (pool->session_state) {
	case SESSION_STATE_FOLLOW:
		return topics & pool->pin_causes ? NULL : "not in pin_causes";
	case SESSION_STATE_WARN:
		return "session_state is warn";
	case SESSION_STATE_INHERIT:
	case SESSION_STATE_ERROR:
	case SESSION_STATE_IGNORE:
		break;
	}
	return "session_state is error";
}

bool pins_set(struct server_link *server, struct client_link *client, session_topics topics,
	const char *name)
{
	struct pool *pool = server->link.pool;
	const session_topics causes = causes_of(pool, topics);
	const char *why;

	if (topics == 0) {
		pins_clear(server);
		return true;
	}
	why = why_not(pool, topics);
	if (why && pool->session_state == SESSION_STATE_ERROR) {
		/* In place of the error that came too late. */
		warn(client, topics, why);
		return false;
	}
	if (why) {
		warn_once(client, topics, why);
		return false;
	}
	if (!server->pins) {
		if (!pool_may_pin(pool)) {
			warn_of_limit(client, causes);
			return false;
		}
		pool_pin(pool);
		count_pin(pool, causes);
		server->pinned_since = loop_now(server->link.stream.loop);
		link_log(&client->link, LEVEL_LOG, "pinned to its server: %s",
			name ? name : pin_causes_name(causes));
	}
	server->pins = topics;
	if (name)
		keep_name(server, name);
	return true;
}

void pins_end_sequences(struct server_link *server)
{
	if (server->pins == TOPIC_SEQUENCES)
		pins_clear(server);
	else
		server->pins &= ~(unsigned)TOPIC_SEQUENCES;
}

const char *pins_are_over(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;
	const usec_t limit = pool->registry->process->settings->max_pinned_time;

	if (pool->session_state != SESSION_STATE_FOLLOW)
		return "session_state has changed";
	if (!(server->pins & pool->pin_causes))
		return "pin_causes has changed";
	if (pool_is_paused(pool))
		return "the pool is paused";
	return limit > 0 && loop_now(server->link.stream.loop) - server->pinned_since > limit
		? "max_pinned_time is reached"
		: NULL;
}
