/* SPDX-License-Identifier: ISC */
#include "daemon/server_upkeep.h"

#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/notify/listening_server.h"
#include "session/pool/draining.h"
#include "session/pool/lifetime.h"
#include "session/pool/minimum.h"
#include "session/pool/return_to_pool.h"
#include "session/server/host_capacity.h"
#include "session/server/server_login.h"
#include "session/serving/replication.h"
#include "session/state/functions.h"

/* --- servers not in use ------------------------------------------------------------------- */

static bool idle_too_long(const struct server_link *server, usec_t now)
{
	const struct pool *pool = server->link.pool;
	const usec_t limit = pool->registry->process->settings->server_idle_timeout;

	return limit > 0 && now - server->link.request_time > limit &&
		pool_connected_servers(pool) > minimum_size(pool);
}

/* A server that has been idle for server_check_delay is checked before its next use. */
static bool needs_check(const struct server_link *server, usec_t now)
{
	const struct settings *settings = server->link.pool->registry->process->settings;

	return server->link.state == SERVER_IDLE &&
		(settings->server_check_query[0] != '\0' ||
			settings->server_check_role == ROLE_CHECK_ALWAYS) &&
		now - server->link.request_time > settings->server_check_delay;
}

/* Apply the first matching rule to a server that is not in use. */
static void inspect_unused(struct server_link *server, usec_t now)
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
	else if (lifetime_close_old(server))
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
		inspect_unused(server_of(link), now);
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

/* A query of ours: it has query_timeout only, since no client can be idle in a transaction. */
static void inspect_lookup(struct server_link *server, usec_t now)
{
	const struct user_config *user = server->link.pool->user->config;
	const struct settings *settings = server->link.pool->registry->process->settings;

	if (is_over(now, server->lookup->started,
		    own_or(user ? user->query_timeout : 0, settings->query_timeout)))
		server_close_for(server, REASON_QUERY_TIMEOUT);
}

/* Its client waits for the answer, which a server gives at once. */
static void inspect_asking(struct server_link *server, usec_t now)
{
	const usec_t limit =
		server->link.pool->registry->process->settings->server_connect_timeout;

	if (limit > 0 && now - server->link.request_time > limit)
		server_close_for(server, REASON_RESET_QUERY_FAILED);
}

/*
 * Is a server to be closed while its client still uses it? Always with replication, since its
 * session might never end; in session mode with server_fast_close, outside of a transaction.
 */
static bool must_close_in_use(const struct server_link *server, const struct settings *settings)
{
	if (!server->close_needed)
		return false;
	return server->replication ||
		(settings->server_fast_close && server_mode(server) == POOL_MODE_SESSION &&
			server->transaction_status == 'I' &&
			requests_is_empty(&server->requests));
}

/*
 * Apply the limits of a running query or transaction; those of the pool's user win over the
 * global ones. They close the client. Its query is canceled on the server, which stays.
 */
static void inspect_active(struct server_link *server, usec_t now)
{
	static const struct user_config none;
	const struct pool *pool = server->link.pool;
	const struct settings *settings = pool->registry->process->settings;
	const struct user_config *own = pool->user->config ? pool->user->config : &none;
	struct client_link *client = client_of(server->link.peer);
	const char status = server->transaction_status;
	const bool between = (status == 'T' || status == 'E' || server_awaits_bind(server)) &&
		requests_is_empty(&server->requests);

	if (must_close_in_use(server, settings))
		server_close_for(server, REASON_DATABASE_CONFIGURATION_CHANGED);
	else if (pool_is_paused(pool) && replication_is_endless(server))
		server_close_for(server,
			pool->registry->process->shutdown == SHUTDOWN_NONE
				? REASON_PAUSE_MODE
				: REASON_SERVER_SHUTTING_DOWN);
	else if (server->replication == REPLICATION_PHYSICAL)
		return; /* has neither queries nor transactions */
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
	else if (server->pins || server->suspected)
		return_if_free(
			server); /* its pins may be over, or what kept it from being asked */
}

void server_upkeep_logins(struct pool *pool, usec_t now)
{
	const struct settings *settings = pool->registry->process->settings;
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_LOGIN], place, next) {
		if (is_over(now, link->connect_time, settings->server_connect_timeout))
			server_login_time_out(server_of(link));
		else
			server_login_check_progress(server_of(link), now);
	}
	/* A server that does not close the connection of a cancel request must not keep it. */
	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_ACTIVE_CANCEL], place, next) {
		if (is_over(now, link->connect_time, settings->cancel_wait_timeout))
			server_close_for(server_of(link), REASON_CANCEL_WAIT_TIMEOUT);
	}
}

/* --- sizes -------------------------------------------------------------------------------- */

/* Close unused servers beyond the pool's size, those unused for the longest time first. */
static void shrink(struct pool *pool)
{
	const int size = pool_size(pool);
	const unsigned most = (unsigned)(size + pool_reserve_size(pool));

	/* pool_size = auto, and not known yet: it may be more. */
	if (size <= 0 || (pool->sizing && pool->auto_size == 0))
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

/* --- one pool ----------------------------------------------------------------------------- */

void server_upkeep_pool(struct pool *pool, usec_t now)
{
	struct link *link, *next;

	inspect_list(pool, SERVERS_USED, now);
	inspect_list(pool, SERVERS_TESTED, now);
	inspect_list(pool, SERVERS_IDLE, now);
	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_ACTIVE], place, next) {
		if (link->state == SERVER_LOOKING_UP)
			inspect_lookup(server_of(link), now);
		else if (link->state == SERVER_ASKING)
			inspect_asking(server_of(link), now);
		else
			inspect_active(server_of(link), now);
	}
	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_BEING_CANCELED], place, next) {
		if (link->state == SERVER_DRAINING)
			draining_inspect(server_of(link), now);
	}
	server_upkeep_logins(pool, now);
	functions_upkeep(pool);
	host_capacity_upkeep(pool);
	shrink(pool);
	if (pool_has_clients(pool))
		pool->last_client = now;
	minimum_fill(pool);
	listening_server_upkeep(pool, now);
	if (pool_wanted_servers(pool) + pool_welcoming_clients(pool) +
			pool_waiting_cancels(pool) >
		0)
		pool_needs_work(pool);
}
