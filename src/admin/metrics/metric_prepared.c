/* SPDX-License-Identifier: ISC */
/* Metrics of prepared statements. */
#include "admin/metrics/metric_sources.h"
#include "model/pool.h"
#include "model/shared/all_workers.h"
#include "model/statistics/pool_figures.h"

static int64_t entries_of(const struct database *database)
{
	const struct pool *pool;
	int64_t entries = 0;

	TAILQ_FOREACH (pool, &database->pools, in_database)
		entries += (int64_t)pool_prepared_statements(pool);
	return entries;
}

static void collect_prepared(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct database *database, *next;

	(void)detail;
	HASH_ITER (by_name, context->registry->process->directory.databases, database, next) {
		const struct prepared_figures figures = {
			.entries = entries_of(database),
			.hits = (int64_t)database->prepared.hits,
			.misses = (int64_t)database->prepared.misses,
			.evictions = (int64_t)database->prepared.evictions,
		};

		if (figures.entries + figures.hits + figures.misses == 0)
			continue;
		metric_samples_label(samples, "database", database->name);
		metric_samples_add(samples, &figures);
	}
}

const struct metric_source metric_prepared = {
	collect_prepared, sizeof(struct prepared_figures), NULL};

static void collect_prepared_bytes(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct metric_number figures = {
		(int64_t)all_workers_sum(context->registry->process).statement_bytes};

	(void)detail;
	metric_samples_add(samples, &figures);
}

const struct metric_source metric_prepared_bytes = {
	collect_prepared_bytes, sizeof(struct metric_number), NULL};
