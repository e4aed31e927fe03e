/* SPDX-License-Identifier: ISC */
/* Pools, those with the longest wait first: SHOW POOLS, DATABASES and STATS. */
#include <stdio.h>
#include <string.h>

#include "top/ages.h"
#include "top/lookup.h"
#include "top/view.h"

static const struct sheet_column columns[] = {
	{"DATABASE", 1, 6},
	{"USER", 5, 4},
	{"LONGEST", 2, .number = true},
	{"WAITING", 3, .number = true},
	{"CLIENTS", 7, .number = true},
	{"ACTIVE", 4, .number = true},
	{"SIZE", 6, .number = true},
	{"IDLE", 8, .number = true},
	{"OTHER", 13, .number = true},
	{"TPS", 9, .number = true},
	{"QPS", 11, .number = true},
	{"QUERY ms", 10, .number = true},
	{"WAIT ms", 12, .number = true},
	{"MODE", 14},
	{"STATE", 15},
};

enum { LONGEST = 2 };

/* From these waits on, in seconds, a pool is marked. */
static const double warning_wait = 1, critical_wait = 10;

/* The row of the database of a pool in SHOW DATABASES. */
static const char *state_of(const struct table *databases, size_t row)
{
	if (table_number(databases, row, table_column(databases, "disabled"), 0) != 0)
		return "disabled";
	if (table_number(databases, row, table_column(databases, "paused"), 0) != 0)
		return "paused";
	return NULL;
}

static double number_of(const struct table *pools, size_t row, const char *column)
{
	return table_number(pools, row, table_column(pools, column), 0);
}

/* Nothing if the table lacks the column. */
static void add_count(
	struct sheet *sheet, const struct table *table, size_t row, const char *column)
{
	const size_t index = table_column(table, column);

	if (table_text(table, row, index))
		sheet_count(sheet, table_number(table, row, index, 0));
	else
		sheet_text(sheet, NULL);
}

/* Three digits are enough: 0.25, 12.3, 456. */
static void add_figure(struct sheet *sheet, bool known, double number)
{
	char text[32];

	snprintf(text, sizeof(text),
		number < 10	       ? "%.2f"
			: number < 100 ? "%.1f"
				       : "%.0f",
		number);
	sheet_number(sheet, number, known ? text : NULL);
}

static void add_rates(struct sheet *sheet, const struct rate *rate)
{
	const bool known = rate && rate->known;

	add_figure(sheet, known, known ? rate->transactions : 0);
	add_figure(sheet, known, known ? rate->queries : 0);
	add_figure(sheet, known, known ? rate->query_ms : 0);
	add_figure(sheet, known, known ? rate->wait_ms : 0);
}

static double other_servers(const struct table *pools, size_t row)
{
	static const char *const states[] = {
		"sv_active_cancel", "sv_being_canceled", "sv_used", "sv_tested", "sv_login"};
	double sum = 0;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		sum += number_of(pools, row, states[i]);
	return sum;
}

static enum page_style style_of(double waiting, double longest)
{
	if (waiting > 0 && longest >= critical_wait)
		return STYLE_CRITICAL;
	return waiting > 0 && longest >= warning_wait ? STYLE_WARNING : STYLE_PLAIN;
}

/* `names` are the rows of SHOW DATABASES. */
static void add_pool(struct sheet *sheet, const struct view_source *source, size_t row,
	const struct lookup *names)
{
	const struct table *pools = feed_table(source->feed, TOPIC_POOLS),
			   *databases = feed_table(source->feed, TOPIC_DATABASES);
	const char *name = table_text(pools, row, table_column(pools, "database"));
	const double waiting = number_of(pools, row, "cl_waiting"),
		     longest = ages_wait(pools, row, table_column(pools, "maxwait"),
			     table_column(pools, "maxwait_us"));
	size_t database;

	if (!name || strcmp(name, "pgbouncer") == 0)
		return;
	database = lookup_find(names, name, NULL);
	sheet_row(sheet, style_of(waiting, longest));
	sheet_text(sheet, name);
	sheet_text(sheet, table_text(pools, row, table_column(pools, "user")));
	sheet_time(sheet, waiting > 0 || longest > 0 ? longest : AGES_UNKNOWN);
	add_count(sheet, pools, row, "cl_waiting");
	sheet_count(sheet, waiting + number_of(pools, row, "cl_active"));
	add_count(sheet, pools, row, "sv_active");
	add_count(sheet, databases, database, "pool_size");
	add_count(sheet, pools, row, "sv_idle");
	sheet_count(sheet, other_servers(pools, row));
	add_rates(sheet, rates_find(source->rates, name));
	sheet_text(sheet, table_text(pools, row, table_column(pools, "pool_mode")));
	sheet_text(sheet, state_of(databases, database));
}

static void fill(struct sheet *sheet, const struct view_source *source)
{
	const struct table *pools = feed_table(source->feed, TOPIC_POOLS),
			   *databases = feed_table(source->feed, TOPIC_DATABASES);
	struct lookup names;

	sheet->note = "no pool: no client has connected to a database yet";
	lookup_begin(&names, databases, table_column(databases, "name"), TABLE_NO_COLUMN);
	for (size_t row = 0; row < pools->row_count; row++)
		add_pool(sheet, source, row, &names);
	lookup_free(&names);
	/* Of pools without a wait, those at work come first. */
	sheet_sort(sheet, 5, false);
}

const struct view view_pools = {
	.key = 'p',
	.name = "pools",
	.help = "pools by their longest wait; rates and times are those of the database",
	.topics = 0,
	.main = TOPIC_POOLS,
	.columns = columns,
	.column_count = sizeof(columns) / sizeof(columns[0]),
	.sorted = LONGEST,
	.fill = fill,
};
