/* SPDX-License-Identifier: ISC */
#include "session/slow/slow_setting.h"

#include "model/registry.h"
#include "model/statistics/pool_figures.h"

static const char *const cap_settings[CAPS] = {
	[CAP_DATABASE] = "max_db_connections",
	[CAP_USER] = "max_user_connections",
	[CAP_PROCESS] = "max_server_connections",
};

/* Returns the limit that keeps the pool, which has less servers than its size, from more. */
static const char *full_cap(const struct pool *pool)
{
	for (unsigned kind = 0; kind < CAPS; kind++) {
		if (cap_is_full(pool, (enum cap_kind)kind))
			return cap_settings[kind];
	}
	return NULL;
}

/* An idle server is one that could have served the client for at least half of its wait. */
static unsigned count_idle(const struct pool *pool, usec_t waited)
{
	const usec_t now = loop_now(pool->registry->loop);
	unsigned idle = 0;
	struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		idle += pool_server_idles_in_transaction(server_of(link)) &&
			2 * (now - link->request_time) >= waited;
	}
	return idle;
}

/* Returns what keeps the servers of a full pool, or its size if most of them run queries. */
static const char *of_full_pool(const struct pool *pool, usec_t waited)
{
	const unsigned servers = pool_servers(pool);

	if (pool->mode == POOL_MODE_SESSION)
		return "pool_mode";
	if (2 * pool->pinned >= servers)
		return "pin_causes";
	return 2 * count_idle(pool, waited) >= servers ? "idle_transaction_timeout"
						       : "pool_size";
}

const char *slow_setting(const struct pool *pool, usec_t waited)
{
	const int size = pool_size(pool);

	if (pool_is_paused(pool) || pool->failing)
		return NULL;
	if (size > 0 && pool_servers(pool) >= (unsigned)size)
		return of_full_pool(pool, waited);
	return full_cap(pool);
}
