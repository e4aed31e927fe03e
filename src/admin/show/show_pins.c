/* SPDX-License-Identifier: ISC */
/* SHOW PINS: the servers that stay with their clients between transactions, and why. */
#include <stdio.h>

#include "admin/show/show_stream.h"
#include "session/state/pins.h"

static const struct column columns[] = {
	{"database", COLUMN_TEXT},
	{"user", COLUMN_TEXT},
	{"client", COLUMN_TEXT}, /* the ptr of SHOW CLIENTS */
	{"server", COLUMN_TEXT}, /* the ptr of SHOW SERVERS */
	{"client_addr", COLUMN_TEXT},
	{"cause", COLUMN_TEXT},
	{"object", COLUMN_TEXT}, /* one of them, as the server calls it */
	{"pinned_seconds", COLUMN_NUMERIC},
};

static void add_handle(struct result *result, const struct link *link)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%llx", link_handle(link));
	result_text(result, text);
}

static void add_row(struct show_stream *show, void *object, unsigned kind)
{
	struct result *result = &show->result;
	const struct server_link *server = object;
	const struct pool *pool = server->link.pool;
	const struct link *client =
		server->asked_for ? &server->asked_for->link : server->link.peer;
	char address[ADDRESS_TEXT_SIZE];

	(void)kind;
	if (!server->pins || !client)
		return;
	result_begin_row(result);
	result_text(result, pool->label);
	result_text(result, pool->user->name);
	add_handle(result, client);
	add_handle(result, &server->link);
	result_text(result, address_host(&client->remote, address));
	result_text(result, pins_cause(server));
	result_text(result, server->pinned_by);
	result_count(result,
		(uint64_t)((loop_now(server->link.stream.loop) - server->pinned_since) /
			USEC_PER_SEC));
	result_end_row(result);
}

static void list_servers(struct show_stream *show)
{
	struct pool *pool;

	registry_sort(show->registry);
	TAILQ_FOREACH (pool, &show->registry->process->directory.pools, in_directory) {
		struct pool_walk walk;
		struct link *link;

		if (pool->pinned == 0)
			continue;
		walk = pool_walk_servers(pool);
		while ((link = pool_walk_next(&walk)) != NULL) {
			if (server_of(link)->pins)
				show_stream_add_object(show, &link->handle, link, 0);
		}
	}
}

static const struct topic_walk pins = {.list = list_servers, .add_rows = add_row};

const struct topic show_pins = WALKED_TOPIC("PINS", columns, &pins);
