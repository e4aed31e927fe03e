/* SPDX-License-Identifier: ISC */
#include "daemon/shutdown.h"

#include "daemon/daemon.h"
#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/pool/peering.h"
#include "session/serving/progress.h"
#include "session/serving/replication.h"

/* --- servers ------------------------------------------------------------------------------ */

static bool has_servers(const struct registry *registry)
{
	const struct pool *pool;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
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

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		lookup_refuse(pool, &why);
		while ((link = TAILQ_FIRST(&pool->waiting)) != NULL)
			client_close_for(client_of(link), REASON_SERVER_SHUTTING_DOWN);
		while ((link = TAILQ_FIRST(&pool->welcoming)) != NULL)
			client_close_for(client_of(link), REASON_SERVER_SHUTTING_DOWN);
	}
}

static bool wait_for_servers(struct registry *registry)
{
	close_waiting_clients(registry);
	if (has_servers(registry))
		return false;
	log_write(LEVEL_LOG, "server connections dropped, exiting");
	return true;
}

/* --- shutdown_timeout --------------------------------------------------------------------- */

static usec_t elapsed(const struct registry *registry)
{
	return loop_now(registry->loop) - registry->process->shutdown_at;
}

/* shutdown_timeout is over: send the reason to all remaining clients and stop. */
static void stop_after_timeout(struct registry *registry)
{
	char left[PROGRESS_TEXT_SIZE];

	progress_of_shutdown(registry, left);
	log_write(LEVEL_LOG, "closing what is left: %s", left);
	log_write(LEVEL_WARNING, "shutdown_timeout is over, exiting");
	control_close_pools(registry, REASON_SERVER_SHUTTING_DOWN);
	loop_stop(registry->loop);
}

static bool is_timeout_over(const struct registry *registry)
{
	const usec_t limit = registry->process->settings->shutdown_timeout;

	return registry->process->shutdown != SHUTDOWN_NONE && limit > 0 &&
		elapsed(registry) >= limit;
}

/* --- clients ------------------------------------------------------------------------------ */

/*
 * Time until the turn of the last idle client must have come, for a shutdown_timeout. A fifth is
 * left to those that are in a transaction then.
 */
static usec_t time_left(const struct registry *registry)
{
	const usec_t limit = registry->process->settings->shutdown_timeout;
	const usec_t left = limit - limit / 5 - elapsed(registry);

	return left > 0 ? left : 0;
}

/* Returns the number of clients that a shutdown waits for. */
static unsigned count_clients(const struct registry *registry)
{
	const struct process *process = registry->process;

	/* Consoles of monitoring tools may stay for ever; PgBouncer waits for them. */
	if (process->drain == DRAIN_CLOSING && process->settings->shutdown_timeout > 0)
		return process->limits.clients - process->limits.consoles;
	return process->limits.clients;
}

static void log_closing(const struct registry *registry)
{
	const struct settings *settings = registry->process->settings;
	const unsigned clients = registry->process->limits.clients;
	const char *logins =
		settings->drain_accept ? "logins are still served" : "no new logins";

	if (settings->shutdown_timeout > 0)
		log_write(LEVEL_LOG,
			"draining: %u clients, %s, idle clients are closed within %lld s",
			clients, logins,
			(long long)((time_left(registry) + USEC_PER_SEC - 1) / USEC_PER_SEC));
	else if (settings->drain_delay > 0 || settings->drain_accept)
		log_write(LEVEL_LOG, "draining: %u clients, %s, until the last client has left",
			clients, logins);
}

/*
 * A listener that is open answers that the pooler is shutting down. One that other processes have
 * too is closed, so that they get the connections; and without drain_delay all are, as PgBouncer
 * closes them.
 */
static void stop_logins(struct daemon *daemon)
{
	const struct settings *settings = daemon->process.settings;

	if (settings->drain_accept)
		return;
	if (settings->drain_delay == 0 || settings->so_reuseport)
		listeners_close_tcp(&daemon->listeners);
	else
		listeners_close_passed(&daemon->listeners);
}

static void begin_closing(struct daemon *daemon)
{
	daemon->process.drain = DRAIN_CLOSING;
	stop_logins(daemon);
	log_closing(&daemon->registry);
	drain_begin(&daemon->drain, &daemon->registry);
}

void shutdown_begin_drain(struct daemon *daemon)
{
	const usec_t wait = drain_delay_of(daemon->process.settings);

	if (wait == 0) {
		begin_closing(daemon);
		return;
	}
	daemon->process.drain = DRAIN_DELAYED;
	log_write(LEVEL_LOG, "draining: %u clients, all goes on for %lld ms (drain_delay)",
		daemon->process.limits.clients, (long long)(wait / 1000));
}

/* Returns false while drain_delay lasts. */
static bool advance_drain(struct daemon *daemon)
{
	const struct settings *settings = daemon->process.settings;

	if (daemon->process.drain == DRAIN_DELAYED) {
		if (elapsed(&daemon->registry) < drain_delay_of(settings))
			return false;
		begin_closing(daemon);
	}
	if (settings->shutdown_timeout > 0)
		drain_advance(&daemon->drain, time_left(&daemon->registry));
	return true;
}

static bool wait_for_clients(struct registry *registry)
{
	if (registry->process->drain != DRAIN_NONE && !advance_drain(daemon_of(registry)))
		return false;
	if (count_clients(registry) > 0)
		replication_end_last(registry, count_clients(registry));
	if (count_clients(registry) > 0)
		return false;
	log_write(LEVEL_LOG, "client connections dropped, exiting");
	return true;
}

/* --- both --------------------------------------------------------------------------------- */

/* Advance the shutdown; returns true if nothing is left to wait for. */
static bool is_over(struct registry *registry)
{
	switch (registry->process->shutdown) {
	case SHUTDOWN_NONE:
		break;
	case SHUTDOWN_WAIT_FOR_SERVERS:
		return wait_for_servers(registry);
	case SHUTDOWN_WAIT_FOR_CLIENTS:
		return wait_for_clients(registry);
	}
	return false;
}

void shutdown_advance(struct registry *registry)
{
	if (is_over(registry))
		loop_stop(registry->loop);
	else if (is_timeout_over(registry))
		stop_after_timeout(registry);
}
