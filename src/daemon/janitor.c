/* SPDX-License-Identifier: ISC */
#include "daemon/janitor.h"

#include <stddef.h>

#include "admin/advice/advisor.h"
#include "daemon/pool_upkeep.h"
#include "daemon/server_upkeep.h"
#include "daemon/shutdown.h"
#include "daemon/stats_line.h"
#include "model/statistics/pool_figures.h"
#include "session/pool/auto_size.h"
#include "session/pool/host_watch.h"
#include "session/pool/peering.h"
#include "session/slow/slow_report.h"

/* A third of a second. */
#define PERIOD (USEC_PER_SEC / 3)

static void end_stats_period(struct janitor *janitor, usec_t now)
{
	struct registry *registry = janitor->registry;
	const usec_t period = (usec_t)registry->process->settings->stats_period * USEC_PER_SEC;
	struct pool *pool;

	if (now - janitor->stats_began < period)
		return;
	janitor->stats_began = now;
	stats_line_write(registry, now);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		pool_end_period(pool);
	registry->stats_older_at = registry->stats_newer_at;
	registry->stats_newer_at = now;
}

/* What each worker does for its own pools. */
static void run_own_upkeep(struct registry *registry, usec_t now)
{
	struct pool *pool, *next;

	pool_upkeep_open_forced(registry);
	TAILQ_FOREACH_SAFE (pool, &registry->pools, in_registry, next) {
		if (!pool->database->console)
			server_upkeep_pool(pool, now);
		pool_upkeep_drop_idle(pool, now);
	}
	pool_upkeep_drop_databases(registry, now);
	host_watch_round(registry);
	slow_report_left_out(registry);
}

/* What concerns the whole process: only the first worker does it, while the others are stopped. */
static void run_upkeep(struct janitor *janitor, usec_t now)
{
	struct registry *registry = janitor->registry;
	struct peer *peer;

	run_own_upkeep(registry, now);
	TAILQ_FOREACH (peer, &registry->process->peers, entry)
		server_upkeep_logins(peer->pool, now);
	peering_work(registry);
	auto_size_upkeep(registry);
	end_stats_period(janitor, now);
	shutdown_advance(registry);
}

/* During SUSPEND session/serving/suspend does the upkeep; during a handover nothing may change. */
static bool may_change(const struct registry *registry)
{
	return registry->process->operation != OPERATION_SUSPENDED && !registry->process->still;
}

static void run_own(struct deadline *deadline)
{
	struct janitor *janitor = (struct janitor *)deadline;
	struct registry *registry = janitor->registry;
	const usec_t now = loop_now(registry->loop);

	if (may_change(registry))
		run_own_upkeep(registry, now);
	wheel_set(&registry->loop->wheel, &janitor->deadline, now + PERIOD);
}

static void run(struct deadline *deadline)
{
	struct janitor *janitor = (struct janitor *)deadline;
	struct registry *registry = janitor->registry;
	const usec_t now = loop_now(registry->loop);

	process_stop_others(registry->process);
	if (may_change(registry))
		run_upkeep(janitor, now);
	if (!registry->process->still)
		advisor_look(registry, now);
	if (janitor->after)
		janitor->after(registry);
	process_let_others_run(registry->process);
	wheel_set(&registry->loop->wheel, &janitor->deadline, now + PERIOD);
}

void janitor_start(struct janitor *janitor, struct registry *registry,
	void (*after)(struct registry *registry))
{
	const usec_t now = loop_now(registry->loop);

	*janitor = (struct janitor){.registry = registry, .after = after};
	if (registry->number == 0)
		advisor_start(registry); /* out of memory: there is no advice */
	host_watch_start(registry);
	janitor->deadline.expire = registry->number == 0 ? run : run_own;
	janitor->stats_began = now;
	wheel_set(&registry->loop->wheel, &janitor->deadline, now + PERIOD);
}

void janitor_stop(struct janitor *janitor)
{
	host_watch_stop(janitor->registry);
	if (janitor->registry->number == 0)
		advisor_stop(janitor->registry);
	wheel_remove(&janitor->registry->loop->wheel, &janitor->deadline);
	loop_forget(janitor->registry->loop, &janitor->shutdown);
}

static void on_shutdown(struct loop_task *task)
{
	struct janitor *janitor =
		(struct janitor *)((char *)task - offsetof(struct janitor, shutdown));

	process_stop_others(janitor->registry->process);
	shutdown_advance(janitor->registry);
	process_let_others_run(janitor->registry->process);
}

void janitor_begin_shutdown(struct janitor *janitor)
{
	loop_defer_late(janitor->registry->loop, &janitor->shutdown, on_shutdown);
}
