/* SPDX-License-Identifier: ISC */
#include "model/statistics/history.h"

#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "model/statistics/pool_figures.h"

/* What is known of the step that is not complete. */
struct open_step {
	uint64_t transactions, errors; /* set when it ends */
	usec_t longest_wait;
	unsigned waiting, active;
	bool sampled;
};

struct history_series {
	struct open_step open;
	struct history_point points[HISTORY_POINTS]; /* by the number of the step */
};

struct history {
	usec_t began; /* of step 0 */
	uint64_t step; /* the number of the open step */
	unsigned pools; /* that have points */
	bool is_closing; /* this sample ends the open step */
	uint64_t next_step; /* valid if is_closing: the step that begins */
	struct open_step sample; /* all pools, in this sample */
	struct latency_counts queries, waits; /* all pools; valid if is_closing */
	uint64_t assignments;
	struct history_series total;
};

/* --- points ------------------------------------------------------------------------------- */

static uint32_t fit(uint64_t figure)
{
	return figure < HISTORY_GAP ? (uint32_t)figure : HISTORY_GAP - 1;
}

static uint16_t fit_half(unsigned figure)
{
	return figure < UINT16_MAX ? (uint16_t)figure : UINT16_MAX;
}

static struct history_point *point_of(struct history_series *series, uint64_t step)
{
	return &series->points[step % HISTORY_POINTS];
}

static void clear(struct history_series *series)
{
	for (unsigned i = 0; i < HISTORY_POINTS; i++)
		series->points[i].transactions = HISTORY_GAP;
	series->open = (struct open_step){0};
}

/* The open step ends, and `next` begins: those between the two are gaps. */
static void end_step(struct history_series *series, const struct history *history,
	uint32_t query_p99, uint32_t wait_p99)
{
	const struct open_step *open = &series->open;
	const uint64_t skipped = history->next_step - history->step - 1;
	const uint64_t gaps = skipped < HISTORY_POINTS ? skipped : HISTORY_POINTS;

	*point_of(series, history->step) = (struct history_point){
		.transactions = open->sampled ? fit(open->transactions) : HISTORY_GAP,
		.errors = fit(open->errors),
		.longest_wait = fit((uint64_t)open->longest_wait / 1000),
		.query_p99 = query_p99,
		.wait_p99 = wait_p99,
		.waiting = fit_half(open->waiting),
		.active = fit_half(open->active),
	};
	for (uint64_t i = 1; i <= gaps; i++)
		point_of(series, history->step + i)->transactions = HISTORY_GAP;
	series->open = (struct open_step){0};
}

/* Clients that got a server at once have no entry: they are waits of no time. */
static uint32_t wait_p99(const struct latency_counts *waits, uint64_t assignments)
{
	const uint64_t count = latency_summary_of(waits, 0).count;

	return fit(
		latency_summary_of(waits, assignments > count ? assignments - count : 0).p99);
}

/* --- a sample ----------------------------------------------------------------------------- */

void history_begin_sample(struct history *history, usec_t now)
{
	const uint64_t step = (uint64_t)((now - history->began) / HISTORY_STEP);

	history->is_closing = step > history->step;
	history->next_step = step;
	history->sample = (struct open_step){.sampled = true};
	if (!history->is_closing)
		return;
	history->queries = history->waits = (struct latency_counts){0};
	history->assignments = 0;
}

/* The most of what two samples have seen. */
static void merge(struct open_step *into, const struct open_step *sample)
{
	if (sample->longest_wait > into->longest_wait)
		into->longest_wait = sample->longest_wait;
	if (sample->waiting > into->waiting)
		into->waiting = sample->waiting;
	if (sample->active > into->active)
		into->active = sample->active;
	into->sampled = true;
}

