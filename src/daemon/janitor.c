/* SPDX-License-Identifier: ISC */
#include "daemon/janitor.h"

#include <stddef.h>
#include <stdio.h>

#include "daemon/systemd.h"
#include "session/control.h"
#include "session/draining.h"
#include "session/ending.h"
#include "session/launch.h"
#include "session/lookup_server.h"
#include "session/pairing.h"
#include "session/peering.h"
#include "session/replication.h"
#include "session/server_login.h"
#include "session/transfer.h"

/* A third of a second. */
#define PERIOD (USEC_PER_SEC / 3)

/* --- resting servers ---------------------------------------------------------------------- */

static bool idle_too_long(const struct server_link *server, usec_t now)
{
	const struct pool *pool = server->link.pool;
	const usec_t limit = pool->registry->settings->server_idle_timeout;
	const int least = pool_min_size(pool);

	return limit > 0 && now - server->link.request_time > limit &&
		(least <= 0 || pool_connected_servers(pool) > (unsigned)least);
}

/* An idle server that has not been heard of for a while is checked before its next use. */
static bool needs_check(const struct server_link *server, usec_t now)
{
	const struct settings *settings = server->link.pool->registry->settings;

	return server->link.state == SERVER_IDLE && settings->server_check_query[0] != '\0' &&
		now - server->link.request_time > settings->server_check_delay;
}

/* The first rule that applies to a server nobody uses. */
static void inspect_resting(struct server_link *server, usec_t now)
{
	const enum server_state state = server_state(server);

	if (server->close_needed)
		server_close_for(server, REASON_DATABASE_CONFIGURATION_CHANGED);
	else if (state == SERVER_IDLE && !server_is_clean(server))
		server_close_for(server, REASON_SV_IDLE_SERVER_GOT_DIRTY);
	else if (state == SERVER_STALE && !server_is_clean(server))
		server_close_for(server, REASON_SV_USED_SERVER_GOT_DIRTY);
	else if (idle_too_long(server, now))
		server_close_for(server, REASON_SERVER_IDLE_TIMEOUT);
	else if (pairing_retire_old(server))
		return;
	else if (pool_is_paused(server->link.pool))
		server_close_for(server, REASON_PAUSE_MODE);
	else if (needs_check(server, now))
		server_enter(server, SERVER_STALE);
}

static void inspect_list(struct pool *pool, enum server_list list, usec_t now)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, &pool->servers[list], place, next)
		inspect_resting(server_of(link), now);
}

/* --- servers in use ----------------------------------------------------------------------- */

static usec_t own_or(usec_t own, usec_t global)
{
	return own > 0 ? own : global;
}

static bool is_over(usec_t now, usec_t start, usec_t limit)
{
	return limit > 0 && start > 0 && now - start > limit;
}

/* A query of ours: there is no transaction to be timed, and nobody to be idle in it. */
static void inspect_lookup(struct server_link *server, usec_t now)
{
	const struct user_config *user = server->link.pool->user->config;
	const struct settings *settings = server->link.pool->registry->settings;

	if (is_over(now, server->lookup->started,
		    own_or(user ? user->query_timeout : 0, settings->query_timeout)))
		server_close_for(server, REASON_QUERY_TIMEOUT);
}

/* Is it to be closed though its client has not left it? A session of replication might never end. */
static bool is_retired(const struct server_link *server, const struct settings *settings)
{
	if (!server->close_needed)
		return false;
	return server->replication ||
		(settings->server_fast_close && server_mode(server) == POOL_MODE_SESSION &&
			server->transaction_status == 'I' &&
			requests_is_empty(&server->requests));
}

/*
 * Limits of a running query or transaction: those of the pool's user win over the global ones. It is
 * the client that ends; its server is relieved of the query, and stays.
 */
static void inspect_active(struct server_link *server, usec_t now)
{
	static const struct user_config none;
	const struct pool *pool = server->link.pool;
	const struct settings *settings = pool->registry->settings;
	const struct user_config *own = pool->user->config ? pool->user->config : &none;
	struct client_link *client = client_of(server->link.peer);
	const char status = server->transaction_status;
	const bool between =
		(status == 'T' || status == 'E') && requests_is_empty(&server->requests);

	if (is_retired(server, settings))
		server_close_for(server, REASON_DATABASE_CONFIGURATION_CHANGED);
	else if (pool_is_paused(pool) && replication_is_endless(server))
		server_close_for(server,
			pool->registry->shutdown == SHUTDOWN_NONE
				? REASON_PAUSE_MODE
				: REASON_SERVER_SHUTTING_DOWN);
	else if (server->replication == REPLICATION_PHYSICAL)
		return; /* knows neither queries nor transactions */
	else if (is_over(now, client->query_start,
			 own_or(own->query_timeout, settings->query_timeout)))
		client_close_for(client, REASON_QUERY_TIMEOUT);
	else if (between &&
		is_over(now, server->link.request_time,
			own_or(own->idle_transaction_timeout,
				settings->idle_transaction_timeout)))
		client_close_for(client, REASON_IDLE_TRANSACTION_TIMEOUT);
	else if (is_over(now, client->transaction_start,
			 own_or(own->transaction_timeout, settings->transaction_timeout)))
		client_close_for(client, REASON_TRANSACTION_TIMEOUT);
}

