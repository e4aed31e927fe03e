/* SPDX-License-Identifier: ISC */
#include "session/pool/auto_size.h"

#include <stdio.h>
#include <string.h>

#include "base/cores.h"
#include "model/host/host_items.h"
#include "model/peer.h"
#include "model/shared/all_users.h"

/* How long a refusal of the server counts. */
#define REFUSAL_LIFE (60 * USEC_PER_SEC)

/* More than any server has, so that sums of sizes do not overflow. */
enum { FIXED_MOST = 1000000 };

/* --- the pools that share a host ---------------------------------------------------------- */

static void add_fixed(unsigned *sum, int size, int reserve)
{
	const long long more = (long long)(size > 0 ? size : 0) + (reserve > 0 ? reserve : 0);

	*sum = *sum + more > FIXED_MOST ? FIXED_MOST : *sum + (unsigned)more;
}

/* Count the pools of a database: an entry without a pool is about to get one. */
static void count_pools(const struct database *database, const struct settings *settings,
	unsigned *pools, unsigned *fixed)
{
	const struct pool *pool;

	TAILQ_FOREACH (pool, &database->pools, in_database) {
		if (pool_sizes_itself(pool))
			++*pools;
		else
			add_fixed(fixed, pool_size(pool), pool_reserve_size(pool));
	}
	if (!TAILQ_EMPTY(&database->pools) || database->own_config)
		return;
	if (database_configured_size(database, settings) == POOL_SIZE_AUTO)
		++*pools;
	else
		add_fixed(fixed, database_pool_size(database, settings),
			database_reserve_pool_size(database, settings));
}

static void count_at_hosts(const struct registry *registry, const struct database *database)
{
	unsigned pools = 0, fixed = 0, n = 0;
	struct host *host = NULL;

	count_pools(database, registry->process->settings, &pools, &fixed);
	while ((host = host_items_next(registry, database->config, &n, host)) != NULL) {
		host->capacity.pools += pools;
		add_fixed(&host->capacity.fixed, (int)fixed, 0);
	}
}

/* The limits of roles and databases are divided among their pools. */
static void count_by_owner(const struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		pool->user->auto_pools = pool->database->auto_pools = 0;
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		pool->user->auto_pools += pool->sizing != NULL;
		pool->database->auto_pools += pool->sizing != NULL;
	}
}

/* Count all pools at the hosts that this registry knows, also those of other workers. */
static void count_in(const struct registry *registry)
{
	const struct database *database, *next;
	struct host *host;

	TAILQ_FOREACH (host, &registry->hosts, in_hosts)
		host->capacity.pools = host->capacity.fixed = 0;
	HASH_ITER (by_name, registry->process->directory.databases, database, next) {
		if (!database->console)
			count_at_hosts(registry, database);
	}
}

static void count_all(const struct process *process)
{
	const struct registry *each;

	EACH_REGISTRY (each, process)
		count_in(each);
}

/* --- one pool ----------------------------------------------------------------------------- */

/* A part of a limit that several pools share. */
static unsigned part_of(unsigned limit, unsigned pools, unsigned processes)
{
	const unsigned part = limit / (pools * processes);

	return limit > 0 && part == 0 ? 1 : part;
}

/* The lowest of max_db_connections, max_user_connections and max_server_connections; 0: none. */
static unsigned lowest_cap(const struct pool *pool)
{
	unsigned lowest = 0;

	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const unsigned limit = cap_limit(pool, kind);

		if (limit > 0 && (lowest == 0 || limit < lowest))
			lowest = limit;
	}
	return lowest;
}

/* What a worker has read in files of the server counts for all: another one's role may not read them. */
static const struct host *with_cores(const struct process *process, const struct host *host)
{
	const struct host *found = host;
	const struct registry *each;

	if (process->workers < 2 || host->capacity.cores_from == CORES_OF_SERVER)
		return host;
	EACH_REGISTRY (each, process) {
		const struct host *own = hosts_like(&each->hosts, host);

		if (own && own->capacity.cores_from == CORES_OF_SERVER &&
			(found == host || own->capacity.told_at > found->capacity.told_at))
			found = own;
	}
	return found;
}

static void take_cores(
	struct sizing_facts *facts, const struct pool *pool, const struct host *host)
{
	const int configured = pool->database->config->host_cores;
	const struct host *known = with_cores(pool->registry->process, host);

	facts->cores = known->capacity.cores;
	facts->cores_from = known->capacity.cores_from;
	if (configured <= 0)
		return;
	facts->cores = configured < CORES_MOST ? (unsigned)configured : CORES_MOST;
	facts->cores_from = CORES_CONFIGURED;
}

static struct sizing_facts facts_of(
	const struct pool *pool, const struct host *host, unsigned processes)
{
	const struct process *process = pool->registry->process;
	const struct pool_sizing *own = pool->sizing;
	const int reserve = pool_reserve_size(pool);
	struct sizing_facts facts = {
		.max_connections = host->capacity.max_connections,
		.reserved = host->capacity.reserved,
		.fixed = host->capacity.fixed,
		/* The host of a server that a RELOAD has taken from the list has no pool. */
		.pools = host->capacity.pools > 0 ? host->capacity.pools : 1,
		.processes = processes,
		.reserve = reserve > 0 ? (unsigned)reserve : 0,
		.most = (unsigned)process->settings->auto_pool_max,
		.role_limit = part_of(own->role_limit,
			all_users_sum(process, pool->user).auto_pools, processes),
		.database_limit =
			part_of(own->database_limit, pool->database->auto_pools, processes),
		.cap = lowest_cap(pool),
		.refused_at = loop_now(pool->registry->loop) < own->refused_until
			? own->refused_at
			: 0,
	};

	take_cores(&facts, pool, host);
	return facts;
}

