/* SPDX-License-Identifier: ISC */
/*
 * SHOW STATS_LATENCY, STATS_ERRORS and STATS_QUEUES: percentiles of times, errors of servers by class, and
 * the clients that wait for a server or never got one.
 */
#include "admin/show/show_stream.h"
#include "wire/sqlstate.h"

/* --- STATS_LATENCY ------------------------------------------------------------------------ */

/* Times in microseconds, of the last one to two stats periods. */
static const struct column latency_columns[] = {
	{"database", COLUMN_TEXT},
	{"user", COLUMN_TEXT}, /* NULL: all of the database */
	{"kind", COLUMN_TEXT},
	{"count", COLUMN_NUMERIC},
	{"p50", COLUMN_NUMERIC},
	{"p90", COLUMN_NUMERIC},
	{"p99", COLUMN_NUMERIC},
	{"max", COLUMN_NUMERIC},
};

/* The figures of one pool, or the sum over pools of a database. */
struct latency_sum {
	struct latency latency;
	uint64_t assignments; /* in the same time */
};

static void add_pool(struct latency_sum *sum, const struct pool *pool)
{
	if (!pool->latency)
		return;
	latency_merge(&sum->latency, pool->latency);
	sum->assignments += pool->stats.current.assignments - pool->stats.older.assignments;
}

/* A client that got a server at once has no entry: count it as a wait of no time. */
static struct latency_summary summarize(const struct latency_sum *sum, enum latency_kind kind)
{
	const struct latency_summary waits = latency_summary(&sum->latency, LATENCY_WAIT, 0);

	return latency_summary(&sum->latency, kind,
		kind == LATENCY_WAIT && sum->assignments > waits.count
			? sum->assignments - waits.count
			: 0);
}

static void add_kinds(struct result *result, const char *database, const char *user,
	const struct latency_sum *sum)
{
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++) {
		const struct latency_summary summary = summarize(sum, (enum latency_kind)kind);

		result_begin_row(result);
		result_text(result, database);
		result_text(result, user);
		result_text(result, latency_kind_names[kind]);
		result_count(result, summary.count);
		result_count(result, summary.p50);
		result_count(result, summary.p90);
		result_count(result, summary.p99);
		result_count(result, summary.max);
		result_end_row(result);
	}
}

/*
 * Objects are listed as: each pool of a database, to add its figures to the sum; the database,
 * for the sum's rows; each pool again, for its own rows.
 */
enum { KIND_SUMMAND, KIND_DATABASE, KIND_POOL };

/* The sum over the pools of one database, as far as they have been added. */
struct database_sum {
	const struct database *database;
	struct latency_sum of;
};

static struct latency_sum *sum_of(struct show_stream *show, const struct database *database)
{
	struct database_sum *sum = (struct database_sum *)(void *)show->state;

	if (sum->database != database)
		*sum = (struct database_sum){.database = database};
	return &sum->of;
}

static void add_rows_of_database(struct show_stream *show, const struct database *database)
{
	add_kinds(&show->result, database->name, NULL, sum_of(show, database));
}

static void add_rows_of_pool(struct show_stream *show, const struct pool *pool)
{
	struct latency_sum sum = {0};

	add_pool(&sum, pool);
	add_kinds(&show->result, pool->label, pool->user->name, &sum);
}

static void add_rows_of_latency(struct show_stream *show, void *object, unsigned kind)
{
	const struct pool *pool = object;

	if (kind == KIND_DATABASE)
		add_rows_of_database(show, object);
	else if (kind == KIND_POOL)
		add_rows_of_pool(show, pool);
	else
		add_pool(sum_of(show, pool->database), pool);
}

/* Returns false if no pool of the database has latencies. */
static bool list_summands(struct show_stream *show, const struct database *database)
{
	struct pool *pool;
	bool any = false;

	TAILQ_FOREACH (pool, &database->pools, in_database) {
		if (!pool->latency)
			continue;
		show_stream_add_object(show, &pool->handle, pool, KIND_SUMMAND);
		any = true;
	}
	return any;
}

/* Each database before its pools; pools without a query yet have no rows. */
static void list_latency(struct show_stream *show)
{
	const struct database *before = NULL;
	struct pool *pool;

	registry_sort(show->registry);
	TAILQ_FOREACH (pool, &show->registry->process->directory.pools, in_directory) {
		struct database *database = pool->database;

		if (database != before && list_summands(show, database))
			show_stream_add_object(
				show, &database->handle, database, KIND_DATABASE);
		before = database;
		if (pool->latency)
			show_stream_add_object(show, &pool->handle, pool, KIND_POOL);
	}
}

static const struct topic_walk latencies = {.list = list_latency,
	.add_rows = add_rows_of_latency,
	.state_size = sizeof(struct database_sum)};

const struct topic show_stats_latency =
	WALKED_TOPIC("STATS_LATENCY", latency_columns, &latencies);

/* --- STATS_ERRORS ------------------------------------------------------------------------- */

static const struct column errors_columns[] = {
	{"database", COLUMN_TEXT}, {"user", COLUMN_TEXT},
	{"class", COLUMN_TEXT}, /* the first two characters of SQLSTATE */
	{"count", COLUMN_NUMERIC}, /* since the start */
};

static void add_rows_of_errors(struct show_stream *show, void *object, unsigned kind)
{
	struct result *result = &show->result;
	const struct pool *pool = object;

	(void)kind;
	for (unsigned i = 0; i < SQLSTATE_CLASSES; i++) {
		if (pool->errors[i] == 0)
			continue;
		result_begin_row(result);
		result_text(result, pool->label);
		result_text(result, pool->user->name);
		result_text(result, sqlstate_classes[i]);
		result_count(result, pool->errors[i]);
		result_end_row(result);
	}
}

static void list_errors(struct show_stream *show)
{
	struct pool *pool;

	registry_sort(show->registry);
	TAILQ_FOREACH (pool, &show->registry->process->directory.pools, in_directory) {
		if (pool->errors)
			show_stream_add_object(show, &pool->handle, pool, 0);
	}
}

static const struct topic_walk errors = {.list = list_errors, .add_rows = add_rows_of_errors};

const struct topic show_stats_errors = WALKED_TOPIC("STATS_ERRORS", errors_columns, &errors);

/* --- STATS_QUEUES ------------------------------------------------------------------------- */

static const struct column queue_columns[] = {
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

static void add_queue_row(struct show_stream *show, void *object, unsigned kind)
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

static void list_all_pools(struct show_stream *show)
{
	struct pool *pool;

	registry_sort(show->registry);
	TAILQ_FOREACH (pool, &show->registry->process->directory.pools, in_directory) {
		if (!pool->database->console)
			show_stream_add_object(show, &pool->handle, pool, 0);
	}
}

static const struct topic_walk queues = {.list = list_all_pools, .add_rows = add_queue_row};

const struct topic show_stats_queues = WALKED_TOPIC("STATS_QUEUES", queue_columns, &queues);