static void inspect_logins(struct pool *pool, usec_t now)
{
	const struct settings *settings = pool->registry->settings;
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_LOGIN], place, next) {
		if (is_over(now, link->connect_time, settings->server_connect_timeout))
			server_close_for(server_of(link), REASON_CONNECT_TIMEOUT);
		else
			server_login_hurry(server_of(link), now);
	}
	/* A server that does not close the connection of a cancel request must not keep it. */
	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_ACTIVE_CANCEL], place, next) {
		if (is_over(now, link->connect_time, settings->cancel_wait_timeout))
			server_close_for(server_of(link), REASON_CANCEL_WAIT_TIMEOUT);
	}
}

/* --- sizes -------------------------------------------------------------------------------- */

/* Close unused servers beyond the pool's size, the longest unused ones first. */
static void shrink(struct pool *pool)
{
	const int size = pool_size(pool);
	const unsigned most = (unsigned)(size + pool_reserve_size(pool));

	if (size <= 0)
		return;
	while (pool_connected_servers(pool) > most) {
		struct link *link = TAILQ_LAST(&pool->servers[SERVERS_USED], link_list);

		if (!link)
			link = TAILQ_LAST(&pool->servers[SERVERS_IDLE], link_list);
		if (!link)
			return;
		server_close_for(server_of(link), REASON_TOO_MANY_SERVERS);
	}
}

static bool has_clients(const struct pool *pool)
{
	return !TAILQ_EMPTY(&pool->clients) || !TAILQ_EMPTY(&pool->waiting) ||
		!TAILQ_EMPTY(&pool->welcoming) || pool->looking_up > 0;
}

/* One server a run towards min_pool_size, while the pool is in use or belongs to one user. */
static void top_up(struct pool *pool)
{
	const int least = pool_min_size(pool), size = pool_size(pool);
	const unsigned connected = pool_connected_servers(pool);

	if (least <= 0 || connected >= (unsigned)least || pool_is_paused(pool) ||
		pool->left_behind || pool->registry->shutdown != SHUTDOWN_NONE ||
		(size > 0 && connected >= (unsigned)size))
		return;
	if (has_clients(pool) || pool_is_forced(pool))
		launch_server(pool, true);
}

/* A database with a forced user has its pool before the first client comes. */
static void open_forced_pools(struct registry *registry)
{
	struct database *database, *next;

	HASH_ITER (by_name, registry->databases, database, next) {
		struct user *user;

		if (database->console || !database->config->user ||
			database_min_pool_size(database, registry->settings) <= 0)
			continue;
		user = registry_open_user(registry, database->config->user);
		if (user)
			registry_open_pool(registry, database, user);
	}
}

/* --- what nobody uses --------------------------------------------------------------------- */

static bool is_unused(const struct pool *pool)
{
	return !has_clients(pool) && TAILQ_EMPTY(&pool->cancels) && pool_servers(pool) == 0;
}

/* Nobody will come back to a pool whose database logs in as somebody else now. */
static void drop_pool_left_behind(struct pool *pool)
{
	struct pool *other = TAILQ_FIRST(&pool->database->pools);

	/* What the database has done stays with it: its totals never go down. */
	if (other == pool)
		other = TAILQ_NEXT(pool, in_database);
	if (other)
		pool_leave_counts(pool, other);
	log_write(LEVEL_LOG,
		"cleaning up pool for user %s on db %s because: the database has another user now",
		pool->user->name, pool->database->name);
	registry_drop_pool(pool->registry, pool);
}

