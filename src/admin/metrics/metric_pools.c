/* SPDX-License-Identifier: ISC */
/* Metrics of pools and databases. */
#include <stdio.h>
#include <string.h>

#include "admin/metrics/metric_sources.h"
#include "model/statistics/client_group.h"
#include "model/statistics/pool_figures.h"
#include "session/notify/channels.h"
#include "wire/pin_causes.h"

static void add_pool_labels(struct metric_samples *samples, const struct pool *pool)
{
	metric_samples_label(samples, "database", pool->label);
	metric_samples_label(samples, "user", pool->user->name);
}

/* --- pools -------------------------------------------------------------------------------- */

struct pool_figures metric_figures_of_pool(const struct pool *pool, usec_t now)
{
	const unsigned *clients = pool->client_count, *servers = pool->server_count;
	const unsigned listening = servers[SERVERS_LISTENING];
	const bool is_used = channels_are_in_use(pool);

	return (struct pool_figures){
		.client_active = (int64_t)clients[CLIENT_IDLE] + clients[CLIENT_PAIRED] +
			clients[CLIENT_CONSOLE],
		.client_active_cancel = clients[CLIENT_CANCEL_SENT],
		.client_waiting = pool_waiting_clients(pool),
		.client_waiting_cancel = clients[CLIENT_CANCEL_WAITING],
		.server_active = (int64_t)servers[SERVERS_ACTIVE] + (is_used ? listening : 0),
		.server_active_cancel = servers[SERVERS_ACTIVE_CANCEL],
		.server_being_canceled = servers[SERVERS_BEING_CANCELED],
		.server_idle = (int64_t)servers[SERVERS_IDLE] + (is_used ? 0 : listening),
		.server_used = servers[SERVERS_USED],
		.server_testing = servers[SERVERS_TESTED],
		.server_login = servers[SERVERS_LOGIN],
		.longest_wait = pool_longest_wait(pool, now),
	};
}

static void collect_pools(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct pool *pool;

	(void)detail;
	TAILQ_FOREACH (pool, &context->registry->process->directory.pools, in_directory) {
		const struct pool_figures figures = metric_figures_of_pool(pool, context->now);

		add_pool_labels(samples, pool);
		metric_samples_add(samples, &figures);
	}
}

const struct metric_source metric_pools = {collect_pools, sizeof(struct pool_figures), NULL};

static void collect_capacity(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct pool *pool;

	(void)detail;
	TAILQ_FOREACH (pool, &context->registry->process->directory.pools, in_directory) {
		const struct capacity_figures figures = {
			.size = pool_size(pool),
			.reserve_in_use = pool_reserve_in_use(pool),
			.waiters_limit = pool_max_waiters(pool),
			.pinned = pool->pinned,
			.channels = pool->hub ? pool->hub->count : 0,
			.subscriptions = pool->hub ? pool->hub->subscriptions : 0,
			.notifications = (int64_t)pool->notifications,
			.notify_overflows = (int64_t)pool->notify_overflows,
			.listening_losses = (int64_t)pool->listening_losses,
			.notified = (int64_t)pool->notified,
			.oldest_transaction = pool_oldest_transaction(pool, context->now),
			.oldest_idle_transaction =
				pool_oldest_idle_transaction(pool, context->now),
		};

		add_pool_labels(samples, pool);
		metric_samples_add(samples, &figures);
	}
}

const struct metric_source metric_capacity = {
	collect_capacity, sizeof(struct capacity_figures), NULL};

/* A sample for each reason that a pool has counted. */
static void collect_unsent(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct pool *pool;

	(void)detail;
	TAILQ_FOREACH (pool, &context->registry->process->directory.pools, in_directory) {
		for (unsigned i = 0; i < UNSENT_ENDINGS; i++) {
			const struct metric_number figures = {(int64_t)pool->unsent[i]};

			if (figures.number == 0)
				continue;
			add_pool_labels(samples, pool);
			metric_samples_label(samples, "reason", unsent_ending_labels[i]);
			metric_samples_add(samples, &figures);
		}
	}
}

