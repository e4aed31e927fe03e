/* SPDX-License-Identifier: ISC */
/* Metrics of each worker, as SHOW WORKERS has them. */
#include <stdio.h>

#include "admin/metrics/metric_sources.h"
#include "model/shared/all_workers.h"

static void label(struct metric_samples *samples, const struct registry *registry)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", registry->number);
	metric_samples_label(samples, "worker", number);
}

static void collect(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct registry *each;

	(void)detail;
	EACH_REGISTRY (each, context->registry->process) {
		const struct worker_counts counts = worker_counts_of(each);
		const struct worker_figures figures = {
			.turns = (int64_t)counts.crew.turns,
			.busy = counts.crew.busy,
			.clients = (int64_t)counts.clients,
			.servers = (int64_t)counts.servers,
			.stops = (int64_t)counts.crew.stops,
			.wake_ups = (int64_t)counts.crew.wake_ups,
			.mails = (int64_t)counts.crew.mails,
		};

		label(samples, each);
		metric_samples_add(samples, &figures);
	}
}

const struct metric_source metric_workers = {collect, sizeof(struct worker_figures), NULL};

static void add_moves(struct metric_samples *samples, const struct registry *registry,
	const char *direction, uint64_t count)
{
	const struct metric_number figures = {(int64_t)count};

	label(samples, registry);
	metric_samples_label(samples, "direction", direction);
	metric_samples_add(samples, &figures);
}

static void collect_moves(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct registry *each;

	(void)detail;
	EACH_REGISTRY (each, context->registry->process) {
		add_moves(samples, each, "in", each->moved_in);
		add_moves(samples, each, "out", each->moved_out);
	}
}

const struct metric_source metric_worker_moves = {
	collect_moves, sizeof(struct metric_number), NULL};
