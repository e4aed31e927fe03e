/* SPDX-License-Identifier: ISC */
#include "session/server/host_role.h"

#include <string.h>

#include "model/host/host_items.h"
#include "model/shared/host_news.h"
#include "model/statistics/reason_facts.h"
#include "session/link/close.h"
#include "session/server/host_fit.h"
#include "session/server/host_succession.h"

/* --- retiring ----------------------------------------------------------------------------- */

/* To write at a primary after another was promoted would be lost: not even the end is waited for. */
static bool must_end_now(const struct server_link *server)
{
	return server->at->superseded && server->link.state != SERVER_WATCHING;
}

static void retire_server(struct server_link *server)
{
	if (must_end_now(server))
		server_close_for(server, REASON_SERVER_SUPERSEDED);
	else if (!server->close_needed)
		server_retire(server, SERVER_CLOSED_ROLE);
}

/* A preference keeps the servers of a pool that has nothing better. */
static void retire_of_pool(struct pool *pool)
{
	const enum host_fit best = host_fit_best(pool);
	struct pool_walk walk = pool_walk_servers(pool);
	struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		struct server_link *server = server_of(link);

		if (!server->at || server->login || server->watches || server->replication)
			continue;
		if (host_fit_is_bad(pool, host_fit_of_server(server), best))
			retire_server(server);
	}
}

void host_role_retire(struct database *database)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &database->pools, in_database)
		retire_of_pool(pool);
}

void host_role_retire_all(const struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (host_fit_applies(pool))
			retire_of_pool(pool);
	}
}

/* A standby may be too far behind now, or not any more: of which few databases want to know. */
void host_role_retire_lagging(const struct registry *registry, const struct host *host)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (database_max_standby_lag(pool->database, registry->process->settings) !=
				0 &&
			host_fit_applies(pool) && host_items_have(pool, host))
			retire_of_pool(pool);
	}
}

void host_role_reconfigured(struct registry *registry)
{
	host_succession_reconfigured(registry);
	host_role_retire_all(registry);
}

/* --- news of a host ----------------------------------------------------------------------- */

/* Pools that wait do not wait for server_login_retry, nor keep servers of the second choice. */
void host_role_wake(struct registry *registry)
{
	struct pool *pool;

	host_role_retire_all(registry);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (!host_fit_applies(pool) ||
			pool_wanted_servers(pool) + pool_welcoming_clients(pool) == 0)
			continue;
		pool->last_launch = 0;
		pool_needs_work(pool);
	}
}

static void take_answer(
	struct registry *registry, struct host *host, const struct host_news *news)
{
	if (host->failed_since == 0 || host->failed_since > news->at)
		return;
	host_answered(host, 0);
	if (host->watched)
		host_role_wake(registry);
}

void host_role_lives(struct server_link *server, usec_t took)
{
	struct registry *registry = link_registry(&server->link);
	struct host *host = server->at;
	const bool was_dead = host && host->failed_since > 0;
	char text[HOST_TEXT_SIZE];

	if (!host)
		return;
	host_answered(host, took);
	if (!was_dead)
		return;
	host_news_send(registry, host, take_answer);
	if (!host->watched)
		return;
	link_log(&server->link, LEVEL_LOG, "host %s answers again", host_text(host, text));
	host_role_wake(registry);
}

/* Each worker that noticed it has chosen a pause: the longest one holds for all. */
static void take_failure(
	struct registry *registry, struct host *host, const struct host_news *news)
{
	(void)registry;
	if (host->failed_since > 0 && host->next_try >= news->next_try)
		return;
	if (host->failed_since == 0)
		host->failed_since = news->failed_since;
	host->next_try = news->next_try;
	if (host->failures < news->failures)
		host->failures = news->failures;
	memcpy(host->error, news->error, sizeof(host->error));
}

void host_role_fails(struct registry *registry, struct host *host, const char *error)
{
	host_failed(host, error, loop_now(registry->loop), &registry->loop->random);
	host_news_send(registry, host, take_failure);
}

static bool has_other_hosts(const struct pool *pool, const struct host *host)
{
	const unsigned count = database_config_hosts(pool->database->config);
	const struct host_item item = host_items_nth(pool, 0);
	const struct host *each = NULL;

	while ((each = hosts_next(&pool->registry->hosts, &item, each)) != NULL) {
		if (each != host && !each->is_name)
			return true;
	}
	return count > 1;
}

void host_role_lost(struct registry *registry, struct host *host)
{
	struct pool *pool;

	if (host->role == HOST_ROLE_PRIMARY)
		host_succession_judge(registry, host, false);
	host_role_retire_all(registry);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		struct pool_walk walk = pool_walk_servers(pool);
		struct link *link;

		if (!host_fit_applies(pool) || !has_other_hosts(pool, host))
			continue;
		while ((link = pool_walk_next(&walk)) != NULL) {
			if (server_of(link)->at == host && !server_of(link)->login)
				server_retire(server_of(link), SERVER_CLOSED_ROLE);
		}
	}
}

/* --- a doubt ------------------------------------------------------------------------------ */

/* Clients can cause a doubt often: by writing in transactions that they began as read-only. */
#define DOUBT_PAUSE USEC_PER_SEC

static void doubt_servers(struct pool *pool, const struct host *host)
{
	struct pool_walk walk = pool_walk_servers(pool);
	struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		struct server_link *server = server_of(link);

		if (server->at != host || server->login || server->watches ||
			server->replication)
			continue;
		server->role_doubted = true;
		if (link->state == SERVER_IDLE)
			server_enter(server, SERVER_STALE);
	}
}

/* Returns false if that was done just now. */
static bool doubt(struct registry *registry, struct host *host)
{
	struct pool *pool;

	if (loop_now(registry->loop) - host->doubted_at < DOUBT_PAUSE)
		return false;
	host->doubted_at = loop_now(registry->loop);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (host_fit_applies(pool))
			doubt_servers(pool, host);
	}
	registry_ask_host(registry, host);
	return true;
}

static void take_doubt(
	struct registry *registry, struct host *host, const struct host_news *news)
{
	(void)news;
	doubt(registry, host);
}

void host_role_doubt(struct server_link *server)
{
	struct registry *registry = link_registry(&server->link);

	if (server->at && doubt(registry, server->at))
		host_news_send(registry, server->at, take_doubt);
}

void host_role_connection_ended(
	struct server_link *server, enum server_state state, const struct failure *why)
{
	if (server->at && !server->watches && state >= SERVER_IDLE &&
		state <= SERVER_CHECKING && reason_breaks_connection(why->reason) &&
		host_fit_applies(server->link.pool))
		host_role_doubt(server);
}
