/* SPDX-License-Identifier: ISC */
/* SHOW STATS, STATS_TOTALS, STATS_AVERAGES and TOTALS: one set of counters, four shapes. */
#include <stddef.h>
#include <stdio.h>

#include "admin/console/topics.h"

/* The counters, in the order that all four have. */
static const size_t counters[] = {
	offsetof(struct totals, assignments),
	offsetof(struct totals, transactions),
	offsetof(struct totals, queries),
	offsetof(struct totals, received),
	offsetof(struct totals, sent),
	offsetof(struct totals, transaction_time),
	offsetof(struct totals, query_time),
	offsetof(struct totals, wait_time),
	offsetof(struct totals, client_parses),
	offsetof(struct totals, server_parses),
	offsetof(struct totals, binds),
};

enum { COUNTERS = sizeof(counters) / sizeof(counters[0]) };

static uint64_t counter(const struct totals *totals, unsigned i)
{
	return *(const uint64_t *)((const char *)totals + counters[i]);
}

static void add_counters(struct result *result, const struct totals *totals)
{
	for (unsigned i = 0; i < COUNTERS; i++)
		result_count(result, counter(totals, i));
}

/* Averages since the older snapshot, which is between one and two periods old. */
static struct totals averages(const struct registry *registry, const struct stats *stats)
{
	return stats_average(&stats->current, &stats->older,
		loop_now(registry->loop) - registry->stats_older_at);
}

/* --- rows of databases ---------------------------------------------------------------------- */

/* What is noted: each pool of a database, whose counters are added up, then the database. */
enum { NOTE_POOL, NOTE_DATABASE };

/* Of one database, as far as its pools have been told of. */
struct sum {
	const struct database *database;
	struct stats stats;
};

static struct sum *sum_of(struct telling *telling, const struct database *database)
{
	struct sum *sum = (struct sum *)(void *)telling->memory;

	if (sum->database != database)
		*sum = (struct sum){.database = database};
	return sum;
}

/* One row for each database with a pool. */
static void note_databases(struct telling *telling)
{
	struct registry *registry = telling->registry;
	struct database *database, *next;
	struct pool *pool;

	registry_sort(registry);
	HASH_ITER (by_name, registry->databases, database, next) {
		TAILQ_FOREACH (pool, &database->pools, in_database)
			telling_note(telling, &pool->handle, pool, NOTE_POOL);
		if (!TAILQ_EMPTY(&database->pools))
			telling_note(telling, &database->handle, database, NOTE_DATABASE);
	}
}

static void tell(struct telling *telling, void *thing, unsigned kind, bool with_totals,
	bool with_averages)
{
	const struct pool *pool = thing;
	const struct database *database = kind == NOTE_POOL ? pool->database : thing;
	struct sum *sum = sum_of(telling, database);
	struct result *result = &telling->result;
	struct totals average;

	if (kind == NOTE_POOL) {
		stats_add(&sum->stats, &pool->stats);
		return;
	}
	average = averages(telling->registry, &sum->stats);
	result_begin_row(result);
	result_text(result, database->name);
	if (with_totals)
		add_counters(result, &sum->stats.current);
	if (with_averages)
		add_counters(result, &average);
	result_end_row(result);
}

/* --- STATS -------------------------------------------------------------------------------- */

static const struct column stats_columns[] = {
	{"database", COLUMN_TEXT},
	{"total_server_assignment_count", COLUMN_NUMERIC},
	{"total_xact_count", COLUMN_NUMERIC},
	{"total_query_count", COLUMN_NUMERIC},
	{"total_received", COLUMN_NUMERIC},
	{"total_sent", COLUMN_NUMERIC},
	{"total_xact_time", COLUMN_NUMERIC},
	{"total_query_time", COLUMN_NUMERIC},
	{"total_wait_time", COLUMN_NUMERIC},
	{"total_client_parse_count", COLUMN_NUMERIC},
	{"total_server_parse_count", COLUMN_NUMERIC},
	{"total_bind_count", COLUMN_NUMERIC},
	{"avg_server_assignment_count", COLUMN_NUMERIC},
	{"avg_xact_count", COLUMN_NUMERIC},
	{"avg_query_count", COLUMN_NUMERIC},
	{"avg_recv", COLUMN_NUMERIC},
	{"avg_sent", COLUMN_NUMERIC},
	{"avg_xact_time", COLUMN_NUMERIC},
	{"avg_query_time", COLUMN_NUMERIC},
	{"avg_wait_time", COLUMN_NUMERIC},
	{"avg_client_parse_count", COLUMN_NUMERIC},
	{"avg_server_parse_count", COLUMN_NUMERIC},
	{"avg_bind_count", COLUMN_NUMERIC},
};

