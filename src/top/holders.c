/* SPDX-License-Identifier: ISC */
#include "top/holders.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "top/ages.h"

/* A client by its ptr. */
struct handle {
	const char *ptr;
	size_t row;
};

/* What a join needs of the answers. */
struct join {
	const struct feed *feed;
	const struct holds *holds;
	const struct table *servers, *clients;
	struct handle *handles; /* by ptr */
	size_t handle_count;
	size_t server_ptr, server_link, server_database, server_user;
	size_t server_request;
	size_t client_ptr, client_link, client_wait, client_wait_us, client_request;
	size_t pool; /* of the server before: the next one is often of the same */
	double now;
};

static int by_ptr(const void *left, const void *right)
{
	return strcmp(((const struct handle *)left)->ptr, ((const struct handle *)right)->ptr);
}

static bool list_handles(struct join *join)
{
	const size_t column = table_column(join->clients, "ptr");

	join->handles = calloc(join->clients->row_count + 1, sizeof(*join->handles));
	if (!join->handles)
		return false;
	for (size_t row = 0; row < join->clients->row_count; row++) {
		const char *ptr = table_text(join->clients, row, column);

		if (ptr && ptr[0])
			join->handles[join->handle_count++] = (struct handle){ptr, row};
	}
	qsort(join->handles, join->handle_count, sizeof(*join->handles), by_ptr);
	return true;
}

static bool begin(struct join *join, const struct feed *feed, const struct holds *holds)
{
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
	return list_handles(join);
}

static size_t client_of(const struct join *join, size_t server)
{
	const char *link = table_text(join->servers, server, join->server_link);
	const char *ptr = table_text(join->servers, server, join->server_ptr), *back;
	const struct handle wanted = {link, 0}, *found;

	if (!link || !link[0] || !ptr)
		return HOLDERS_NO_CLIENT;
	found = bsearch(&wanted, join->handles, join->handle_count, sizeof(wanted), by_ptr);
	if (!found)
		return HOLDERS_NO_CLIENT;
	back = table_text(join->clients, found->row, join->client_link);
	return back && strcmp(back, ptr) == 0 ? found->row : HOLDERS_NO_CLIENT;
}

static bool equals(const struct table *table, size_t row, size_t column, const char *text)
{
	const char *cell = table_text(table, row, column);

	return cell && text && strcmp(cell, text) == 0;
}

static bool is_session_pool(struct join *join, size_t server)
{
	const struct table *pools = feed_table(join->feed, TOPIC_POOLS);
	const size_t database = table_column(pools, "database"),
		     user = table_column(pools, "user"),
		     mode = table_column(pools, "pool_mode");

	for (size_t i = 0; i < pools->row_count; i++) {
		const size_t row = (join->pool + i) % pools->row_count;

		if (equals(pools, row, database,
			    table_text(join->servers, server, join->server_database)) &&
			equals(pools, row, user,
				table_text(join->servers, server, join->server_user))) {
			join->pool = row;
			return equals(pools, row, mode, "session");
		}
	}
	return false;
}

static bool is_pinned(const struct join *join, size_t server)
{
	const struct table *pins = feed_table(join->feed, TOPIC_PINS);
	const char *ptr = table_text(join->servers, server, join->server_ptr);

	return ptr && table_find(pins, table_column(pins, "server"), ptr) < pins->row_count;
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

static struct holder join_server(struct join *join, size_t server)
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
	if (begin(&join, feed, holds))
		holders->list = calloc(join.servers->row_count + 1, sizeof(*holders->list));
	if (holders->list) {
		holders->count = join.servers->row_count;
		holders->now = join.now;
		for (size_t row = 0; row < holders->count; row++)
			holders->list[row] = join_server(&join, row);
	}
	free(join.handles);
}

void holders_free(struct holders *holders)
{
	free(holders->list);
	*holders = (struct holders){0};
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