/* True if the pool is gone. */
static bool drop_idle_pool(struct pool *pool, usec_t now)
{
	const usec_t limit = pool->registry->settings->pool_idle_timeout;
	const usec_t age = now - pool->last_used;

	if (pool->left_behind && is_unused(pool)) {
		drop_pool_left_behind(pool);
		return true;
	}
	if (pool->left_behind)
		transfer_pool(pool);
	if (!is_unused(pool)) {
		pool->last_used = now;
		return false;
	}
	if (limit <= 0 || age <= limit || pool->database->console ||
		(pool_is_forced(pool) && pool_min_size(pool) > 0))
		return false;
	log_write(LEVEL_LOG,
		"cleaning up idle pool for user %s on db %s because: pool idle timeout (age= %llds)",
		pool->user->name, pool->database->name, (long long)(age / USEC_PER_SEC));
	registry_drop_pool(pool->registry, pool);
	return true;
}

static bool is_unused_database(const struct database *database)
{
	const struct pool *pool;

	if (database->clients > 0)
		return false;
	TAILQ_FOREACH (pool, &database->pools, in_database) {
		if (!is_unused(pool))
			return false;
	}
	return true;
}

/* Has no server of it ever let us in? Names that nobody has but who asks for them cost memory. */
static bool has_never_worked(const struct database *database)
{
	const struct pool *pool;

	TAILQ_FOREACH (pool, &database->pools, in_database) {
		if (!pool->failing || pool->welcome)
			return false;
	}
	return !TAILQ_EMPTY(&database->pools);
}

/* How long an automatic database stays that nobody uses; 0: for ever. */
static usec_t idle_limit(const struct database *database, const struct settings *settings)
{
	const usec_t limit = settings->autodb_idle_timeout;
	const usec_t retry = settings->server_login_retry;

	return has_never_worked(database) && retry > 0 && (limit <= 0 || retry < limit) ? retry
											: limit;
}

static void drop_idle_databases(struct registry *registry, usec_t now)
{
	struct database *database, *next;

	HASH_ITER (by_name, registry->databases, database, next) {
		usec_t limit;

		if (!database->own_config)
			continue;
		if (!is_unused_database(database)) {
			database->idle_since = 0;
			continue;
		}
		if (database->idle_since == 0)
			database->idle_since = now;
		limit = idle_limit(database, registry->settings);
		if (limit <= 0 || database->paused || now - database->idle_since <= limit)
			continue;
		log_write(LEVEL_WARNING,
			"dropping database '%s' as it does not exist anymore or inactive "
			"auto-database",
			database->name);
		control_kill(registry, database, false);
		registry_drop_database(registry, database);
	}
}

/* --- one pool ----------------------------------------------------------------------------- */

static void inspect_pool(struct pool *pool, usec_t now)
{
	struct link *link, *next;

	inspect_list(pool, SERVERS_USED, now);
	inspect_list(pool, SERVERS_TESTED, now);
	inspect_list(pool, SERVERS_IDLE, now);
	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_ACTIVE], place, next) {
		if (link->state == SERVER_LOOKING_UP)
			inspect_lookup(server_of(link), now);
		else
			inspect_active(server_of(link), now);
	}
	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_BEING_CANCELED], place, next) {
		if (link->state == SERVER_DRAINING)
			draining_inspect(server_of(link), now);
	}
	inspect_logins(pool, now);
	shrink(pool);
	top_up(pool);
	if (pool_wanted_servers(pool) + pool_welcoming_clients(pool) +
			pool_waiting_cancels(pool) >
		0)
		pool_needs_work(pool);
}

/* --- statistics --------------------------------------------------------------------------- */

static void sum_pools(const struct registry *registry, struct stats *sum)
{
	const struct pool *pool;

	*sum = (struct stats){0};
	TAILQ_FOREACH (pool, &registry->pools, in_registry)
		stats_add(sum, &pool->stats);
}

/* The averages of the last period; `us` is how microseconds are spelled. */
static void format_stats(const struct totals *average, const char *us, char *out, size_t size)
{
	snprintf(out, size,
		"stats: %llu xacts/s, %llu queries/s, %llu client parses/s, %llu server parses/s, "
		"%llu binds/s, in %llu B/s, out %llu B/s, xact %llu %s, query %llu %s, wait %llu %s",
		(unsigned long long)average->transactions, (unsigned long long)average->queries,
		(unsigned long long)average->client_parses,
		(unsigned long long)average->server_parses, (unsigned long long)average->binds,
		(unsigned long long)average->received, (unsigned long long)average->sent,
		(unsigned long long)average->transaction_time, us,
		(unsigned long long)average->query_time, us,
		(unsigned long long)average->wait_time, us);
}

static void tell_stats(const struct registry *registry, usec_t now)
{
	struct stats sum;
	struct totals average;
	char text[512];

	sum_pools(registry, &sum);
	average = stats_average(&sum.current, &sum.newer, now - registry->stats_newer_at);
	if (registry->settings->log_stats) {
		format_stats(&average, "us", text, sizeof(text));
		log_write(LEVEL_LOG, "%s", text);
	}
	format_stats(&average, "μs", text, sizeof(text));
	systemd_status(text);
}

