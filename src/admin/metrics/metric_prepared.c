/* SPDX-License-Identifier: ISC */
/* Metrics of prepared statements. */
#include "admin/metrics/metric_sources.h"
#include "model/pool.h"
#include "model/registry.h"

static int64_t entries_of(const struct database *database)
{
	const struct pool *pool;
	int64_t entries = 0;

	TAILQ_FOREACH (pool, &database->pools, in_database)
		entries += (int64_t)pool_prepared_statements(pool);
	return entries;
}

static void collect_prepared(
	struct metric_picture *picture, const struct metric_scene *scene, const void *detail)
{
	const struct database *database, *next;

	(void)detail;
	HASH_ITER (by_name, scene->registry->databases, database, next) {
		const struct prepared_figures figures = {
			.entries = entries_of(database),
			.hits = (int64_t)database->prepared.hits,
			.misses = (int64_t)database->prepared.misses,
			.evictions = (int64_t)database->prepared.evictions,
		};

		if (figures.entries + figures.hits + figures.misses == 0)
			continue;
		metric_picture_label(picture, "database", database->name);
		metric_picture_add(picture, &figures);
	}
}

const struct metric_source metric_prepared = {
	collect_prepared, sizeof(struct prepared_figures), NULL};

static void collect_prepared_bytes(
	struct metric_picture *picture, const struct metric_scene *scene, const void *detail)
{
	const struct metric_number figures = {(int64_t)scene->registry->statements.bytes};

	(void)detail;
	metric_picture_add(picture, &figures);
}

const struct metric_source metric_prepared_bytes = {
	collect_prepared_bytes, sizeof(struct metric_number), NULL};
