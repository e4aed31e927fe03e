/* SPDX-License-Identifier: ISC */
/* SHOW STATS_LATENCY and STATS_ERRORS: how long things took, and which errors servers gave. */
#include "admin/console/topics.h"
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

/* What is noted: each pool of a database, to be added up; the database; each of its pools. */
enum { NOTE_SUMMAND, NOTE_DATABASE, NOTE_POOL };

/* Of one database, as far as its pools have been told of. */
struct database_sum {
	const struct database *database;
	struct latency_sum of;
};

static struct latency_sum *sum_of(struct telling *telling, const struct database *database)
{
	struct database_sum *sum = (struct database_sum *)(void *)telling->memory;

	if (sum->database != database)
		*sum = (struct database_sum){.database = database};
	return &sum->of;
}

static void tell_database(struct telling *telling, const struct database *database)
{
	add_kinds(&telling->result, database->name, NULL, sum_of(telling, database));
}

static void tell_pool(struct telling *telling, const struct pool *pool)
{
	struct latency_sum sum = {0};

	add_pool(&sum, pool);
	add_kinds(&telling->result, pool->database->name, pool->user->name, &sum);
}

static void tell_latency(struct telling *telling, void *thing, unsigned kind)
{
	const struct pool *pool = thing;

	if (kind == NOTE_DATABASE)
		tell_database(telling, thing);
	else if (kind == NOTE_POOL)
		tell_pool(telling, pool);
	else
		add_pool(sum_of(telling, pool->database), pool);
}

/* False: it has nothing to tell. */
static bool note_summands(struct telling *telling, const struct database *database)
{
	struct pool *pool;
	bool any = false;

	TAILQ_FOREACH (pool, &database->pools, in_database) {
		if (!pool->latency)
			continue;
		telling_note(telling, &pool->handle, pool, NOTE_SUMMAND);
		any = true;
	}
	return any;
}

/* Each database before its pools; those without a query yet have nothing to tell. */
static void note_latency(struct telling *telling)
{
	const struct database *before = NULL;
	struct pool *pool;

	registry_sort(telling->registry);
	TAILQ_FOREACH (pool, &telling->registry->pools, in_registry) {
		struct database *database = pool->database;

		if (database != before && note_summands(telling, database))
			telling_note(telling, &database->handle, database, NOTE_DATABASE);
		before = database;
		if (pool->latency)
			telling_note(telling, &pool->handle, pool, NOTE_POOL);
	}
}

static const struct topic_walk latencies = {
	.note = note_latency, .tell = tell_latency, .memory_size = sizeof(struct database_sum)};

const struct topic show_stats_latency =
	WALKED_TOPIC("STATS_LATENCY", latency_columns, &latencies);

/* --- STATS_ERRORS ------------------------------------------------------------------------- */

static const struct column errors_columns[] = {
	{"database", COLUMN_TEXT}, {"user", COLUMN_TEXT},
	{"class", COLUMN_TEXT}, /* the first two characters of SQLSTATE */
	{"count", COLUMN_NUMERIC}, /* since the start */
};

static void tell_errors(struct telling *telling, void *thing, unsigned kind)
{
	struct result *result = &telling->result;
	const struct pool *pool = thing;

	(void)kind;
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

static void note_errors(struct telling *telling)
{
	struct pool *pool;

	registry_sort(telling->registry);
	TAILQ_FOREACH (pool, &telling->registry->pools, in_registry) {
		if (pool->errors)
			telling_note(telling, &pool->handle, pool, 0);
	}
}

static const struct topic_walk errors = {.note = note_errors, .tell = tell_errors};

const struct topic show_stats_errors = WALKED_TOPIC("STATS_ERRORS", errors_columns, &errors);
