/* SPDX-License-Identifier: ISC */
#include "daemon/shutdown.h"

#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/pool/peering.h"
#include "session/work/control.h"
#include "session/work/replication.h"

static bool has_servers(const struct registry *registry)
{
	const struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (pool_has_servers(pool))
			return true;
	}
	return peering_count_servers(registry) > 0;
}

/* Close clients that wait for a server, since no pool assigns one any more. */
static void close_waiting_clients(struct registry *registry)
{
	const struct failure why = failure_of(REASON_SERVER_SHUTTING_DOWN);
	struct pool *pool;
	struct link *link;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		lookup_refuse(pool, &why);
		while ((link = TAILQ_FIRST(&pool->waiting)) != NULL)
			client_close_for(client_of(link), REASON_SERVER_SHUTTING_DOWN);
		while ((link = TAILQ_FIRST(&pool->welcoming)) != NULL)
			client_close_for(client_of(link), REASON_SERVER_SHUTTING_DOWN);
	}
}

/* shutdown_timeout is over: send the reason to all remaining clients and stop. */
static void stop_after_timeout(struct registry *registry)
{
	log_write(LEVEL_WARNING, "shutdown_timeout is over, exiting");
	control_close_pools(registry, REASON_SERVER_SHUTTING_DOWN);
	loop_stop(registry->loop);
}

static bool is_timeout_over(const struct registry *registry)
{
	const usec_t limit = registry->process->settings->shutdown_timeout;

	return registry->process->shutdown != SHUTDOWN_NONE && limit > 0 &&
		loop_now(registry->loop) - registry->process->shutdown_at >= limit;
}

void shutdown_advance(struct registry *registry)
{
	if (is_timeout_over(registry)) {
		stop_after_timeout(registry);
		return;
	}
	switch (registry->process->shutdown) {
	case SHUTDOWN_NONE:
		break;
	case SHUTDOWN_WAIT_FOR_SERVERS:
		close_waiting_clients(registry);
		if (has_servers(registry))
			break;
		log_write(LEVEL_LOG, "server connections dropped, exiting");
		loop_stop(registry->loop);
		break;
	case SHUTDOWN_WAIT_FOR_CLIENTS:
		replication_end_last(registry);
		if (registry->process->limits.clients > 0)
			break;
		log_write(LEVEL_LOG, "client connections dropped, exiting");
		loop_stop(registry->loop);
		break;
	}
}
