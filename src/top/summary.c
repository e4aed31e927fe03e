/* SPDX-License-Identifier: ISC */
#include "top/summary.h"

#include <stdio.h>
#include <string.h>

#include "top/ages.h"
#include "top/verdict.h"

/* From here on an answer under way is late. */
static const usec_t late = 2 * USEC_PER_SEC;

/* The figures of all pools together. */
struct sums {
	double clients, waiting, longest, active, servers;
};

static double number(const struct table *table, size_t row, const char *column)
{
	return table_number(table, row, table_column(table, column), 0);
}

static struct sums sum_pools(const struct table *pools)
{
	static const char *const servers[] = {"sv_active", "sv_idle", "sv_used", "sv_tested",
		"sv_login", "sv_active_cancel", "sv_being_canceled"};
	const size_t database = table_column(pools, "database"),
		     seconds = table_column(pools, "maxwait"),
		     microseconds = table_column(pools, "maxwait_us");
	struct sums sums = {0};

	for (size_t row = 0; row < pools->row_count; row++) {
		const char *name = table_text(pools, row, database);
		const double wait = ages_wait(pools, row, seconds, microseconds);

		if (name && strcmp(name, "pgbouncer") == 0)
			continue;
		sums.waiting += number(pools, row, "cl_waiting");
		sums.clients +=
			number(pools, row, "cl_active") + number(pools, row, "cl_waiting");
		sums.longest = wait > sums.longest ? wait : sums.longest;
		sums.active += number(pools, row, "sv_active");
		for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
			sums.servers += number(pools, row, servers[i]);
	}
	return sums;
}

/* The value of a row of SHOW CONFIG, LISTS or STATE. */
static const char *value_of(
	const struct table *table, const char *keys, const char *key, const char *values)
{
	return table_text(table, table_find(table, table_column(table, keys), key),
		table_column(table, values));
}

static const char *state_of(const struct table *state)
{
	for (size_t row = 0; row < state->row_count; row++) {
		const char *value = table_text(state, row, table_column(state, "value"));

		if (value && strcmp(value, "yes") == 0)
			return table_text(state, row, table_column(state, "key"));
	}
	return NULL;
}

/* --- lines -------------------------------------------------------------------------------- */

static void add_title(struct page *page, const struct compose_source *source)
{
	const struct table *version = feed_table(source->feed, TOPIC_VERSION);
	const char *text = table_text(version, 0, table_column(version, "version")),
		   *state = state_of(feed_table(source->feed, TOPIC_STATE));

	page_printf(page, STYLE_STRONG, "%.100s at %.200s%s%.20s", text ? text : "pgusher-top",
		source->place, state ? ", " : "", state ? state : "");
}

/* A connection that is not there, or does not answer; returns whether there is such a line. */
static bool add_trouble(struct page *page, const struct compose_source *source, size_t most)
{
	const struct console_link *link = source->link;
	char text[CONSOLE_LINK_WHY_SIZE + 100];

	if (link->down_since != 0)
		snprintf(text, sizeof(text), "not connected since %lld s%s%s",
			(long long)((source->now - link->down_since) / USEC_PER_SEC),
			link->why[0] ? ": " : "", link->why);
	else if (link->state == CONSOLE_LINK_ASKING && source->now - link->since >= late)
		snprintf(text, sizeof(text), "the console has not answered for %lld s",
			(long long)((source->now - link->since) / USEC_PER_SEC));
	else if (link->state == CONSOLE_LINK_ASKING && source->now - link->asked >= late)
		snprintf(text, sizeof(text),
			"the console has been sending an answer for %lld s",
			(long long)((source->now - link->asked) / USEC_PER_SEC));
	else
		return false;
	page_fold(page, STYLE_CRITICAL, text, 2, most);
	return true;
}

/* How many digits behind the point say something. */
static int digits(double number)
{
	return number < 10 ? 2 : number < 100 ? 1 : 0;
}

static void write_figures(char *out, size_t size, const struct compose_source *source)
{
	const struct feed *feed = source->feed;
	const char *used = value_of(
			   feed_table(feed, TOPIC_LISTS), "list", "used_clients", "items"),
		   *most = value_of(
			   feed_table(feed, TOPIC_CONFIG), "key", "max_client_conn", "value");
	const struct sums sums = sum_pools(feed_table(feed, TOPIC_POOLS));
	const struct rate *rate = &source->rates->sum;
	char time[32], clients[32];
	int length;

	snprintf(clients, sizeof(clients), "%.0f", sums.clients);
	sheet_write_time(time, sizeof(time), sums.longest);
	length = snprintf(out, size,
		"clients %.20s%s%.20s  waiting %.0f  longest %s  servers %.0f (%.0f active)",
		used ? used : clients, most ? "/" : "", most ? most : "", sums.waiting, time,
		sums.servers, sums.active);
	if (!rate->known || length < 0 || (size_t)length >= size)
		return;
	length += snprintf(out + length, size - (size_t)length, "  tps %.0f  qps %.0f",
		rate->transactions, rate->queries);
	/* Where no query has ended there is no time of one. */
	if (rate->queries > 0 && (size_t)length < size)
		snprintf(out + length, size - (size_t)length, "  query %.*f ms  wait %.*f ms",
			digits(rate->query_ms), rate->query_ms, digits(rate->wait_ms),
			rate->wait_ms);
}

static void add_figures(struct page *page, const struct compose_source *source, size_t most)
{
	char text[512];

	if (source->feed->answers[TOPIC_POOLS].at == 0)
		return;
	write_figures(text, sizeof(text), source);
	page_fold(page, STYLE_PLAIN, text, 0, most);
}

/* How many of the lines are left. */
static size_t room(const struct page *page, size_t before, size_t most)
{
	const size_t used = page_length(page) - before;

	return used < most ? most - used : 0;
}

void summary_add(struct page *page, const struct compose_source *source, size_t most)
{
	const size_t before = page_length(page);
	struct verdict verdict, advice;

	verdict_write(&verdict, source->feed, source->holds);
	verdict_take_advice(&advice, source->feed);
	if (most >= 3)
		add_title(page, source);
	if (add_trouble(page, source, most >= 6 ? 3 : 1) && most == 1)
		return;
	if (most > 1 || (!verdict.text[0] && !advice.text[0]))
		add_figures(page, source, most >= 6 ? 3 : 1);
	if (verdict.text[0] && room(page, before, most) > 0)
		page_fold(page, verdict.style, verdict.text, 2, room(page, before, most));
	if (advice.text[0] && room(page, before, most) > 0)
		page_fold(page, advice.style, advice.text, 2, room(page, before, most));
}
