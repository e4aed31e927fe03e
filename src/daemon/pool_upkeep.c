/* SPDX-License-Identifier: ISC */
#include "daemon/pool_upkeep.h"

#include "model/statistics/pool_figures.h"
#include "session/pool/move_clients.h"
#include "session/serving/control.h"

void pool_upkeep_open_forced(struct registry *registry)
{
	struct database *database;

	TAILQ_FOREACH (database, &registry->databases, in_registry) {
		struct user *user;

		if (database->console || !database->config->user ||
			database_min_pool_size(database, registry->process->settings) <= 0)
			continue;
		user = registry_open_user(registry, database->config->user);
		if (user)
			registry_open_pool(registry, database, user, TARGET_INHERIT);
	}
}

/* --- unused pools and databases ----------------------------------------------------------- */

static bool is_unused(const struct pool *pool)
{
	return !pool_has_clients(pool) && TAILQ_EMPTY(&pool->cancels) &&
		!pool_has_servers(pool);
}

/* The database logs in as another user now, so this pool gets no clients any more. */
static void drop_pool_left_behind(struct pool *pool)
{
	struct pool *other = TAILQ_FIRST(&pool->database->pools);

	/* Another pool of the database takes over the counts, so that totals never decrease. */
	if (other == pool)
		other = TAILQ_NEXT(pool, in_database);
	if (other)
		pool_leave_counts(pool, other);
	log_write(LEVEL_LOG,
		"cleaning up pool for user %s on db %s because: the database has another user now",
		pool->user->name, pool->database->name);
	registry_drop_pool(pool);
}

void pool_upkeep_drop_idle(struct pool *pool, usec_t now)
{
	const usec_t limit = pool->registry->process->settings->pool_idle_timeout;
	const usec_t age = now - pool->last_used;

	if (pool->left_behind && is_unused(pool)) {
		drop_pool_left_behind(pool);
		return;
	}
	if (pool->left_behind)
		move_clients_of_pool(pool);
	if (!is_unused(pool)) {
		pool->last_used = now;
		return;
	}
	if (limit <= 0 || age <= limit || pool->database->console ||
		(pool_is_forced(pool) && pool_min_size(pool) > 0))
		return;
	log_write(LEVEL_LOG,
		"cleaning up idle pool for user %s on db %s because: pool idle timeout (age= %llds)",
		pool->user->name, pool->database->name, (long long)(age / USEC_PER_SEC));
	registry_drop_pool(pool);
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

/*
 * Has no server of this database ever accepted a login? Then its name is probably a client's
 * mistake, and the database is dropped sooner to save memory.
 */
static bool has_never_worked(const struct database *database)
{
	const struct pool *pool;

	TAILQ_FOREACH (pool, &database->pools, in_database) {
		if (!pool->failing || pool->welcome)
			return false;
	}
	return !TAILQ_EMPTY(&database->pools);
}

/* How long an unused automatic database is kept; 0: for ever. */
static usec_t idle_limit(const struct database *database, const struct settings *settings)
{
	const usec_t limit = settings->autodb_idle_timeout;
	const usec_t retry = settings->server_login_retry;

	return has_never_worked(database) && retry > 0 && (limit <= 0 || retry < limit) ? retry
											: limit;
}

void pool_upkeep_drop_databases(struct registry *registry, usec_t now)
{
	struct database *database, *next;

	TAILQ_FOREACH_SAFE (database, &registry->databases, in_registry, next) {
		usec_t limit;

		if (!database->own_config)
			continue;
		if (!is_unused_database(database)) {
			database->idle_since = 0;
			continue;
		}
		if (database->idle_since == 0)
			database->idle_since = now;
		limit = idle_limit(database, registry->process->settings);
		if (limit <= 0 || database->paused || now - database->idle_since <= limit)
			continue;
		log_write(LEVEL_WARNING,
			"dropping database '%s' as it does not exist anymore or inactive "
			"auto-database",
			database->name);
		control_kill(registry, database, false);
		registry_drop_database(database);
	}
}