static void tell_stats(struct telling *telling, void *thing, unsigned kind)
{
	tell(telling, thing, kind, true, true);
}

static const struct topic_walk walk_stats = {
	.note = note_databases, .tell = tell_stats, .memory_size = sizeof(struct sum)};

const struct topic show_stats = WALKED_TOPIC("STATS", stats_columns, &walk_stats);

/* --- STATS_TOTALS ------------------------------------------------------------------------- */

static const struct column totals_columns[] = {
	{"database", COLUMN_TEXT},
	{"server_assignment_count", COLUMN_NUMERIC},
	{"xact_count", COLUMN_NUMERIC},
	{"query_count", COLUMN_NUMERIC},
	{"bytes_received", COLUMN_NUMERIC},
	{"bytes_sent", COLUMN_NUMERIC},
	{"xact_time", COLUMN_NUMERIC},
	{"query_time", COLUMN_NUMERIC},
	{"wait_time", COLUMN_NUMERIC},
	{"client_parse_count", COLUMN_NUMERIC},
	{"server_parse_count", COLUMN_NUMERIC},
	{"bind_count", COLUMN_NUMERIC},
};

static void tell_stats_totals(struct telling *telling, void *thing, unsigned kind)
{
	tell(telling, thing, kind, true, false);
}

static const struct topic_walk walk_stats_totals = {
	.note = note_databases, .tell = tell_stats_totals, .memory_size = sizeof(struct sum)};

const struct topic show_stats_totals =
	WALKED_TOPIC("STATS_TOTALS", totals_columns, &walk_stats_totals);

/* --- STATS_AVERAGES ----------------------------------------------------------------------- */

/* Only the last three names have the prefix. */
static const struct column averages_columns[] = {
	{"database", COLUMN_TEXT},
	{"server_assignment_count", COLUMN_NUMERIC},
	{"xact_count", COLUMN_NUMERIC},
	{"query_count", COLUMN_NUMERIC},
	{"bytes_received", COLUMN_NUMERIC},
	{"bytes_sent", COLUMN_NUMERIC},
	{"xact_time", COLUMN_NUMERIC},
	{"query_time", COLUMN_NUMERIC},
	{"wait_time", COLUMN_NUMERIC},
	{"avg_client_parse_count", COLUMN_NUMERIC},
	{"avg_server_parse_count", COLUMN_NUMERIC},
	{"avg_bind_count", COLUMN_NUMERIC},
};

static void tell_stats_averages(struct telling *telling, void *thing, unsigned kind)
{
	tell(telling, thing, kind, false, true);
}

static const struct topic_walk walk_stats_averages = {
	.note = note_databases, .tell = tell_stats_averages, .memory_size = sizeof(struct sum)};

const struct topic show_stats_averages =
	WALKED_TOPIC("STATS_AVERAGES", averages_columns, &walk_stats_averages);

/* --- TOTALS ------------------------------------------------------------------------------- */

static const struct column name_columns[] = {{"name", COLUMN_TEXT}, {"value", COLUMN_NUMERIC}};

/* The names differ from those of SHOW STATS. */
static const char *const counter_names[COUNTERS] = {
	"server_assignment_count",
	"xact_count",
	"query_count",
	"client_bytes",
	"server_bytes",
	"xact_time",
	"query_time",
	"wait_time",
	"ps_client_parse_count",
	"ps_server_parse_count",
	"ps_bind_count",
};

static void add_named(struct result *result, const char *prefix, const struct totals *totals)
{
	char name[64];

	for (unsigned i = 0; i < COUNTERS; i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, counter_names[i]);
		result_begin_row(result);
		result_text(result, name);
		result_count(result, counter(totals, i));
		result_end_row(result);
	}
}

static void fill_totals(struct result *result, const struct command_call *call)
{
	const struct registry *registry = call->registry;
	const struct pool *pool;
	struct stats sum = {0};
	struct totals average;

	TAILQ_FOREACH (pool, &registry->pools, in_registry)
		stats_add(&sum, &pool->stats);
	average = averages(registry, &sum);
	add_named(result, "total_", &sum.current);
	add_named(result, "avg_", &average);
}

const struct topic show_totals = TOPIC("TOTALS", name_columns, fill_totals);
