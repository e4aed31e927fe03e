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

static void run_upkeep(struct janitor *janitor, usec_t now)
{
	struct registry *registry = janitor->registry;
	struct pool *pool, *next;
	struct peer *peer;

	pool_upkeep_open_forced(registry);
	TAILQ_FOREACH_SAFE (pool, &registry->pools, in_registry, next) {
		if (!pool->database->console)
			server_upkeep_pool(pool, now);
		pool_upkeep_drop_idle(pool, now);
	}
	pool_upkeep_drop_databases(registry, now);
	TAILQ_FOREACH (peer, &registry->process->peers, entry)
		server_upkeep_logins(peer->pool, now);
	peering_work(registry);
	host_watch_round(registry);
	auto_size_upkeep(registry);
	slow_report_left_out(registry);
	end_stats_period(janitor, now);
	shutdown_advance(registry);
}

static void run(struct deadline *deadline)
{
	struct janitor *janitor = (struct janitor *)deadline;
	struct registry *registry = janitor->registry;
	const usec_t now = loop_now(registry->loop);

	/*
	 * During SUSPEND session/work/suspend does the upkeep; during a handover nothing may
	 * change.
	 */
	if (registry->process->operation != OPERATION_SUSPENDED && !registry->process->still)
		run_upkeep(janitor, now);
	if (!registry->process->still)
		advisor_look(registry, now);
	if (janitor->after)
		janitor->after(registry);
	wheel_set(&registry->loop->wheel, &janitor->deadline, now + PERIOD);
}

void janitor_start(struct janitor *janitor, struct registry *registry,
	void (*after)(struct registry *registry))
{
	const usec_t now = loop_now(registry->loop);

	*janitor = (struct janitor){.registry = registry, .after = after};
	advisor_start(registry); /* out of memory: there is no advice */
	host_watch_start(registry);
	janitor->deadline.expire = run;
	janitor->stats_began = now;
	wheel_set(&registry->loop->wheel, &janitor->deadline, now + PERIOD);
}

void janitor_stop(struct janitor *janitor)
{
	host_watch_stop(janitor->registry);
	advisor_stop(janitor->registry);
	wheel_remove(&janitor->registry->loop->wheel, &janitor->deadline);
	loop_forget(janitor->registry->loop, &janitor->shutdown);
}

static void on_shutdown(struct loop_task *task)
{
	struct janitor *janitor =
		(struct janitor *)((char *)task - offsetof(struct janitor, shutdown));

	shutdown_advance(janitor->registry);
}

void janitor_begin_shutdown(struct janitor *janitor)
{
	loop_defer_late(janitor->registry->loop, &janitor->shutdown, on_shutdown);
}
