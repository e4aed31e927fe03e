/* SPDX-License-Identifier: ISC */
/* SHOW STATS_LATENCY and STATS_ERRORS: how long things took, and which errors servers gave. */
#include "admin/topics.h"
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

/* What one pool, or all pools of a database, have to tell. */
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

/* Whoever was given a server at once waited too, but for no time. */
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
		const struct latency_summary told = summarize(sum, (enum latency_kind)kind);

		result_begin_row(result);
		result_text(result, database);
		result_text(result, user);
		result_text(result, latency_kind_names[kind]);
		result_count(result, told.count);
		result_count(result, told.p50);
		result_count(result, told.p90);
		result_count(result, told.p99);
		result_count(result, told.max);
		result_end_row(result);
	}
}

static void add_database(struct result *result, const struct database *database)
{
	struct latency_sum sum = {0};
	const struct pool *pool;
	bool any = false;

	TAILQ_FOREACH (pool, &database->pools, in_database) {
		add_pool(&sum, pool);
		any = any || pool->latency;
	}
	if (any)
		add_kinds(result, database->name, NULL, &sum);
}

/* Each database before its pools; those without a query yet have nothing to tell. */
static void fill_latency(struct result *result, const struct command_call *call)
{
	const struct database *before = NULL;
	const struct pool *pool;

	registry_sort(call->registry);
	TAILQ_FOREACH (pool, &call->registry->pools, in_registry) {
		struct latency_sum sum = {0};

		if (pool->database != before)
			add_database(result, pool->database);
		before = pool->database;
		if (!pool->latency)
			continue;
		add_pool(&sum, pool);
		add_kinds(result, pool->database->name, pool->user->name, &sum);
	}
}

const struct topic show_stats_latency = TOPIC("STATS_LATENCY", latency_columns, fill_latency);

/* --- STATS_ERRORS ------------------------------------------------------------------------- */

static const struct column errors_columns[] = {
	{"database", COLUMN_TEXT}, {"user", COLUMN_TEXT},
	{"class", COLUMN_TEXT}, /* the first two characters of SQLSTATE */
	{"count", COLUMN_NUMERIC}, /* since the start */
};

static void add_errors(struct result *result, const struct pool *pool)
{
	for (unsigned i = 0; i < SQLSTATE_CLASSES; i++) {
		if (pool->errors[i] == 0)
			continue;
		result_begin_row(result);
		result_text(result, pool->database->name);
		result_text(result, pool->user->name);
		result_text(result, sqlstate_classes[i]);
		result_count(result, pool->errors[i]);
		result_end_row(result);
	}
}

static void fill_errors(struct result *result, const struct command_call *call)
{
	const struct pool *pool;

	registry_sort(call->registry);
	TAILQ_FOREACH (pool, &call->registry->pools, in_registry) {
		if (pool->errors)
			add_errors(result, pool);
	}
}

const struct topic show_stats_errors = TOPIC("STATS_ERRORS", errors_columns, fill_errors);
