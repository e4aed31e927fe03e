/* SPDX-License-Identifier: ISC */
#include "admin/page/state_pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/metrics/metric_sources.h"
#include "model/shared/all_hosts.h"
#include "model/statistics/pool_figures.h"

enum { POOLS_PER_TURN = 20 };

/* Counts that are older tell nothing of now. */
#define COUNTS_MOST_AGE (60 * USEC_PER_SEC)

/* --- choosing ----------------------------------------------------------------------------- */

struct candidate {
	struct pool *pool;
	unsigned waiting, active, order;
};

static int compare(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->waiting != right->waiting)
		return left->waiting > right->waiting ? -1 : 1;
	if (left->active != right->active)
		return left->active > right->active ? -1 : 1;
	return left->order < right->order ? -1 : 1;
}

static struct pool_count count_of(const struct pool *pool)
{
	const struct totals *totals = &pool->stats.current;

	return (struct pool_count){
		.number = pool->number,
		.transactions = totals->transactions,
		.queries = totals->queries,
		.received = totals->received,
		.sent = totals->sent,
		.errors = pool_errors(pool),
	};
}

static void add_to_sum(struct pool_count *sum, const struct pool_count *count)
{
	sum->transactions += count->transactions;
	sum->queries += count->queries;
	sum->received += count->received;
	sum->sent += count->sent;
	sum->errors += count->errors;
}

static bool choose(struct state_pools *pools, const struct candidate *candidates)
{
	struct handles *handles = &pools->registry->process->handles;

	for (unsigned i = 0; i < pools->total && i < STATE_POOLS; i++) {
		struct pool *pool = candidates[i].pool;
		const uint64_t handle = handles_give(handles, &pool->handle, pool);

		if (handle == 0)
			return false;
		pools->chosen[pools->chosen_count++] = handle;
	}
	return true;
}

bool state_pools_begin(struct state_pools *pools, struct registry *registry)
{
	struct candidate *candidates =
		malloc((registry->process->directory.pool_count + 1) * sizeof(*candidates));
	struct pool *pool;
	bool chosen;

	pools->registry = registry;
	pools->chosen_count = pools->next = pools->total = pools->servers = 0;
	pools->now = (struct pool_counts){.at = loop_now(registry->loop)};
	process_use_handles(registry->process);
	if (!candidates)
		return false;
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		const struct pool_count count = count_of(pool);

		if (pool->database->console)
			continue;
		add_to_sum(&pools->now.sum, &count);
		pools->servers += pool_connected_servers(pool);
		candidates[pools->total] = (struct candidate){
			.pool = pool,
			.waiting = pool_waiting_clients(pool),
			.active = pool->client_count[CLIENT_PAIRED],
			.order = pools->total,
		};
		pools->total++;
	}
	qsort(candidates, pools->total, sizeof(*candidates), compare);
	chosen = choose(pools, candidates);
	free(candidates);
	return chosen;
}

/* --- rates -------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
	const struct pool_count *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

/* A count is less than before if a pool is gone. */
static int64_t rate(uint64_t now, uint64_t before, usec_t span)
{
	return now > before && span > 0
		? (int64_t)((double)(now - before) * 1000 * USEC_PER_SEC / (double)span)
		: 0;
}

static struct pool_rates rates_between(
	const struct pool_count *now, const struct pool_count *before, usec_t span)
{
	return (struct pool_rates){
		.transactions = rate(now->transactions, before->transactions, span),
		.queries = rate(now->queries, before->queries, span),
		.received = rate(now->received, before->received, span),
		.sent = rate(now->sent, before->sent, span),
		.errors = rate(now->errors, before->errors, span),
	};
}

static usec_t span_of(const struct state_pools *pools)
{
	const usec_t span = pools->now.at - pools->before.at;

	return pools->before.at > 0 && span <= COUNTS_MOST_AGE ? span : 0;
}

/* As the averages of SHOW STATS. Errors have no period. */
static struct pool_rates rates_of_period(
	const struct registry *registry, const struct totals *now, const struct totals *then)
{
	const usec_t span = loop_now(registry->loop) - registry->stats_older_at;

	return (struct pool_rates){
		.transactions = rate(now->transactions, then->transactions, span),
		.queries = rate(now->queries, then->queries, span),
		.received = rate(now->received, then->received, span),
		.sent = rate(now->sent, then->sent, span),
	};
}

static struct pool_rates rates_of(const struct state_pools *pools, const struct pool *pool)
{
	const struct pool_count now = count_of(pool);
	const struct pool_count *before = span_of(pools) > 0
		? bsearch(&now, pools->before.pools, pools->before.count, sizeof(now),
			  compare_numbers)
		: NULL;

	if (before)
		return rates_between(
			&now, before, loop_now(pools->registry->loop) - pools->before.at);
	return rates_of_period(pools->registry, &pool->stats.current, &pool->stats.older);
}

struct pool_rates state_pools_rates(const struct state_pools *pools)
{
	struct stats sum = {0};
	const struct pool *pool;

