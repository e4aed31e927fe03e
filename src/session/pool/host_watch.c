/* SPDX-License-Identifier: ISC */
#include "session/pool/host_watch.h"

#include <stdio.h>
#include <string.h>

#include "model/host/host_items.h"
#include "model/statistics/reason_facts.h"
#include "session/link/close.h"
#include "session/pool/caps.h"
#include "session/server/host_fit.h"
#include "session/server/host_probe.h"
#include "session/server/host_role.h"
#include "session/server/server_login.h"

/* Between two rounds while clients wait for a host. */
#define HASTY_ROUND (USEC_PER_SEC / 10)

/* A host that has not answered a probe for so long is dead, unless server_connect_timeout is less. */
#define PATIENCE (5 * USEC_PER_SEC)

/* A host that closes its connections sooner than this is not connected to more often. */
#define LEAST_LIFE USEC_PER_SEC

static usec_t now_of(const struct registry *registry)
{
	return loop_now(registry->loop);
}

/* --- which hosts are watched, for which pool ---------------------------------------------- */

/* A pool that clients use, and that may connect. */
static bool may_watch(const struct pool *pool)
{
	const struct process *process = pool->registry->process;

	return host_fit_applies(pool) && pool_has_clients(pool) && !pool_is_paused(pool) &&
		!pool->left_behind && !pool->refused && !pool->database->disabled &&
		process->operation == OPERATION_RUNNING && process->shutdown == SHUTDOWN_NONE &&
		!process->draining && !process->still &&
		process->settings->host_check_interval > 0;
}

/* Clients wait, and the last login for them has failed. */
static bool is_waiting(const struct pool *pool)
{
	return pool_wanted_servers(pool) + pool_welcoming_clients(pool) > 0 && pool->failing;
}

/* --- names -------------------------------------------------------------------------------- */

static struct host *host_of_query(struct resolver_query *query)
{
	return (struct host *)((char *)query - offsetof(struct host, lookup));
}

static void on_resolved(struct resolver_query *query, const struct sockaddr *address,
	socklen_t length, int status)
{
	struct host *name = host_of_query(query);

	(void)address;
	(void)length;
	if (status == RESOLVER_FOUND)
		host_answered(name, 0);
}

/* Each address of the name is a host; one that is old is asked for anew. */
static void find_addresses(struct pool *pool, unsigned n)
{
	struct registry *registry = pool->registry;
	struct host *name = host_items_name(pool, n);
	const struct resolver_name *known;
	const struct host_item item = host_items_nth(pool, n);
	const struct sockaddr *address;
	socklen_t length;

	if (!name)
		return;
	known = resolver_find(registry->resolver, name->name);
	for (size_t i = 0; known && (address = resolver_row_address(known, i, &length)); i++) {
		const struct address found = address_of(address, length);

		hosts_open(&registry->hosts, &item, &found);
	}
	if (!resolver_query_is_waiting(&name->lookup) &&
		(!known || resolver_row_of(registry->resolver, known).left == 0))
		resolver_ask(
			registry->resolver, &name->lookup, name->name, item.port, on_resolved);
}

static void find_hosts(struct pool *pool)
{
	const struct database_config *config = pool->database->config;
	const unsigned count = config->host ? database_config_hosts(config) : 1;

	for (unsigned n = 0; n < count; n++) {
		const struct host_item item = host_items_nth(pool, n);
		struct host *host = NULL;

		find_addresses(pool, n);
		if (!hosts_next(&pool->registry->hosts, &item, NULL))
			hosts_open(&pool->registry->hosts, &item, NULL);
		while ((host = hosts_next(&pool->registry->hosts, &item, host)))
			host->watched = true;
	}
}

/* --- connections -------------------------------------------------------------------------- */

static struct pool *pool_for(struct registry *registry, const struct host *host)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (may_watch(pool) && host_items_have(pool, host))
			return pool;
	}
	return NULL;
}

/* Has each cap of the pool a place left? Clients go before watches. */
static bool have_places(const struct pool *pool)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const unsigned limit = cap_limit(pool, kind);

		if (limit > 0 && cap_servers(cap_of(pool, kind)) + 1 > limit)
			return false;
	}
	return true;
}

static void launch(struct registry *registry, struct host *host)
{
	struct pool *pool = pool_for(registry, host);

	if (!pool || !descriptors_allow_server(registry->process, false) ||
		!caps_allow_watch(pool))
		return;
	host->asked_at = now_of(registry);
	server_login_begin_watch(pool, host, registry->login_owner);
	caps_end_launch(pool);
}

void host_watch_begin(struct server_link *server)
{
	server->link.pool->watch_logins--;
	server_enter(server, SERVER_WATCHING);
	/* The server may have been upgraded, or the user may have got a right. */
	server->at->question = HOST_ASKED_ALL;
	host_probe_send(server);
}

void host_watch_answered(struct server_link *server)
{
	server->at->told_at = loop_now(server->link.stream.loop);
	host_role_lives(server, 0);
	if (!server_is_clean(server))
		server_close_for(server, REASON_TEST_QUERY_FAILED);
}

