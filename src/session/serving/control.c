/* SPDX-License-Identifier: ISC */
#include "session/serving/control.h"

#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/notify/channels.h"
#include "session/pool/peering.h"
#include "session/serving/suspend.h"

#define BIT(list) (1u << SERVERS_##list)

/* Servers that are not in use: a pause closes them at once. */
static const unsigned unused =
	BIT(LOGIN) | BIT(IDLE) | BIT(USED) | BIT(LISTENING) | BIT(WATCHING);

/* Servers in use, which a pause waits for. Cancel connections close by themselves. */
static const unsigned in_use = BIT(ACTIVE) | BIT(TESTED) | BIT(BEING_CANCELED);

/* Returns true if a command for this database (NULL: all) includes the pool. */
static bool is_selected(const struct pool *pool, const struct database *database)
{
	return !pool->database->console && (!database || pool->database == database);
}

/*
 * The next of the pools that a command for this database (NULL: all) includes; after NULL the
 * first one. Returns NULL after the last one.
 */
static const struct pool *next_pool(const struct registry *registry,
	const struct database *database, const struct pool *pool)
{
	if (database && database->console)
		return NULL;
	if (database)
		return pool ? TAILQ_NEXT(pool, in_database) : TAILQ_FIRST(&database->pools);
	do
		pool = pool ? TAILQ_NEXT(pool, in_directory)
			    : TAILQ_FIRST(&registry->process->directory.pools);
	while (pool && pool->database->console);
	return pool;
}

static void close_clients(struct link_list *list, enum reason reason)
{
	struct link *link;

	while ((link = TAILQ_FIRST(list)) != NULL)
		client_close_for(client_of(link), reason);
}

/* Close the servers in these lists. */
static void close_servers(struct pool *pool, unsigned lists, enum reason reason)
{
	struct link *link;

	for (unsigned i = 0; i < SERVER_LISTS; i++) {
		while ((lists & 1u << i) && (link = TAILQ_FIRST(&pool->servers[i])) != NULL)
			server_close_for(server_of(link), reason);
	}
}

void control_close_unused(struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (pool->database->console || !pool_is_paused(pool))
			continue;
		close_servers(pool, unused, REASON_PAUSE_MODE);
		pool_need_has_changed(pool);
	}
}

static unsigned count_connected(
	const struct registry *registry, const struct database *database)
{
	const struct pool *pool = NULL;
	unsigned count = 0;

	while ((pool = next_pool(registry, database, pool)) != NULL)
		count += pool_connected_servers(pool);
	return count;
}

static void pause_database(struct registry *registry, struct database *database)
{
	database->paused_servers = count_connected(registry, database);
	database->paused = true;
	database->paused_at = loop_now(registry->loop);
}

static void set_operation(struct registry *registry, enum operation operation)
{
	registry->process->operation = operation;
	registry->process->operation_servers =
		operation == OPERATION_PAUSED ? count_connected(registry, NULL) : 0;
	registry->process->operation_at = loop_now(registry->loop);
}

void control_pause(struct registry *registry, struct database *database)
{
	if (database) {
		pause_database(registry, database);
	} else {
		suspend_end(registry); /* a shutdown, which may come at any time */
		set_operation(registry, OPERATION_PAUSED);
	}
	control_close_unused(registry);
}

/* --- what a command waits for ------------------------------------------------------------- */

static void count_server(struct busy_servers *busy, const struct server_link *server)
{
	const struct link *peer = server->link.peer;
	const struct client_link *client = (const struct client_link *)peer;
	usec_t since;

	busy->servers++;
	if (!peer)
		return;
	busy->transactions += server->transaction_status != 'I';
	since = client->transaction_start ? client->transaction_start : peer->request_time;
	if (!busy->longest || since < busy->since) {
		busy->longest = client;
		busy->since = since;
	}
}

/*
 * Count the servers in these lists, of the selected pools; only_retired: only those.
 */
static struct busy_servers count_servers(const struct registry *registry,
	const struct database *database, unsigned lists, bool only_retired)
{
	struct busy_servers busy = {0};
	const struct pool *pool = NULL;
	struct link *link;

	while ((pool = next_pool(registry, database, pool)) != NULL) {
		for (unsigned i = 0; i < SERVER_LISTS; i++) {
			TAILQ_FOREACH (link, &pool->servers[i], place) {
				if ((lists & 1u << i) &&
					(!only_retired || server_of(link)->close_needed))
					count_server(&busy, server_of(link));
			}
		}
	}
	return busy;
}

struct busy_servers control_count_busy(
	const struct registry *registry, const struct database *database)
{
	return count_servers(registry, database, in_use, false);
}

struct busy_servers control_count_retired(
	const struct registry *registry, const struct database *database)
{
	return count_servers(registry, database, ~0u, true);
}

