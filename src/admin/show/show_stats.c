/* SPDX-License-Identifier: ISC */
/* SHOW STATS, STATS_TOTALS, STATS_AVERAGES and TOTALS: one set of counters, four shapes. */
#include <stddef.h>
#include <stdio.h>

#include "admin/show/show_stream.h"

/*
 * The counters in the order of their columns, with the names that they have as a total and as
 * an average of SHOW STATS, in STATS_TOTALS, in STATS_AVERAGES and, behind a prefix, in TOTALS.
 * The names are PgBouncer's.
 */
#define COUNTERS_OF_1_25(ROW)                                                                  \
	ROW(assignments, "total_server_assignment_count", "avg_server_assignment_count",       \
		"server_assignment_count", "server_assignment_count",                          \
		"server_assignment_count")                                                     \
	ROW(transactions, "total_xact_count", "avg_xact_count", "xact_count", "xact_count",    \
		"xact_count")                                                                  \
	ROW(queries, "total_query_count", "avg_query_count", "query_count", "query_count",     \
		"query_count")                                                                 \
	ROW(received, "total_received", "avg_recv", "bytes_received", "bytes_received",        \
		"client_bytes")                                                                \
	ROW(sent, "total_sent", "avg_sent", "bytes_sent", "bytes_sent", "server_bytes")        \
	ROW(transaction_time, "total_xact_time", "avg_xact_time", "xact_time", "xact_time",    \
		"xact_time")                                                                   \
	ROW(query_time, "total_query_time", "avg_query_time", "query_time", "query_time",      \
		"query_time")                                                                  \
	ROW(wait_time, "total_wait_time", "avg_wait_time", "wait_time", "wait_time",           \
		"wait_time")                                                                   \
	ROW(client_parses, "total_client_parse_count", "avg_client_parse_count",               \
		"client_parse_count", "avg_client_parse_count", "ps_client_parse_count")       \
	ROW(server_parses, "total_server_parse_count", "avg_server_parse_count",               \
		"server_parse_count", "avg_server_parse_count", "ps_server_parse_count")       \
	ROW(binds, "total_bind_count", "avg_bind_count", "bind_count", "avg_bind_count",       \
		"ps_bind_count")

/* PgBouncer 1.26 has one more, the last. */
#define COUNTERS_OF(ROW)                                                                       \
	COUNTERS_OF_1_25(ROW)                                                                  \
	ROW(client_logins, "total_client_login_count", "avg_client_login_count",               \
		"client_login_count", "avg_client_login_count", "client_login_count")

#define COUNTER(field, total, average, in_totals, in_averages, name)                           \
	{offsetof(struct totals, field), name},

static const struct {
	size_t offset;
	const char *name; /* in SHOW TOTALS */
} counters[] = {COUNTERS_OF(COUNTER)};

enum { COUNTERS = sizeof(counters) / sizeof(counters[0]) };

static unsigned shown_counters(const struct registry *registry)
{
	return compat_counts_logins(registry->process->settings->compat_version) ? COUNTERS
										 : COUNTERS - 1;
}

static uint64_t counter(const struct totals *totals, unsigned i)
{
	return *(const uint64_t *)((const char *)totals + counters[i].offset);
}

static void add_counters(struct result *result, const struct totals *totals, unsigned shown)
{
	for (unsigned i = 0; i < shown; i++)
		result_count(result, counter(totals, i));
}

/* Averages since the older snapshot, which is between one and two periods old. */
static struct totals averages(const struct registry *registry, const struct stats *stats)
{
	return stats_average(&stats->current, &stats->older,
		loop_now(registry->loop) - registry->stats_older_at);
}

/*
 * --- rows of databases ----------------------------------------------------------------------
 */

/*
 * Objects are listed as: each pool of a database, to add its counters to the sum; the database.
 */
enum { KIND_POOL, KIND_DATABASE };

/* The sum over the pools of one database, as far as they have been added. */
struct sum {
	const struct database *database;
	struct stats stats;
};

static struct sum *sum_of(struct show_stream *show, const struct database *database)
{
	struct sum *sum = (struct sum *)(void *)show->state;

	if (sum->database != database)
		*sum = (struct sum){.database = database};
	return sum;
}

/* One row for each database with a pool. */
static void list_databases(struct show_stream *show)
{
	struct registry *registry = show->registry;
	struct database *database, *next;
	struct pool *pool;

	registry_sort(registry);
	HASH_ITER (by_name, registry->process->directory.databases, database, next) {
		TAILQ_FOREACH (pool, &database->pools, in_database)
			show_stream_add_object(show, &pool->handle, pool, KIND_POOL);
		if (!TAILQ_EMPTY(&database->pools))
			show_stream_add_object(
				show, &database->handle, database, KIND_DATABASE);
	}
}