static void end_step_of_pool(struct history *history, struct pool *pool)
{
	const uint64_t assignments =
		pool->stats.current.assignments - pool->stats.older.assignments;
	struct latency_counts queries = {0}, waits = {0};

	if (pool->latency) {
		latency_gather(&queries, pool->latency, LATENCY_QUERY);
		latency_gather(&waits, pool->latency, LATENCY_WAIT);
	}
	latency_counts_merge(&history->queries, &queries);
	latency_counts_merge(&history->waits, &waits);
	history->assignments += assignments;
	if (pool->history)
		end_step(pool->history, history, fit(latency_summary_of(&queries, 0).p99),
			wait_p99(&waits, assignments));
}

/* Count what has happened in the step that ends. */
static void count(struct history *history, struct pool *pool)
{
	const uint64_t transactions = pool->stats.current.transactions,
		       errors = pool_errors(pool);
	const uint64_t more = transactions - pool->counted_transactions;
	const uint64_t more_errors = errors - pool->counted_errors;

	pool->counted_transactions = transactions;
	pool->counted_errors = errors;
	history->total.open.transactions += more;
	history->total.open.errors += more_errors;
	if (pool->history) {
		pool->history->open.transactions = more;
		pool->history->open.errors = more_errors;
	}
}

static void open_series(struct history *history, struct pool *pool)
{
	if (history->pools == HISTORY_POOLS)
		return;
	pool->history = malloc(sizeof(*pool->history));
	if (!pool->history)
		return;
	clear(pool->history);
	history->pools++;
}

void history_take_pool(struct history *history, struct pool *pool)
{
	const struct open_step sample = {
		.longest_wait = pool_queue_age(pool, loop_now(pool->registry->loop)),
		.waiting = pool_waiting_clients(pool),
		.active = pool->server_count[SERVERS_ACTIVE],
	};

	if (history->is_closing) {
		count(history, pool);
		end_step_of_pool(history, pool);
	}
	if (!pool->history)
		open_series(history, pool);
	if (pool->history)
		merge(&pool->history->open, &sample);
	history->sample.waiting += sample.waiting;
	history->sample.active += sample.active;
	if (sample.longest_wait > history->sample.longest_wait)
		history->sample.longest_wait = sample.longest_wait;
}

void history_end_sample(struct history *history)
{
	if (history->is_closing) {
		end_step(&history->total, history,
			fit(latency_summary_of(&history->queries, 0).p99),
			wait_p99(&history->waits, history->assignments));
		history->step = history->next_step;
		history->is_closing = false;
	}
	merge(&history->total.open, &history->sample);
}

/* --- reading ------------------------------------------------------------------------------ */

const struct history_series *history_total(const struct history *history)
{
	return &history->total;
}

const struct history_point *history_at(
	const struct history *history, const struct history_series *series, unsigned number)
{
	const uint64_t back = HISTORY_POINTS - number;
	const struct history_point *point;

	if (number >= HISTORY_POINTS || back > history->step)
		return NULL;
	point = &series->points[(history->step - back) % HISTORY_POINTS];
	return point->transactions == HISTORY_GAP ? NULL : point;
}

usec_t history_last_end(const struct history *history)
{
	return history->began + (usec_t)history->step * HISTORY_STEP;
}

size_t history_size(const struct history *history)
{
	return sizeof(*history) + history->pools * sizeof(struct history_series);
}

/* --- begin and end ------------------------------------------------------------------------ */

bool history_start(struct registry *registry)
{
	struct pool *pool;

	if (registry->process->history)
		return true;
	registry->process->history = calloc(1, sizeof(*registry->process->history));
	if (!registry->process->history)
		return false;
	clear(&registry->process->history->total);
	registry->process->history->began = loop_now(registry->loop);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		pool->counted_transactions = pool->stats.current.transactions;
		pool->counted_errors = pool_errors(pool);
	}
	return true;
}

void history_forget_pool(struct pool *pool)
{
	if (pool->history)
		SHARED_TAKE(pool->registry->process->history->pools, 1);
	free(pool->history);
	pool->history = NULL;
}

void history_stop(struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (registry->process->history)
			history_forget_pool(pool);
	}
	free(registry->process->history);
	registry->process->history = NULL;
}