const struct metric_source metric_unsent = {collect_unsent, sizeof(struct metric_number), NULL};

/* A sample for each cause that made queries of a pool slow. */
static void collect_slow(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct pool *pool;

	(void)detail;
	TAILQ_FOREACH (pool, &context->registry->process->directory.pools, in_directory) {
		for (unsigned i = 0; i < SLOW_CAUSES; i++) {
			const struct metric_number figures = {(int64_t)pool->slow[i]};

			if (figures.number == 0)
				continue;
			add_pool_labels(samples, pool);
			metric_samples_label(samples, "cause", slow_cause_labels[i]);
			metric_samples_add(samples, &figures);
		}
	}
}

const struct metric_source metric_slow = {collect_slow, sizeof(struct metric_number), NULL};

/* A sample for each cause for which servers of a pool were pinned. */
static void collect_pins(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct pool *pool;

	(void)detail;
	TAILQ_FOREACH (pool, &context->registry->process->directory.pools, in_directory) {
		for (unsigned i = 0; i < TOPIC_BITS; i++) {
			const struct metric_number figures = {(int64_t)pool->pins[i]};

			if (figures.number == 0)
				continue;
			add_pool_labels(samples, pool);
			metric_samples_label(
				samples, "cause", pin_causes_name((session_topics)(1u << i)));
			metric_samples_add(samples, &figures);
		}
	}
}

const struct metric_source metric_pins = {collect_pins, sizeof(struct metric_number), NULL};

/* --- traffic ------------------------------------------------------------------------------ */

static struct totals totals_of(const struct database *database)
{
	const struct pool *pool;
	struct totals sum = {0};

	TAILQ_FOREACH (pool, &database->pools, in_database)
		totals_add(&sum, &pool->stats.current);
	return sum;
}

static struct traffic_figures traffic_of(const struct totals *totals)
{
	return (struct traffic_figures){
		.queries = (int64_t)totals->queries,
		.query_time = (int64_t)totals->query_time,
		.received = (int64_t)totals->received,
		.sent = (int64_t)totals->sent,
		.wait_time = (int64_t)totals->wait_time,
		.transactions = (int64_t)totals->transactions,
		.transaction_time = (int64_t)totals->transaction_time,
		.client_parses = (int64_t)totals->client_parses,
		.server_parses = (int64_t)totals->server_parses,
		.binds = (int64_t)totals->binds,
		.assignments = (int64_t)totals->assignments,
	};
}

static void collect_traffic(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct database *database, *next;

	(void)detail;
	HASH_ITER (by_name, context->registry->process->directory.databases, database, next) {
		const struct totals totals = totals_of(database);
		const struct traffic_figures figures = traffic_of(&totals);

		if (TAILQ_EMPTY(&database->pools))
			continue;
		metric_samples_label(samples, "database", database->name);
		metric_samples_add(samples, &figures);
	}
}

const struct metric_source metric_traffic = {
	collect_traffic, sizeof(struct traffic_figures), NULL};

/* --- databases ---------------------------------------------------------------------------- */

static void add_database_labels(struct metric_samples *samples, const struct database *database,
	const struct settings *settings)
{
	const struct database_config *config = database->config;
	char port[16];

	snprintf(port, sizeof(port), "%d",
		database->console ? settings->listen_port : config->port);
	metric_samples_label(samples, "name", database->name);
	metric_samples_label(samples, "host", config->host);
	metric_samples_label(samples, "port", port);
	metric_samples_label(samples, "database", config->dbname);
	metric_samples_label(samples, "force_user", config->user);
	metric_samples_label(samples, "pool_mode",
		config->pool_mode == POOL_MODE_INHERIT ? NULL
						       : pool_mode_name(config->pool_mode));
}

static void add_database(struct metric_samples *samples, const struct database *database,
	const struct settings *settings)
{
	const struct database_figures figures = {
		.pool_size = database_pool_size(database, settings),
		.reserve_pool = database_reserve_pool_size(database, settings),
		.max_connections = database_max_servers(database, settings),
		.current_connections = database->cap.servers,
		.paused = database->paused,
		.disabled = database->disabled,
	};

	add_database_labels(samples, database, settings);
	metric_samples_add(samples, &figures);
}

