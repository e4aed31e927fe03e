/* SPDX-License-Identifier: ISC */
/* Metrics of durations. */
#include "admin/metrics/metric_sources.h"
#include "model/statistics/pool_figures.h"

/* --- connections to servers --------------------------------------------------------------- */

static void collect_connects(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct database *database, *next;

	(void)detail;
	HASH_ITER (by_name, context->registry->process->directory.databases, database, next) {
		const struct database_counters *counters = counters_of_database(database);

		for (unsigned i = 0; counters && i < CONNECT_OUTCOMES; i++) {
			if (!counters->connects[i])
				continue;
			metric_samples_label(samples, "database", database->name);
			metric_samples_label(samples, "outcome", connect_outcome_labels[i]);
			metric_samples_add(samples, counters->connects[i]);
		}
	}
}

const struct metric_source metric_server_connects = {
	collect_connects, sizeof(struct histogram), NULL};

/* --- logins of clients -------------------------------------------------------------------- */

static void collect_logins(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	struct counters counters;

	(void)detail;
	counters_sum(context->registry->process, &counters);
	for (unsigned method = 0; method < LOGIN_METHODS; method++) {
		for (unsigned outcome = 0; outcome < LOGIN_OUTCOMES; outcome++) {
			const struct histogram *times = &counters.logins[method][outcome];

			if (histogram_count(times) == 0)
				continue;
			metric_samples_label(samples, "method", login_method_labels[method]);
			metric_samples_label(samples, "outcome", login_outcome_labels[outcome]);
			metric_samples_add(samples, times);
		}
	}
}

const struct metric_source metric_client_logins = {
	collect_logins, sizeof(struct histogram), NULL};

/* --- TLS handshakes ----------------------------------------------------------------------- */

static void collect_handshakes(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	static const char *const sides[] = {"client", "server"};
	static const char *const outcomes[] = {"failed", "ok"};

	(void)detail;
	for (unsigned side = 0; side < 2; side++) {
		for (unsigned outcome = 0; outcome < 2; outcome++) {
			struct histogram times = {0};
			const struct registry *each;

			EACH_REGISTRY (each, context->registry->process)
				histogram_merge(&times, &each->loop->handshakes[side][outcome]);
			if (histogram_count(&times) == 0)
				continue;
			metric_samples_label(samples, "side", sides[side]);
			metric_samples_label(samples, "outcome", outcomes[outcome]);
			metric_samples_add(samples, &times);
		}
	}
}

const struct metric_source metric_handshakes = {
	collect_handshakes, sizeof(struct histogram), NULL};

/* --- the loop ----------------------------------------------------------------------------- */

static void collect_loop_lag(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	struct histogram lag = {0};
	const struct registry *each;

	(void)detail;
	EACH_REGISTRY (each, context->registry->process)
		histogram_merge(&lag, &each->loop->lag);
	metric_samples_add(samples, &lag);
}

const struct metric_source metric_loop_lag = {collect_loop_lag, sizeof(struct histogram), NULL};

static void collect_loop_busy(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	struct metric_number figures = {0};
	const struct registry *each;

	(void)detail;
	EACH_REGISTRY (each, context->registry->process) {
		struct crew_figures own;

		crew_figures(each->loop, &own);
		figures.number += own.busy;
	}
	metric_samples_add(samples, &figures);
}

const struct metric_source metric_loop_busy = {
	collect_loop_busy, sizeof(struct metric_number), NULL};

/* --- queries, transactions and waits ------------------------------------------------------ */

/* Each kind is a source of its own, because collecting it takes longest. */
static void collect_latencies(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const enum latency_kind kind = *(const enum latency_kind *)detail;
	const struct pool *pool;

	TAILQ_FOREACH (pool, &context->registry->process->directory.pools, in_directory) {
		struct histogram times;

		if (!pool_histogram(pool, kind, &times))
			continue;
		metric_samples_label(samples, "database", pool->label);
		metric_samples_label(samples, "user", pool->user->name);
		metric_samples_add(samples, &times);
	}
}

static const enum latency_kind query = LATENCY_QUERY, transaction = LATENCY_TRANSACTION,
			       wait = LATENCY_WAIT;

const struct metric_source metric_queries = {
	collect_latencies, sizeof(struct histogram), &query};
const struct metric_source metric_transactions = {
	collect_latencies, sizeof(struct histogram), &transaction};
const struct metric_source metric_waits = {collect_latencies, sizeof(struct histogram), &wait};