static void add_row(struct show_stream *show, void *object, unsigned kind, bool with_totals,
	bool with_averages)
{
	const struct pool *pool = object;
	const struct database *database = kind == KIND_POOL ? pool->database : object;
	struct sum *sum = sum_of(show, database);
	const unsigned shown = shown_counters(show->registry);
	struct result *result = &show->result;
	struct totals average;

	if (kind == KIND_POOL) {
		stats_add(&sum->stats, &pool->stats);
		return;
	}
	average = averages(show->registry, &sum->stats);
	result_begin_row(result);
	result_text(result, database->name);
	if (with_totals)
		add_counters(result, &sum->stats.current, shown);
	if (with_averages)
		add_counters(result, &average, shown);
	result_end_row(result);
}

/* --- STATS -------------------------------------------------------------------------------- */

#define TOTAL(field, total, average, in_totals, in_averages, name) {total, COLUMN_NUMERIC},
#define AVERAGE(field, total, average, in_totals, in_averages, name) {average, COLUMN_NUMERIC},

static const struct column stats_columns[] = {
	{"database", COLUMN_TEXT}, COUNTERS_OF(TOTAL) COUNTERS_OF(AVERAGE)};
static const struct column stats_columns_1_25[] = {
	{"database", COLUMN_TEXT}, COUNTERS_OF_1_25(TOTAL) COUNTERS_OF_1_25(AVERAGE)};

static void add_rows_of_stats(struct show_stream *show, void *object, unsigned kind)
{
	add_row(show, object, kind, true, true);
}

static const struct topic_walk walk_stats = {.list = list_databases,
	.add_rows = add_rows_of_stats,
	.state_size = sizeof(struct sum)};

static const struct topic stats_1_25 = WALKED_TOPIC("STATS", stats_columns_1_25, &walk_stats);

const struct topic show_stats =
	WALKED_TOPIC_CHANGED("STATS", stats_columns, &walk_stats, &stats_1_25);

/* --- STATS_TOTALS ------------------------------------------------------------------------- */

#define IN_TOTALS(field, total, average, in_totals, in_averages, name)                         \
	{in_totals, COLUMN_NUMERIC},

static const struct column totals_columns[] = {
	{"database", COLUMN_TEXT}, COUNTERS_OF(IN_TOTALS)};
static const struct column totals_columns_1_25[] = {
	{"database", COLUMN_TEXT}, COUNTERS_OF_1_25(IN_TOTALS)};

static void add_rows_of_stats_totals(struct show_stream *show, void *object, unsigned kind)
{
	add_row(show, object, kind, true, false);
}

static const struct topic_walk walk_stats_totals = {.list = list_databases,
	.add_rows = add_rows_of_stats_totals,
	.state_size = sizeof(struct sum)};

static const struct topic stats_totals_1_25 =
	WALKED_TOPIC("STATS_TOTALS", totals_columns_1_25, &walk_stats_totals);

const struct topic show_stats_totals = WALKED_TOPIC_CHANGED(
	"STATS_TOTALS", totals_columns, &walk_stats_totals, &stats_totals_1_25);

/* --- STATS_AVERAGES ----------------------------------------------------------------------- */

#define IN_AVERAGES(field, total, average, in_totals, in_averages, name)                       \
	{in_averages, COLUMN_NUMERIC},

static const struct column averages_columns[] = {
	{"database", COLUMN_TEXT}, COUNTERS_OF(IN_AVERAGES)};
static const struct column averages_columns_1_25[] = {
	{"database", COLUMN_TEXT}, COUNTERS_OF_1_25(IN_AVERAGES)};

static void add_rows_of_stats_averages(struct show_stream *show, void *object, unsigned kind)
{
	add_row(show, object, kind, false, true);
}

static const struct topic_walk walk_stats_averages = {.list = list_databases,
	.add_rows = add_rows_of_stats_averages,
	.state_size = sizeof(struct sum)};

static const struct topic stats_averages_1_25 =
	WALKED_TOPIC("STATS_AVERAGES", averages_columns_1_25, &walk_stats_averages);

const struct topic show_stats_averages = WALKED_TOPIC_CHANGED(
	"STATS_AVERAGES", averages_columns, &walk_stats_averages, &stats_averages_1_25);

/* --- TOTALS ------------------------------------------------------------------------------- */

static const struct column name_columns[] = {{"name", COLUMN_TEXT}, {"value", COLUMN_NUMERIC}};

static void add_named(
	struct result *result, const char *prefix, const struct totals *totals, unsigned shown)
{
	char name[64];

	for (unsigned i = 0; i < shown; i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, counters[i].name);
		result_begin_row(result);
		result_text(result, name);
		result_count(result, counter(totals, i));
		result_end_row(result);
	}
}

static void fill_totals(struct result *result, const struct show_request *request)
{
	const struct registry *registry = request->registry;
	const struct pool *pool;
	struct stats sum = {0};
	struct totals average;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		stats_add(&sum, &pool->stats);
	average = averages(registry, &sum);
	add_named(result, "total_", &sum.current, shown_counters(registry));
	add_named(result, "avg_", &average, shown_counters(registry));
}

const struct topic show_totals = TOPIC("TOTALS", name_columns, fill_totals);
