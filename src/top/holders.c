/* SPDX-License-Identifier: ISC */
#include "top/holders.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "top/ages.h"
#include "top/lookup.h"

/* What a join needs of the answers. */
struct join {
	const struct feed *feed;
	const struct holds *holds;
	const struct table *servers, *clients;
	struct lookup handles; /* clients by ptr */
	struct lookup pins; /* by server */
	struct lookup pools; /* by database and user */
	size_t server_ptr, server_link, server_database, server_user;
	size_t server_request;
	size_t client_ptr, client_link, client_wait, client_wait_us, client_request;
	double now;
};

static void begin(struct join *join, const struct feed *feed, const struct holds *holds)
{
	const struct table *pins = feed_table(feed, TOPIC_PINS),
			   *pools = feed_table(feed, TOPIC_POOLS);

	*join = (struct join){
		.feed = feed,
		.holds = holds,
		.servers = feed_table(feed, TOPIC_SERVERS),
		.clients = feed_table(feed, TOPIC_CLIENTS),
	};
	join->server_ptr = table_column(join->servers, "ptr");
	join->server_link = table_column(join->servers, "link");
	join->server_database = table_column(join->servers, "database");
	join->server_user = table_column(join->servers, "user");
	join->server_request = table_column(join->servers, "request_time");
	join->client_ptr = table_column(join->clients, "ptr");
	join->client_link = table_column(join->clients, "link");
	join->client_wait = table_column(join->clients, "wait");
	join->client_wait_us = table_column(join->clients, "wait_us");
	join->client_request = table_column(join->clients, "request_time");
	join->now = ages_now(join->clients);
	lookup_begin(&join->handles, join->clients, join->client_ptr, TABLE_NO_COLUMN);
	lookup_begin(&join->pins, pins, table_column(pins, "server"), TABLE_NO_COLUMN);
	lookup_begin(&join->pools, pools, table_column(pools, "database"),
		table_column(pools, "user"));
}

static size_t client_of(const struct join *join, size_t server)
{
	const char *link = table_text(join->servers, server, join->server_link);
	const char *ptr = table_text(join->servers, server, join->server_ptr), *back;
	size_t client;

	if (!link || !link[0] || !ptr)
		return HOLDERS_NO_CLIENT;
	client = lookup_find(&join->handles, link, NULL);
	back = table_text(join->clients, client, join->client_link);
	return back && strcmp(back, ptr) == 0 ? client : HOLDERS_NO_CLIENT;
}

static bool is_session_pool(const struct join *join, size_t server)
{
	const struct table *pools = feed_table(join->feed, TOPIC_POOLS);
	const size_t row = lookup_find(&join->pools,
		table_text(join->servers, server, join->server_database),
		table_text(join->servers, server, join->server_user));
	const char *mode = table_text(pools, row, table_column(pools, "pool_mode"));

	return mode && strcmp(mode, "session") == 0;
}

static bool is_pinned(const struct join *join, size_t server)
{
	const char *ptr = table_text(join->servers, server, join->server_ptr);

	return lookup_find(&join->pins, ptr, NULL) != LOOKUP_NONE;
}

/* How long the query of a pair has been running at the server, as far as it is known. */
static double query_time(const struct join *join, const struct holder *pair, double wait)
{
	const double seen = holds_find(join->holds,
			     table_text(join->clients, pair->client, join->client_ptr)),
		     silent = ages_of(
			     join->servers, pair->server, join->server_request, join->now);

	/* Times of messages are in whole seconds: it may be one more. */
	if (silent >= 0 && silent + 1 < wait)
		wait = silent + 1;
	return wait > seen ? wait : seen;
}

static struct holder join_server(const struct join *join, size_t server)
{
	struct holder holder = {
		.server = server,
		.client = client_of(join, server),
		.since = AGES_UNKNOWN,
	};
	double wait;

	if (holder.client == HOLDERS_NO_CLIENT)
		return holder;
	wait = ages_wait(join->clients, holder.client, join->client_wait, join->client_wait_us);
	if (wait > 0) {
		holder.holding = HOLDING_QUERY;
		holder.since = query_time(join, &holder, wait);
		return holder;
	}
	holder.since = ages_of(join->clients, holder.client, join->client_request, join->now);
	if (is_session_pool(join, server))
		holder.holding = HOLDING_SESSION;
	else
		holder.holding = is_pinned(join, server) ? HOLDING_PIN : HOLDING_TRANSACTION;
	return holder;
}

void holders_read(struct holders *holders, const struct feed *feed, const struct holds *holds)
{
	struct join join;

	*holders = (struct holders){0};
	begin(&join, feed, holds);
	holders->list = calloc(join.servers->row_count + 1, sizeof(*holders->list));
	if (holders->list) {
		holders->count = join.servers->row_count;
		holders->now = join.now;
		for (size_t row = 0; row < holders->count; row++)
			holders->list[row] = join_server(&join, row);
	}
	lookup_free(&join.handles);
	lookup_free(&join.pins);
	lookup_free(&join.pools);
}

void holders_free(struct holders *holders)
{
	free(holders->list);
	*holders = (struct holders){0};
}

static bool equals(const struct table *table, size_t row, size_t column, const char *text)
{
	const char *cell = table_text(table, row, column);

	return cell && text && strcmp(cell, text) == 0;
}

static void add_to_sum(struct holders_sum *sum, const struct holder *holder)
{
	if (holder->holding == HOLDING_NOTHING)
		return;
	sum->queries += holder->holding == HOLDING_QUERY;
	sum->transactions += holder->holding == HOLDING_TRANSACTION;
	sum->others += holder->holding == HOLDING_PIN || holder->holding == HOLDING_SESSION;
	if (!sum->oldest || holder->since > sum->oldest->since)
		sum->oldest = holder;
}

struct holders_sum holders_of(const struct holders *holders, const struct feed *feed,
	const char *database, const char *user)
{
	const struct table *servers = feed_table(feed, TOPIC_SERVERS);
	const size_t databases = table_column(servers, "database"),
		     users = table_column(servers, "user");
	struct holders_sum sum = {0};

	for (size_t i = 0; i < holders->count; i++) {
		if (equals(servers, holders->list[i].server, databases, database) &&
			equals(servers, holders->list[i].server, users, user))
			add_to_sum(&sum, &holders->list[i]);
	}
	return sum;
}
