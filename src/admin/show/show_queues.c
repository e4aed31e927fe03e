/* SPDX-License-Identifier: ISC */
/* SHOW STATS_QUEUES: the clients that wait for a server, and the queries that never got one. */
#include "admin/show/show_stream.h"

static const struct column columns[] = {
	{"database", COLUMN_TEXT},
	{"user", COLUMN_TEXT},
	{"waiting", COLUMN_NUMERIC}, /* clients in the queue now */
	{"max_pool_waiters", COLUMN_NUMERIC}, /* that applies; 0: no limit */
	/* Queries that ended with an error since the start, by reason. */
	{"queue_full", COLUMN_NUMERIC},
	{"query_wait_timeout", COLUMN_NUMERIC},
	{"query_timeout", COLUMN_NUMERIC},
	{"canceled", COLUMN_NUMERIC},
};

static void add_row(struct show_stream *show, void *object, unsigned kind)
{
	struct result *result = &show->result;
	const struct pool *pool = object;

	(void)kind;
	result_begin_row(result);
	result_text(result, pool->label);
	result_text(result, pool->user->name);
	result_count(result, pool->client_count[CLIENT_WAITING]);
	result_count(result, (uint64_t)pool_max_waiters(pool));
	result_count(result, pool->unsent[UNSENT_QUEUE_FULL]);
	result_count(result, pool->unsent[UNSENT_QUERY_WAIT_TIMEOUT]);
	result_count(result, pool->unsent[UNSENT_QUERY_TIMEOUT]);
	result_count(result, pool->unsent[UNSENT_CANCELED]);
	result_end_row(result);
}

static void list_pools(struct show_stream *show)
{
	struct pool *pool;

	registry_sort(show->registry);
	TAILQ_FOREACH (pool, &show->registry->pools, in_registry) {
		if (!pool->database->console)
			show_stream_add_object(show, &pool->handle, pool, 0);
	}
}

static const struct topic_walk queues = {.list = list_pools, .add_rows = add_row};

const struct topic show_stats_queues = WALKED_TOPIC("STATS_QUEUES", columns, &queues);
