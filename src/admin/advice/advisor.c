/* SPDX-License-Identifier: ISC */
#include "admin/advice/advisor.h"

#include <stdlib.h>

#include "admin/advice/rules.h"
#include "base/cores.h"
#include "model/statistics/history.h"
#include "session/server/host_capacity.h"

/* Between two turns of the meters. */
#define TURN (30 * USEC_PER_SEC)

/* A rate over less time than this tells nothing. */
#define WINDOW_LEAST (5 * USEC_PER_SEC)

bool advisor_start(struct registry *registry)
{
	struct advisor *advisor = calloc(1, sizeof(*advisor));

	if (!advisor)
		return false;
	advisor->registry = registry;
	advisor->findings.handles = &registry->process->handles;
	registry->advisor = advisor;
	return true;
}

void advisor_stop(struct registry *registry)
{
	free(registry->advisor);
	registry->advisor = NULL;
}

/* --- meters ------------------------------------------------------------------------------- */

usec_t advisor_window(const struct advisor *advisor)
{
	return advisor->findings.now - advisor->turned_before;
}

uint64_t advisor_growth(const struct advisor *advisor, struct meter *meter, uint64_t count)
{
	const uint64_t growth = meter_look(meter, count);

	if (advisor->turns)
		meter_turn(meter, count);
	return growth;
}

int64_t advisor_rate(const struct advisor *advisor, uint64_t growth)
{
	const usec_t window = advisor_window(advisor);

	return window < WINDOW_LEAST
		? 0
		: (int64_t)(growth * 1000 * (uint64_t)USEC_PER_SEC / (uint64_t)window);
}

/* --- cores -------------------------------------------------------------------------------- */

unsigned advisor_cores(struct advisor *advisor, const struct server_link *server)
{
	const int configured = server->link.pool->database->config->host_cores;
	const struct host *host = server->at;

	if (configured > 0)
		return configured < CORES_MOST ? (unsigned)configured : CORES_MOST;
	if (host && host->capacity.cores > 0)
		return host->capacity.cores;
	if (!host_capacity_is_here(server))
		return 0;
	if (advisor->cores == 0)
		advisor->cores = cores_available();
	return advisor->cores;
}

/* --- a sample ----------------------------------------------------------------------------- */

static void look_at_hosts(struct advisor *advisor)
{
	struct host *host;

	TAILQ_FOREACH (host, &advisor->registry->process->hosts, in_hosts) {
		host->active = host->counting;
		host->counting = 0;
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
	struct history *history = registry->history;
	struct pool *pool;

	process_advice_look(advisor);
	look_at_hosts(advisor);
	if (history)
		history_begin_sample(history, advisor->findings.now);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (pool->database->console)
			continue;
		look_at_pool(advisor, pool);
		if (history)
			history_take_pool(history, pool);
	}
	if (history)
		history_end_sample(history);
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