bool control_pause_is_done(const struct registry *registry, const struct database *database)
{
	const struct pool *pool = NULL;

	while ((pool = next_pool(registry, database, pool)) != NULL) {
		for (unsigned i = 0; i < SERVER_LISTS; i++) {
			if ((in_use & 1u << i) && pool->server_count[i] > 0)
				return false;
		}
	}
	return true;
}

/* --- commands ----------------------------------------------------------------------------- */

void control_resume(struct registry *registry, struct database *database)
{
	struct pool *pool;

	if (database)
		database->paused = false;
	else if (registry->process->operation == OPERATION_SUSPENDED)
		suspend_end(registry);
	else
		set_operation(registry, OPERATION_RUNNING);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (is_selected(pool, database))
			pool_needs_work(pool);
	}
}

void control_reconnect(struct registry *registry, struct database *database)
{
	control_retire(registry, database, SERVER_CLOSED_RECONNECT);
}

void control_retire(
	struct registry *registry, struct database *database, enum server_closing cause)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (!is_selected(pool, database))
			continue;
		pool_mark_close_needed(pool, cause);
		session_functions_forget(pool->database);
		close_servers(pool, BIT(LOGIN), REASON_CONNECT_STRING_CHANGED);
		pool_needs_work(pool);
	}
}

bool control_is_reconnecting(const struct registry *registry, const struct database *database)
{
	return control_count_retired(registry, database).servers > 0;
}

/*
 * Waiting clients are closed first, or they would get the servers that become free. Servers are
 * closed with their clients, so that none returns to the pool; cancel connections last, since
 * their targets are reserved for them.
 */
static void empty_pool(struct pool *pool, enum reason reason)
{
	const struct failure why = failure_of(reason);

	lookup_refuse(pool, &why);
	close_clients(&pool->waiting, reason);
	close_clients(&pool->welcoming, reason);
	close_clients(&pool->cancels, reason);
	close_servers(pool, ~BIT(ACTIVE_CANCEL), reason);
	close_servers(pool, BIT(ACTIVE_CANCEL), reason);
	close_clients(&pool->clients, reason);
}

static void kill_database(struct registry *registry, struct database *database, bool paused)
{
	struct pool *pool, *next;

	if (paused)
		pause_database(registry, database);
	TAILQ_FOREACH (pool, &database->pools, in_database)
		empty_pool(pool, REASON_DATABASE_REMOVED);
	TAILQ_FOREACH_SAFE (pool, &database->pools, in_database, next) {
		/* The last hand-over may just have ended, and the pool gets no turn any more. */
		channels_release(pool);
		registry_drop_pool(pool);
	}
}

void control_kill(struct registry *registry, struct database *database, bool paused)
{
	struct database *each, *next;

	if (database) {
		kill_database(registry, database, paused);
		return;
	}
	HASH_ITER (by_name, registry->process->directory.databases, each, next) {
		if (!each->console && !TAILQ_EMPTY(&each->pools))
			kill_database(registry, each, paused);
	}
}

static void close_logins(const struct process *process, enum reason reason)
{
	struct registry *each;

	EACH_REGISTRY (each, process)
		close_clients(&each->logins, reason);
}

void control_close_pools(struct registry *registry, enum reason reason)
{
	struct pool *pool;

	close_logins(registry->process, reason);
	peering_drop_all(registry, reason);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (!pool->database->console)
			empty_pool(pool, reason);
	}
}

void control_close_all(struct registry *registry, enum reason reason)
{
	struct pool *pool;

	close_logins(registry->process, reason);
	peering_drop_all(registry, reason);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		empty_pool(pool, reason);
}

/* Compares the id as SHOW CLIENTS has it, cut to 31 bits. */
static bool has_id(const struct link *link, uint64_t id)
{
	return link_number(link) == id;
}

static struct client_link *find_client(const struct pool *pool, uint64_t id)
{
	struct pool_walk walk = pool_walk_clients(pool);
	struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		if (has_id(link, id))
			return client_of(link);
	}
	return NULL;
}

/* SHOW CLIENTS has clients that wait for a look-up too; they are in no pool. */
static struct client_link *find_looking_up(const struct process *process, uint64_t id)
{
	const struct registry *each;
	struct link *link;

	EACH_REGISTRY (each, process) {
		TAILQ_FOREACH (link, &each->logins, place) {
			if (link->state == CLIENT_LOOKING_UP && has_id(link, id))
				return client_of(link);
		}
	}
	return NULL;
}

bool control_kill_client(struct registry *registry, uint64_t id)
{
	struct client_link *client = find_looking_up(registry->process, id);
	const struct pool *pool;
	const struct peer *peer;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (!client)
			client = find_client(pool, id);
	}
	TAILQ_FOREACH (peer, &registry->process->peers, entry) {
		if (!client)
			client = find_client(peer->pool, id);
	}
	if (client)
		client_close_for(client, REASON_ADMIN_FORCED_DISCONNECT);
	return client != NULL;
}
