/* SPDX-License-Identifier: ISC */
#include "session/server/host_fit.h"

#include "model/host/host_items.h"

static const struct settings *settings_of(const struct pool *pool)
{
	return pool->registry->process->settings;
}

bool host_fit_applies(const struct pool *pool)
{
	const struct database *database = pool->database;

	return !database->console && database->peer_id == 0 &&
		(pool_target_session(pool) != TARGET_ANY ||
			database_config_hosts(database->config) > 1);
}

/* What was told longer ago is not believed, or a host that is not watched would lag for ever. */
#define LAG_LIFE (60 * USEC_PER_SEC)

static bool lags(const struct pool *pool, const struct host *host)
{
	const standby_lag most = database_max_standby_lag(pool->database, settings_of(pool));
	const struct host_progress *progress = &host->progress;

	if (most == 0 || !progress->known || host->role != HOST_ROLE_STANDBY ||
		loop_now(pool->registry->loop) - progress->told_at > LAG_LIFE)
		return false;
	if (most > 0)
		return progress->behind > (uint64_t)most;
	return progress->behind > 0 && progress->replay_age > -most;
}

/* Is it of another system than the other hosts of the database? */
static bool is_foreign(const struct pool *pool, const struct host *host)
{
	return settings_of(pool)->host_identity_check &&
		pool_target_session(pool) != TARGET_ANY && host->system != 0 &&
		pool->database->system != 0 && host->system != pool->database->system;
}

static enum host_fit fits_if(const struct host *host, bool fits)
{
	if (host->role == HOST_ROLE_UNKNOWN)
		return HOST_MAY_FIT;
	return fits ? HOST_FITS : HOST_DOES_NOT_FIT;
}

static enum host_fit prefers_if(const struct host *host, bool fits)
{
	const enum host_fit fit = fits_if(host, fits);

	return fit == HOST_DOES_NOT_FIT ? HOST_IS_SECOND : fit;
}

/* Whether it fits, for a session in which transactions are read-only by default, or not. */
static enum host_fit fits(const struct pool *pool, const struct host *host, bool is_read_only)
{
	const bool is_standby = host->role == HOST_ROLE_STANDBY;
	const bool is_primary = host->role == HOST_ROLE_PRIMARY && !host->superseded;

	if (is_foreign(pool, host))
		return HOST_IS_FOREIGN;
	if (lags(pool, host))
		return HOST_DOES_NOT_FIT;
	switch (pool_target_session(pool)) {
	case TARGET_INHERIT:
	case TARGET_ANY:
		return pool->database->wants_primary ? prefers_if(host, is_primary) : HOST_FITS;
	case TARGET_READ_WRITE:
		return fits_if(host, is_primary && !is_read_only);
	case TARGET_READ_ONLY:
		return fits_if(host, is_standby || is_read_only);
	case TARGET_PRIMARY:
		return fits_if(host, is_primary);
	case TARGET_STANDBY:
		return fits_if(host, is_standby);
	case TARGET_PREFER_STANDBY:
		return prefers_if(host, is_standby);
	}
	return HOST_FITS;
}

enum host_fit host_fit_of(const struct pool *pool, const struct host *host)
{
	static const struct host unknown;

	host = host ? host : &unknown;
	return fits(pool, host, host->read_only);
}

bool host_fit_is_preference(const struct pool *pool)
{
	const enum target_session target = pool_target_session(pool);

	return target == TARGET_ANY || target == TARGET_PREFER_STANDBY;
}

bool host_fit_must_be_asked(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;

	return server->role == HOST_ROLE_UNKNOWN && server->at && !server->replication &&
		!server->watches && host_fit_applies(pool) &&
		pool_target_session(pool) != TARGET_ANY;
}

/* How well the best host of an item fits; one of which nothing is known may fit. */
static enum host_fit best_of_item(const struct pool *pool, const struct host_item *item)
{
	const struct host_list *hosts = &pool->registry->hosts;
	enum host_fit best = HOST_IS_FOREIGN;
	const struct host *host = NULL;
	bool known = false;

	while ((host = hosts_next(hosts, item, host)) != NULL) {
		const bool is_dead = host->failed_since > 0;

		known = known || !host->is_name || is_dead;
		if (!host->is_name && !is_dead && host_fit_of(pool, host) < best)
			best = host_fit_of(pool, host);
	}
	return known ? best : host_fit_of(pool, NULL);
}

/* How well the best of the pool's hosts fits that lives. */
enum host_fit host_fit_best(const struct pool *pool)
{
	const unsigned count = database_config_hosts(pool->database->config);
	enum host_fit best = HOST_IS_FOREIGN;

	for (unsigned n = 0; n < count; n++) {
		const struct host_item item = host_items_nth(pool, n);
		const enum host_fit fit = best_of_item(pool, &item);

		best = fit < best ? fit : best;
	}
	return best;
}

/* Is a host that fits so badly not to be used: at all, or since the pool has a better one? */
bool host_fit_is_bad(const struct pool *pool, enum host_fit fit, enum host_fit best)
{
	if (fit < HOST_IS_SECOND)
		return false;
	return fit == HOST_IS_FOREIGN || best < fit || !host_fit_is_preference(pool);
}

enum host_fit host_fit_of_server(const struct server_link *server)
{
	return fits(server->link.pool, server->at, server->at->read_only || server->read_only);
}

bool host_fit_refuses(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;

	if (!server->at || server->replication || server->watches || !host_fit_applies(pool))
		return false;
	return host_fit_is_bad(pool, host_fit_of_server(server), host_fit_best(pool));
}
