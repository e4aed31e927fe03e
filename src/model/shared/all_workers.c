/* SPDX-License-Identifier: ISC */
#include "model/shared/all_workers.h"

static void add(struct slab *sum, const struct slab *slab)
{
	sum->name = slab->name;
	sum->object_size = slab->object_size;
	sum->used += slab->used;
	sum->free += slab->free;
}

struct worker_sums all_workers_sum(const struct process *process)
{
	struct worker_sums sums = {0};
	const struct registry *each;

	EACH_REGISTRY (each, process) {
		add(&sums.clients, &each->clients);
		add(&sums.servers, &each->servers);
		add(&sums.helds, &each->helds);
		add(&sums.backlogs, &each->loop->backlogs);
		sums.logins += each->login_count;
		sums.statement_bytes += each->statements.bytes;
	}
	return sums;
}

static unsigned count_pools(const struct registry *registry)
{
	const struct pool *pool;
	unsigned count = 0;

	TAILQ_FOREACH (pool, &registry->pools, in_registry)
		count += !pool->database->console;
	return count;
}

struct worker_counts worker_counts_of(const struct registry *registry)
{
	struct worker_counts counts = {
		.databases = registry->database_count,
		.pools = count_pools(registry),
		.clients = registry->clients.used - registry->login_count,
		.logins = registry->login_count,
		.servers = registry->servers.used,
		.age = loop_now(registry->loop) - registry->made_at,
	};

	crew_figures(registry->loop, &counts.crew);
	return counts;
}