static void end_stats_period(struct janitor *janitor, usec_t now)
{
	struct registry *registry = janitor->registry;
	const usec_t period = (usec_t)registry->settings->stats_period * USEC_PER_SEC;
	struct pool *pool;

	if (now - janitor->stats_began < period)
		return;
	janitor->stats_began = now;
	tell_stats(registry, now);
	TAILQ_FOREACH (pool, &registry->pools, in_registry)
		pool_end_period(pool);
	registry->stats_older_at = registry->stats_newer_at;
	registry->stats_newer_at = now;
}

/* --- shutdown ----------------------------------------------------------------------------- */

static bool has_servers(const struct registry *registry)
{
	const struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (pool_servers(pool) > 0)
			return true;
	}
	return peering_count_servers(registry) > 0;
}

/* No server is given out any more: those who wait for one wait in vain. */
static void refuse_waiters(struct registry *registry)
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

/* Who is left is told why he has to go. */
static void end_shutdown(struct registry *registry)
{
	log_write(LEVEL_WARNING, "shutdown_timeout is over, exiting");
	control_tell_and_drop(registry, REASON_SERVER_SHUTTING_DOWN);
	loop_stop(registry->loop);
}

static bool is_shutdown_over(const struct registry *registry)
{
	const usec_t limit = registry->settings->shutdown_timeout;

	return registry->shutdown != SHUTDOWN_NONE && limit > 0 &&
		loop_now(registry->loop) - registry->shutdown_at >= limit;
}

static void look_after_shutdown(struct registry *registry)
{
	if (is_shutdown_over(registry)) {
		end_shutdown(registry);
		return;
	}
	switch (registry->shutdown) {
	case SHUTDOWN_NONE:
		break;
	case SHUTDOWN_WAIT_FOR_SERVERS:
		refuse_waiters(registry);
		if (has_servers(registry))
			break;
		log_write(LEVEL_LOG, "server connections dropped, exiting");
		loop_stop(registry->loop);
		break;
	case SHUTDOWN_WAIT_FOR_CLIENTS:
		replication_end_last(registry);
		if (registry->limits.clients > 0)
			break;
		log_write(LEVEL_LOG, "client connections dropped, exiting");
		loop_stop(registry->loop);
		break;
	}
}

/* --- the whole ---------------------------------------------------------------------------- */

static void look_after_all(struct janitor *janitor, usec_t now)
{
	struct registry *registry = janitor->registry;
	struct pool *pool, *next;
	struct peer *peer;

	open_forced_pools(registry);
	TAILQ_FOREACH_SAFE (pool, &registry->pools, in_registry, next) {
		if (!pool->database->console)
			inspect_pool(pool, now);
		drop_idle_pool(pool, now);
	}
	drop_idle_databases(registry, now);
	TAILQ_FOREACH (peer, &registry->peers, entry)
		inspect_logins(peer->pool, now);
	peering_work(registry);
	end_stats_period(janitor, now);
	look_after_shutdown(registry);
}

static void run(struct deadline *deadline)
{
	struct janitor *janitor = (struct janitor *)deadline;
	struct registry *registry = janitor->registry;
	const usec_t now = loop_now(registry->loop);

	/* A suspension looks after itself. */
	if (registry->operation != OPERATION_SUSPENDED && !registry->still)
		look_after_all(janitor, now);
	if (janitor->after)
		janitor->after(registry);
	wheel_set(&registry->loop->wheel, &janitor->deadline, now + PERIOD);
}

void janitor_start(struct janitor *janitor, struct registry *registry,
	void (*after)(struct registry *registry))
{
	const usec_t now = loop_now(registry->loop);

	*janitor = (struct janitor){.registry = registry, .after = after};
	janitor->deadline.expire = run;
	janitor->stats_began = now;
	wheel_set(&registry->loop->wheel, &janitor->deadline, now + PERIOD);
}

void janitor_stop(struct janitor *janitor)
{
	wheel_remove(&janitor->registry->loop->wheel, &janitor->deadline);
	loop_forget(janitor->registry->loop, &janitor->shutdown);
}

static void on_shutdown(struct loop_task *task)
{
	struct janitor *janitor =
		(struct janitor *)((char *)task - offsetof(struct janitor, shutdown));

	look_after_shutdown(janitor->registry);
}

void janitor_shut_down(struct janitor *janitor)
{
	loop_defer_late(janitor->registry->loop, &janitor->shutdown, on_shutdown);
}
