/* SPDX-License-Identifier: ISC */
#include "top/rates.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum count { TRANSACTIONS, QUERIES, RECEIVED, SENT, QUERY_TIME, WAIT_TIME, COUNTS };

static const char *const columns[COUNTS] = {
	[TRANSACTIONS] = "total_xact_count",
	[QUERIES] = "total_query_count",
	[RECEIVED] = "total_received",
	[SENT] = "total_sent",
	[QUERY_TIME] = "total_query_time",
	[WAIT_TIME] = "total_wait_time",
};

/* A row of SHOW STATS. */
struct rate_total {
	char database[RATES_NAME_SIZE];
	double counts[COUNTS];
};

void rates_free(struct rates *rates)
{
	free(rates->totals);
	free(rates->list);
	*rates = (struct rates){0};
}

static int by_name(const void *left, const void *right)
{
	/* Both structs begin with the name. */
	return strcmp(left, right);
}

static struct rate_total *read_totals(const struct table *stats)
{
	const size_t name = table_column(stats, "database");
	struct rate_total *totals = calloc(stats->row_count + 1, sizeof(*totals));
	size_t indexes[COUNTS];

	if (!totals)
		return NULL;
	for (enum count i = 0; i < COUNTS; i++)
		indexes[i] = table_column(stats, columns[i]);
	for (size_t row = 0; row < stats->row_count; row++) {
		const char *database = table_text(stats, row, name);

		text_copy(totals[row].database, RATES_NAME_SIZE, database ? database : "");
		for (enum count i = 0; i < COUNTS; i++)
			totals[row].counts[i] = table_number(stats, row, indexes[i], 0);
	}
	qsort(totals, stats->row_count, sizeof(*totals), by_name);
	return totals;
}

static void derive(struct rate *rate, const double counts[COUNTS], double seconds)
{
	rate->known = true;
	rate->transactions = counts[TRANSACTIONS] / seconds;
	rate->queries = counts[QUERIES] / seconds;
	rate->received = counts[RECEIVED] / seconds;
	rate->sent = counts[SENT] / seconds;
	if (counts[QUERIES] > 0)
		rate->query_ms = counts[QUERY_TIME] / counts[QUERIES] / USEC_PER_MSEC;
	if (counts[TRANSACTIONS] > 0)
		rate->wait_ms = counts[WAIT_TIME] / counts[TRANSACTIONS] / USEC_PER_MSEC;
}

/* What was counted between two rows; false if a count fell. */
static bool subtract(
	double out[COUNTS], const struct rate_total *now, const struct rate_total *before)
{
	for (enum count i = 0; i < COUNTS; i++) {
		out[i] = now->counts[i] - before->counts[i];
		if (out[i] < 0)
			return false;
	}
	return true;
}

static void compare(struct rates *rates, const struct rate_total *totals, struct rate *list,
	size_t count, double seconds)
{
	double differences[COUNTS], sums[COUNTS] = {0};

	for (size_t row = 0; row < count; row++) {
		const struct rate_total *before = rates->count == 0
			? NULL
			: bsearch(&totals[row], rates->totals, rates->count, sizeof(*totals),
				  by_name);

		memcpy(list[row].database, totals[row].database, RATES_NAME_SIZE);
		if (!before || seconds <= 0 || !subtract(differences, &totals[row], before))
			continue;
		derive(&list[row], differences, seconds);
		/* The console's own questions are not work. */
		if (strcmp(list[row].database, "pgbouncer") == 0)
			continue;
		for (enum count i = 0; i < COUNTS; i++)
			sums[i] += differences[i];
	}
	rates->sum = (struct rate){0};
	if (rates->at != 0 && seconds > 0)
		derive(&rates->sum, sums, seconds);
}

void rates_take(struct rates *rates, const struct table *stats, usec_t now)
{
	struct rate_total *totals = read_totals(stats);
	struct rate *list = calloc(stats->row_count + 1, sizeof(*list));

	if (!totals || !list) {
		free(totals);
		free(list);
		return;
	}
	compare(rates, totals, list, stats->row_count,
		(double)(now - rates->at) / USEC_PER_SEC);
	free(rates->totals);
	free(rates->list);
	rates->totals = totals;
	rates->list = list;
	rates->count = stats->row_count;
	rates->at = now;
}

const struct rate *rates_find(const struct rates *rates, const char *database)
{
	struct rate wanted;

	if (rates->count == 0)
		return NULL;
	text_copy(wanted.database, sizeof(wanted.database), database);
	return bsearch(&wanted, rates->list, rates->count, sizeof(wanted), by_name);
}
