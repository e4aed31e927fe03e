/* SPDX-License-Identifier: ISC */
#include "admin/advice/advisor.h"

#include <stdlib.h>

#include "admin/advice/rules.h"
#include "model/shared/all_hosts.h"
#include "model/statistics/history.h"

/* Between two turns of the meters. */
#define TURN (30 * USEC_PER_SEC)

bool advisor_start(struct registry *registry)
{
	struct advisor *advisor = calloc(1, sizeof(*advisor));

	if (!advisor)
		return false;
	advisor->registry = registry;
	registry->advisor = advisor;
	return true;
}

void advisor_stop(struct registry *registry)
{
	free(registry->advisor);
	registry->advisor = NULL;
}

/* --- a sample ----------------------------------------------------------------------------- */

/* The servers of all workers with a client there: for each of them. */
static void share_active(const struct process *process, struct host *host)
{
	const struct registry *each;
	unsigned active = 0;

	EACH_REGISTRY (each, process) {
		const struct host *own = hosts_like(&each->hosts, host);

		active += own ? own->counting : 0;
	}
	EACH_REGISTRY (each, process) {
		struct host *own = hosts_like(&each->hosts, host);

		if (own) {
			own->active = active;
			own->counting = 0;
		}
	}
}

static void look_at_hosts(struct advisor *advisor)
{
	struct host_walk walk = {.process = advisor->registry->process};
	struct host *host;

	while ((host = host_walk_next(&walk)) != NULL) {
		share_active(walk.process, host);
		host_advice_look(advisor, host);
	}
}

/* Count the active servers of the pool at the host of the first one: most pools have one host. */
static void count_active(struct pool *pool)
{
	struct link *link = TAILQ_FIRST(&pool->servers[SERVERS_ACTIVE]);

	if (link && server_of(link)->at)
		server_of(link)->at->counting += pool->server_count[SERVERS_ACTIVE];
}

static void look_at_pool(struct advisor *advisor, struct pool *pool)
{
	/* Databases are looked at with their first pool: those without one do nothing. */
	if (TAILQ_FIRST(&pool->database->pools) == pool) {
		database_advice_look(advisor, pool->database);
		host_advice_look_at_lag(advisor, pool);
	}
	count_active(pool);
	limit_advice_look(advisor, pool);
	pool_advice_look(advisor, pool);
	full_advice_look(advisor, pool);
	transaction_advice_look(advisor, pool);
}

static void take_sample(struct advisor *advisor)
{
	struct registry *registry = advisor->registry;
	struct history *history = registry->process->history;
	struct pool *pool;

	measures_take_busy(advisor);
	process_advice_look(advisor);
	look_at_hosts(advisor);
	if (history)
		history_begin_sample(history, advisor->findings.now);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (pool->database->console)
			continue;
		look_at_pool(advisor, pool);
		if (history)
			history_take_pool(history, pool);
	}
	if (history)
		history_end_sample(history);
}

int advisor_busy(const struct registry *registry, unsigned worker)
{
	const struct advisor *advisor = registry->advisor;

	return advisor && advisor->looked_at > 0 ? advisor->busy_percent[worker] : -1;
}

void advisor_look(struct registry *registry, usec_t now)
{
	struct advisor *advisor = registry->advisor;

	if (!advisor || (advisor->looked_at > 0 && now - advisor->looked_at < USEC_PER_SEC))
		return;
	if (advisor->looked_at == 0)
		advisor->turned_at = advisor->turned_before = now;
	advisor->turns = now - advisor->turned_at >= TURN;
	findings_begin(&advisor->findings, now);
	take_sample(advisor);
	findings_end(&advisor->findings);
	advisor->looked_at = now;
	if (advisor->turns) {
		advisor->turned_before = advisor->turned_at;
		advisor->turned_at = now;
	}
}