static void collect_databases(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct database *database, *next;

	(void)detail;
	HASH_ITER (by_name, context->registry->process->directory.databases, database, next) {
		/* As in SHOW DATABASES: an automatic database that is idle is left out. */
		if (!database->own_config || database->idle_since == 0)
			add_database(samples, database, context->registry->process->settings);
	}
}

const struct metric_source metric_databases = {
	collect_databases, sizeof(struct database_figures), NULL};

/* --- clients by application --------------------------------------------------------------- */

/*
 * The clients of the group in all states that are shown by the same word; 0 if an earlier state
 * has that word, so that each word has one sample.
 */
static unsigned count_alike(const struct client_group *group,
	const char *const words[CLIENT_STATES], unsigned state)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CLIENT_STATES; i++) {
		if (strcmp(words[i], words[state]) != 0)
			continue;
		if (i < state)
			return 0;
		count += group->clients[i];
	}
	return count;
}

static void add_group(struct metric_samples *samples, const struct pool *pool,
	const struct client_group *group, const char *const words[CLIENT_STATES])
{
	for (unsigned state = 0; state < CLIENT_STATES; state++) {
		const struct metric_number figures = {count_alike(group, words, state)};

		if (figures.number == 0)
			continue;
		add_pool_labels(samples, pool);
		metric_samples_label(samples, "application_name", group->application_name);
		metric_samples_label(samples, "state", words[state]);
		metric_samples_add(samples, &figures);
	}
}

static void collect_client_groups(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const char *words[CLIENT_STATES];
	const struct client_group *group;
	const struct pool *pool;

	(void)detail;
	for (unsigned i = 0; i < CLIENT_STATES; i++) {
		const struct client_link in_state = {.link.state = (uint8_t)i};

		words[i] = client_console_state(&in_state);
	}
	TAILQ_FOREACH (pool, &context->registry->process->directory.pools, in_directory) {
		for (group = pool->groups; group; group = group->next)
			add_group(samples, pool, group, words);
	}
}

const struct metric_source metric_client_groups = {
	collect_client_groups, sizeof(struct metric_number), NULL};

/* --- hosts of servers --------------------------------------------------------------------- */

/* Is the host in the list before? A host that is listed twice has one sample. */
static bool stands_before(const struct database_config *config, unsigned host)
{
	size_t length, other_length;
	const char *name = database_config_host(config, host, &length);

	for (unsigned i = 0; i < host; i++) {
		const char *other = database_config_host(config, i, &other_length);

		if (length == other_length && memcmp(name, other, length) == 0 &&
			database_config_port(config, i) == database_config_port(config, host))
			return true;
	}
	return false;
}

static void add_hosts(struct metric_samples *samples, const struct database *database)
{
	const struct database_config *config = database->config;
	const unsigned hosts = database_config_hosts(config);
	char port[16], host[256];
	bool up;

	for (unsigned i = 0; i < (hosts > 0 ? hosts : 1); i++) {
		size_t length = 0;
		const char *name = hosts > 0 ? database_config_host(config, i, &length) : "";
		struct metric_number figures;

		if ((i > 0 && stands_before(config, i)) ||
			!counters_host_is_known(database, i, &up))
			continue;
		figures.number = up;
		snprintf(host, sizeof(host), "%.*s", (int)length, name);
		snprintf(port, sizeof(port), "%u", database_config_port(config, i));
		metric_samples_label(samples, "database", database->name);
		metric_samples_label(samples, "host", host);
		metric_samples_label(samples, "port", port);
		metric_samples_add(samples, &figures);
	}
}

static void collect_hosts(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct database *database, *next;

	(void)detail;
	HASH_ITER (by_name, context->registry->process->directory.databases, database, next)
		add_hosts(samples, database);
}

const struct metric_source metric_hosts = {collect_hosts, sizeof(struct metric_number), NULL};