/* Try the pool's size by this host: the smallest one stays. */
static void consider(struct pool *pool, const struct host *host, unsigned processes)
{
	struct pool_sizing *own = pool->sizing;
	const struct sizing_facts facts = facts_of(pool, host, processes);
	const struct sizing sizing = sizing_compute(&facts);

	if (own->sizing.size > 0 && own->sizing.size <= sizing.size)
		return;
	own->facts = facts;
	own->sizing = sizing;
	host_text(host, own->host);
}

/* Servers that are about to log in count too: the first one is asked before that. */
static void consider_hosts(struct pool *pool, unsigned processes)
{
	struct pool_walk walk = pool_walk_servers(pool);
	const struct pool_sizing before = *pool->sizing;
	const struct host *last = NULL;
	const struct link *link;

	pool->sizing->sizing.size = 0;
	while ((link = pool_walk_next(&walk)) != NULL) {
		const struct host *host = ((const struct server_link *)link)->at;

		if (!host || host == last || host->capacity.told_at == 0)
			continue;
		consider(pool, host, processes);
		last = host;
	}
	if (pool->sizing->sizing.size == 0)
		*pool->sizing = before;
}

static void log_size(const struct pool *pool)
{
	const struct log_likeness likeness = {
		.kind = "pool_size = auto", .about = pool->database->name};
	struct buffer why = {0};

	sizing_explain(&pool->sizing->sizing, &pool->sizing->facts, &why);
	log_write_repeated(LEVEL_LOG, NULL, &likeness,
		"pool %s/%s: pool_size = auto is %d: %.*s", pool->label, pool->user->name,
		pool->auto_size, (int)why.length, why.length > 0 ? (const char *)why.data : "");
	buffer_free(&why);
}

static void size_pool(struct pool *pool, unsigned processes)
{
	const int before = pool->auto_size;

	consider_hosts(pool, processes);
	if (pool->sizing->sizing.size == 0 || pool->sizing->sizing.size == before)
		return;
	pool->auto_size = pool->sizing->sizing.size;
	log_size(pool);
	/* Clients may wait that fit in now; servers beyond the size are closed when unused. */
	if (pool->auto_size > before && pool_wanted_servers(pool) > 0)
		pool_needs_work(pool);
}

static void size_database(struct database *database)
{
	const struct pool *pool;
	int largest = 0;

	TAILQ_FOREACH (pool, &database->pools, in_database) {
		if (pool->auto_size > largest)
			largest = pool->auto_size;
	}
	if (largest > 0)
		database->auto_size = largest;
}

/* --- all pools ---------------------------------------------------------------------------- */

/* Between two rounds without a reason. */
#define ROUND USEC_PER_SEC

/* The registry is the first worker's, and the others are stopped. */
static void size_all(struct registry *registry)
{
	struct process *process = registry->process;
	struct database *database, *next;
	struct pool *pool;
	unsigned processes;

	SHARED_SET(process->sizes_pools, false);
	process->sized_at = loop_now(registry->loop);
	count_by_owner(registry);
	count_all(process);
	processes = peer_processes(registry);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (!pool->sizing)
			continue;
		SHARED_SET(process->sizes_pools, true);
		size_pool(pool, processes);
	}
	HASH_ITER (by_name, registry->process->directory.databases, database, next)
		size_database(database);
}

void auto_size_upkeep(struct registry *registry)
{
	const struct process *process = registry->process;

	if (SHARED_GET(process->sizes_pools) &&
		loop_now(registry->loop) - process->sized_at >= ROUND)
		size_all(registry);
}

/* --- asking for a round ------------------------------------------------------------------- */

/* The first worker has got the mail of another one. */
static void deliver(struct mail *mail, struct loop *loop)
{
	struct registry *sender =
		(struct registry *)((char *)mail - offsetof(struct registry, sizing_mail));
	struct registry *registry = loop->owner;

	/* Release: this thread is done with the mail when the sender sends it again. */
	atomic_store_explicit(&sender->sizing_sent, false, memory_order_release);
	loop_defer_work(loop, &registry->sizing_task, auto_size_round);
}

static void ask_first_worker(struct registry *registry)
{
	/* Acquire: pairs with deliver(). */
	if (atomic_load_explicit(&registry->sizing_sent, memory_order_acquire))
		return;
	/* Relaxed: mailbox_put() publishes it. */
	atomic_store_explicit(&registry->sizing_sent, true, memory_order_relaxed);
	registry->sizing_mail.deliver = deliver;
	crew_post(registry->process->registries[0]->loop, &registry->sizing_mail);
}

void auto_size_round(struct loop_task *task)
{
	struct registry *registry =
		(struct registry *)((char *)task - offsetof(struct registry, sizing_task));

	if (registry->number > 0) {
		ask_first_worker(registry);
		return;
	}
	process_stop_others(registry->process);
	size_all(registry);
	process_let_others_run(registry->process);
}

/* PostgreSQL: too_many_connections. */
void auto_size_note_failure(struct pool *pool, const struct failure *why)
{
	const unsigned servers = pool_connected_servers(pool);

	if (!pool->sizing || strcmp(why->sqlstate, "53300") != 0)
		return;
	pool->sizing->refused_at = servers > 0 ? servers : 1;
	pool->sizing->refused_until = loop_now(pool->registry->loop) + REFUSAL_LIFE;
	/* The other workers cannot be stopped in the middle of this. */
	if (pool->registry->process->workers > 1)
		loop_defer_work(
			pool->registry->loop, &pool->registry->sizing_task, auto_size_round);
	else
		size_all(pool->registry);
}