	if (span_of(pools) > 0)
		return rates_between(&pools->now.sum, &pools->before.sum, span_of(pools));
	TAILQ_FOREACH (pool, &pools->registry->process->directory.pools, in_directory) {
		if (!pool->database->console)
			stats_add(&sum, &pool->stats);
	}
	return rates_of_period(pools->registry, &sum.current, &sum.older);
}

/* --- writing ------------------------------------------------------------------------------ */

/* The host of any server of the pool; of several hosts the first one found. */
static const struct host *host_of(const struct pool *pool)
{
	struct pool_walk walk = pool_walk_servers(pool);
	struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		if (server_of(link)->at)
			return all_hosts_first(pool->registry->process, server_of(link)->at);
	}
	return NULL;
}

static void write_links(struct json *json, const struct pool *pool, usec_t now)
{
	const struct pool_figures figures = metric_figures_of_pool(pool, now);
	const unsigned *clients = pool->client_count;

	json_open_object(json, "clients");
	json_integer(json, "active", (int64_t)clients[CLIENT_PAIRED]);
	json_integer(json, "idle", (int64_t)clients[CLIENT_IDLE]);
	json_integer(json, "waiting", figures.client_waiting);
	json_close_object(json);
	json_open_object(json, "servers");
	json_integer(json, "active", figures.server_active);
	json_integer(json, "idle", figures.server_idle);
	json_integer(json, "used", figures.server_used);
	json_integer(json, "tested", figures.server_testing);
	json_integer(json, "login", figures.server_login);
	json_integer(json, "pinned", pool->pinned);
	json_close_object(json);
	json_seconds(json, "longest_wait", figures.longest_wait);
}

/* Clients that got a server at once have no entry: they are waits of no time. */
static void write_times(
	struct json *json, const char *name, const struct pool *pool, enum latency_kind kind)
{
	const uint64_t assignments =
		pool->stats.current.assignments - pool->stats.older.assignments;
	struct latency_counts sum = {0};
	struct latency_summary summary = {0};

	if (pool->latency) {
		latency_gather(&sum, pool->latency, kind);
		summary = latency_summary_of(&sum, 0);
	}
	if (kind == LATENCY_WAIT && assignments > summary.count)
		summary = latency_summary_of(&sum, assignments - summary.count);
	if (summary.count == 0) {
		json_null(json, name);
		return;
	}
	json_open_object(json, name);
	json_milliseconds(json, "p50", (usec_t)summary.p50);
	json_milliseconds(json, "p90", (usec_t)summary.p90);
	json_milliseconds(json, "p99", (usec_t)summary.p99);
	json_milliseconds(json, "max", (usec_t)summary.max);
	json_close_object(json);
}

static void write_rates(struct json *json, const struct pool_rates *rates)
{
	json_fraction(json, "transactions_per_second", rates->transactions, 3);
	json_fraction(json, "queries_per_second", rates->queries, 3);
	json_fraction(json, "errors_per_second", rates->errors, 3);
}

static void write_pool(const struct state_pools *pools, struct json *json,
	const struct pool *pool, bool details)
{
	const struct registry *registry = pools->registry;
	const struct pool_rates rates = rates_of(pools, pool);
	const struct host *host = host_of(pool);
	const usec_t now = loop_now(registry->loop);
	char name[40];

	snprintf(name, sizeof(name), "pool %llu", (unsigned long long)pool->number);
	json_open_object(json, NULL);
	json_integer(json, "id", (int64_t)pool->number);
	json_text(json, "name", name);
	json_text(json, "database", details ? pool->label : NULL);
	json_text(json, "user", details ? pool->user->name : NULL);
	json_text(json, "mode", pool_mode_name(pool->mode));
	json_integer(json, "size", pool_size(pool));
	json_integer(json, "reserve", pool_reserve_size(pool));
	json_boolean(json, "paused",
		pool->database->paused || registry->process->operation != OPERATION_RUNNING);
	if (host)
		json_integer(json, "host", (int64_t)host->number);
	else
		json_null(json, "host");
	write_links(json, pool, now);
	json_seconds(json, "oldest_transaction", pool_oldest_transaction(pool, now));
	json_seconds(json, "oldest_idle_transaction", pool_oldest_idle_transaction(pool, now));
	write_rates(json, &rates);
	write_times(json, "query_ms", pool, LATENCY_QUERY);
	write_times(json, "transaction_ms", pool, LATENCY_TRANSACTION);
	write_times(json, "wait_ms", pool, LATENCY_WAIT);
	json_close_object(json);
}

bool state_pools_write(struct state_pools *pools, struct json *json, bool details)
{
	struct handles *handles = &pools->registry->process->handles;

	for (unsigned i = 0; i < POOLS_PER_TURN && pools->next < pools->chosen_count; i++) {
		const struct pool *pool = handles_find(handles, pools->chosen[pools->next++]);

		if (!pool)
			continue; /* it was dropped meanwhile */
		write_pool(pools, json, pool, details);
		pools->now.pools[pools->now.count++] = count_of(pool);
	}
	return pools->next < pools->chosen_count;
}

void state_pools_end(struct state_pools *pools)
{
	process_give_handles_back(pools->registry->process);
	qsort(pools->now.pools, pools->now.count, sizeof(pools->now.pools[0]), compare_numbers);
	pools->before = pools->now;
}