static bool has_lasted(const struct server_link *server)
{
	const usec_t now = loop_now(server->link.stream.loop);

	return now - server->link.connect_time >= LEAST_LIFE;
}

/*
 * A connection that ends may tell of the end of its host: it is tried again at once, but not if it was
 * closed as soon as it had logged in.
 */
void host_watch_closed(
	struct server_link *server, enum server_state state, const struct failure *why)
{
	struct registry *registry = link_registry(&server->link);
	struct host *host = server->at;

	if (!server->watches)
		return;
	if (state < SERVER_IDLE)
		server->link.pool->watch_logins--;
	if (!host || host->watch != server)
		return;
	host->watch = NULL;
	if (host->failed_since > 0)
		host_role_lost(registry, host);
	else if (state == SERVER_WATCHING && reason_breaks_connection(why->reason) &&
		has_lasted(server))
		registry_ask_host(registry, host);
}

/* --- a round ------------------------------------------------------------------------------ */

static usec_t patience_of(const struct registry *registry)
{
	const usec_t limit = registry->process->settings->server_connect_timeout;

	return limit > 0 && limit < PATIENCE ? limit : PATIENCE;
}

static bool is_answer_due(const struct host *host)
{
	return host->asked_at > host->told_at;
}

/* The host has not answered a probe in time: it hangs, or cannot be reached any more. */
static void give_up(struct registry *registry, struct host *host)
{
	char text[HOST_TEXT_SIZE];

	log_write(LEVEL_WARNING, "host %s does not answer", host_text(host, text));
	host_role_fails(registry, host, "no answer");
	server_close_for(host->watch, REASON_HOST_SILENT);
}

static bool is_due(const struct registry *registry, const struct host *host, bool hasty)
{
	const usec_t interval = registry->process->settings->host_check_interval;
	const usec_t age = now_of(registry) - host->asked_at;

	/* A connection that has ended is opened again at once, one that has failed is not. */
	return host->ask_now || age >= interval ||
		(!host->watch && host->told_at >= host->asked_at && age >= LEAST_LIFE) ||
		(hasty && age >= HASTY_ROUND);
}

/* Its pool may have lost its clients, while others still use the host. */
static bool is_wanted(const struct host *host)
{
	const struct pool *pool = host->watch->link.pool;

	return host->watched && may_watch(pool) && have_places(pool) &&
		!host->watch->close_needed;
}

/* While clients wait, a dead host is tried as often as a pool would try it. */
static bool is_worth(const struct registry *registry, const struct host *host, bool hasty)
{
	const usec_t now = now_of(registry);
	const usec_t retry = registry->process->settings->server_login_retry;

	return !host_is_avoided(host, now) ||
		(hasty && !host->prober && now - host->asked_at >= retry);
}

static void inspect(struct registry *registry, struct host *host, bool hasty)
{
	const usec_t now = now_of(registry);
	const bool due = is_due(registry, host, hasty);

	if (host->watch && !is_wanted(host)) {
		server_close_for(host->watch, REASON_CLOSE_NEEDED);
	} else if (host->watch && host->watch->link.state == SERVER_WATCHING) {
		if (is_answer_due(host) && now - host->asked_at > patience_of(registry))
			give_up(registry, host);
		else if (due && !is_answer_due(host))
			host_probe_send(host->watch);
		else
			return;
	} else if (host->watched && !host->watch && due && is_worth(registry, host, hasty)) {
		launch(registry, host);
	}
	host->ask_now = false;
}

/* Returns whether clients wait for one of the hosts. */
static bool mark_watched(struct registry *registry)
{
	struct host *host;
	struct pool *pool;
	bool hasty = false;

	TAILQ_FOREACH (host, &registry->hosts, in_hosts)
		host->watched = false;
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (!may_watch(pool))
			continue;
		find_hosts(pool);
		hasty = hasty || is_waiting(pool);
	}
	return hasty;
}

static void run(struct deadline *deadline)
{
	host_watch_round(
		(struct registry *)((char *)deadline - offsetof(struct registry, host_watch)));
}

void host_watch_start(struct registry *registry)
{
	registry->host_watch.expire = run;
}

void host_watch_begin_soon(struct pool *pool)
{
	struct registry *registry = pool->registry;

	if (host_fit_applies(pool) && registry->host_watch.expire)
		wheel_set_exact(
			&registry->loop->wheel, &registry->host_watch, now_of(registry));
}

void host_watch_round(struct registry *registry)
{
	struct host *host, *next;
	bool hasty;

	if (registry->process->still)
		return;
	hosts_sweep(&registry->hosts);
	hasty = mark_watched(registry);
	TAILQ_FOREACH_SAFE (host, &registry->hosts, in_hosts, next) {
		if (!host->is_name)
			inspect(registry, host, hasty);
	}
	if (hasty)
		wheel_set_exact(&registry->loop->wheel, &registry->host_watch,
			now_of(registry) + HASTY_ROUND);
}

void host_watch_stop(struct registry *registry)
{
	wheel_remove(&registry->loop->wheel, &registry->host_watch);
	registry->host_watch.expire = NULL;
}
