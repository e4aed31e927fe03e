/* SPDX-License-Identifier: ISC */
#include "session/server/host_role.h"

#include <string.h>

#include "model/host/host_items.h"
#include "model/statistics/reason_facts.h"
#include "session/link/close.h"

static const char hot_standby[] = "in_hot_standby",
		  read_only[] = "default_transaction_read_only";

/* --- what fits ---------------------------------------------------------------------------- */

static const struct settings *settings_of(const struct pool *pool)
{
	return pool->registry->process->settings;
}

bool host_role_matters(const struct pool *pool)
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

enum host_fit host_role_fits(const struct pool *pool, const struct host *host)
{
	static const struct host unknown;

	host = host ? host : &unknown;
	return fits(pool, host, host->read_only);
}

bool host_role_is_preference(const struct pool *pool)
{
	const enum target_session target = pool_target_session(pool);

	return target == TARGET_ANY || target == TARGET_PREFER_STANDBY;
}

bool host_role_must_ask(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;

	return server->role == HOST_ROLE_UNKNOWN && server->at && !server->replication &&
		!server->watches && host_role_matters(pool) &&
		pool_target_session(pool) != TARGET_ANY;
}

/* How well the best host of an item fits; one of which nothing is known may fit. */
static enum host_fit best_of_item(const struct pool *pool, const struct host_item *item)
{
	const struct host_list *hosts = &pool->registry->process->hosts;
	enum host_fit best = HOST_IS_FOREIGN;
	const struct host *host = NULL;
	bool known = false;

	while ((host = hosts_next(hosts, item, host)) != NULL) {
		const bool is_dead = host->failed_since > 0;

		known = known || !host->is_name || is_dead;
		if (!host->is_name && !is_dead && host_role_fits(pool, host) < best)
			best = host_role_fits(pool, host);
	}
	return known ? best : host_role_fits(pool, NULL);
}

/* How well the best of the pool's hosts fits that lives. */
static enum host_fit best_fit(const struct pool *pool)
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
static bool is_unfit(const struct pool *pool, enum host_fit fit, enum host_fit best)
{
	if (fit < HOST_IS_SECOND)
		return false;
	return fit == HOST_IS_FOREIGN || best < fit || !host_role_is_preference(pool);
}

static enum host_fit fit_of_server(const struct server_link *server)
{
	return fits(server->link.pool, server->at, server->at->read_only || server->read_only);
}

bool host_role_refuses(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;

	if (!server->at || server->replication || server->watches || !host_role_matters(pool))
		return false;
	return is_unfit(pool, fit_of_server(server), best_fit(pool));
}

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
	const enum host_fit best = best_fit(pool);
	struct pool_walk walk = pool_walk_servers(pool);
	struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		struct server_link *server = server_of(link);

		if (!server->at || server->login || server->watches || server->replication)
			continue;
		if (is_unfit(pool, fit_of_server(server), best))
			retire_server(server);
	}
}

void host_role_retire(struct database *database)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &database->pools, in_database)
		retire_of_pool(pool);
}

static void retire_all(const struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (host_role_matters(pool))
			retire_of_pool(pool);
	}
}

/* --- two primaries ------------------------------------------------------------------------ */

/* May both be of one system, so that one primary is the successor of the other? */
static bool are_related(const struct host *one, const struct host *other)
{
	return one->system == 0 || other->system == 0 || one->system == other->system;
}

static bool is_listed_with(
	struct registry *registry, const struct host *one, const struct host *other)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (host_role_matters(pool) && host_items_have(pool, one) &&
			host_items_have(pool, other))
			return true;
	}
	return false;
}

static void supersede(struct host *old, const struct host *new)
{
	char a[HOST_TEXT_SIZE], b[HOST_TEXT_SIZE];

	if (old->superseded)
		return;
	old->superseded = true;
	log_write(LEVEL_WARNING,
		"host %s is the primary in place of %s, which is not written to any more",
		host_text(new, a), host_text(old, b));
}

/*
 * Of two primaries of one system the one with the later timeline is the successor. If timelines are not
 * known, it is the one that was promoted just now, or the one that answers.
 */
static bool is_successor(const struct host *host, const struct host *other, bool promoted)
{
	if (host->timeline && other->timeline && host->timeline != other->timeline)
		return host->timeline > other->timeline;
	/* One that was superseded does not become the primary again by the loss of its successor. */
	return promoted ||
		(!host->superseded && host->failed_since == 0 && other->failed_since > 0);
}

/* The host says that it is a primary, or is one that is lost. promoted: it was a standby before. */
static void judge_primaries(struct registry *registry, struct host *host, bool promoted)
{
	struct host *other;

	TAILQ_FOREACH (other, &registry->process->hosts, in_hosts) {
		if (other == host || other->role != HOST_ROLE_PRIMARY ||
			!are_related(host, other) || !is_listed_with(registry, host, other))
			continue;
		if (is_successor(host, other, promoted)) {
			host->superseded = false;
			supersede(other, host);
		} else if (is_successor(other, host, false)) {
			other->superseded = false;
			supersede(host, other);
		}
	}
}

/* Its successor may not be listed with it any more. */
static bool has_related_primary(struct registry *registry, const struct host *host)
{
	const struct host *other;

	TAILQ_FOREACH (other, &registry->process->hosts, in_hosts) {
		if (other != host && other->role == HOST_ROLE_PRIMARY && !other->superseded &&
			are_related(host, other) && is_listed_with(registry, host, other))
			return true;
	}
	return false;
}

/* The host is no primary any more: one that it was the successor of may be the primary again. */
static void judge_without(struct registry *registry, const struct host *demoted)
{
	struct host *other;

	TAILQ_FOREACH (other, &registry->process->hosts, in_hosts) {
		if (other->role != HOST_ROLE_PRIMARY || !other->superseded ||
			!are_related(demoted, other) ||
			!is_listed_with(registry, demoted, other))
			continue;
		other->superseded = false;
		judge_primaries(registry, other, false);
	}
}

void host_role_reconfigured(struct registry *registry)
{
	struct host *host;

	TAILQ_FOREACH (host, &registry->process->hosts, in_hosts) {
		if (host->superseded && !has_related_primary(registry, host))
			host->superseded = false;
	}
	retire_all(registry);
}

/* --- news of a host ----------------------------------------------------------------------- */

/* Pools that wait do not wait for server_login_retry, nor keep servers of the second choice. */
void host_role_wake(struct registry *registry)
{
	struct pool *pool;

	retire_all(registry);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (!host_role_matters(pool) ||
			pool_wanted_servers(pool) + pool_welcoming_clients(pool) == 0)
			continue;
		pool->last_launch = 0;
		pool_needs_work(pool);
	}
}

void host_role_lives(struct server_link *server, usec_t took)
{
	struct host *host = server->at;
	const bool was_dead = host && host->failed_since > 0;
	char text[HOST_TEXT_SIZE];

	if (!host)
		return;
	host_answered(host, took);
	if (!was_dead || !host->watched)
		return;
	link_log(&server->link, LEVEL_LOG, "host %s answers again", host_text(host, text));
	host_role_wake(link_registry(&server->link));
}

static bool has_other_hosts(const struct pool *pool, const struct host *host)
{
	const unsigned count = database_config_hosts(pool->database->config);
	const struct host_item item = host_items_nth(pool, 0);
	const struct host *each = NULL;

	while ((each = hosts_next(&pool->registry->process->hosts, &item, each)) != NULL) {
		if (each != host && !each->is_name)
			return true;
	}
	return count > 1;
}

void host_role_lost(struct registry *registry, struct host *host)
{
	struct pool *pool;

	if (host->role == HOST_ROLE_PRIMARY)
		judge_primaries(registry, host, false);
	retire_all(registry);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		struct pool_walk walk = pool_walk_servers(pool);
		struct link *link;

		if (!host_role_matters(pool) || !has_other_hosts(pool, host))
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

void host_role_doubt(struct server_link *server)
{
	struct registry *registry = link_registry(&server->link);
	struct host *host = server->at;
	struct pool *pool;

	if (!host || loop_now(registry->loop) - host->doubted_at < DOUBT_PAUSE)
		return;
	host->doubted_at = loop_now(registry->loop);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (host_role_matters(pool))
			doubt_servers(pool, host);
	}
	process_ask_host(registry->process, registry->loop, host);
}

void host_role_connection_ended(
	struct server_link *server, enum server_state state, const struct failure *why)
{
	if (server->at && !server->watches && state >= SERVER_IDLE &&
		state <= SERVER_CHECKING && reason_breaks_connection(why->reason) &&
		host_role_matters(server->link.pool))
		host_role_doubt(server);
}

/* --- what servers say --------------------------------------------------------------------- */

static enum host_role role_of(const char *value)
{
	return strcmp(value, "on") == 0 ? HOST_ROLE_STANDBY : HOST_ROLE_PRIMARY;
}

/* Returns whether the role is another one than was known, or the first one that is known. */
static bool learn(struct server_link *server, enum host_role role, enum host_teller teller)
{
	struct host *host = server->at;
	const enum host_role before = host->role;
	char text[HOST_TEXT_SIZE];

	if (role == HOST_ROLE_UNKNOWN ||
		!host_set_role(host, role, teller, loop_now(server->link.stream.loop)))
		return false;
	if (host->watched || before != HOST_ROLE_UNKNOWN)
		link_log(&server->link, LEVEL_LOG, "host %s is a %s%s, as a %s tells",
			host_text(host, text), host_role_name(host),
			before == HOST_ROLE_UNKNOWN ? "" : " now", host_teller_name(host));
	if (role == HOST_ROLE_PRIMARY)
		judge_primaries(
			link_registry(&server->link), host, before == HOST_ROLE_STANDBY);
	else if (before == HOST_ROLE_PRIMARY)
		judge_without(link_registry(&server->link), host);
	return true;
}

void host_role_take_parameter(struct server_link *server, const char *name, const char *value)
{
	if (strcmp(name, hot_standby) == 0)
		server->role = role_of(value);
	else if (strcmp(name, read_only) == 0)
		server->read_only = strcmp(value, "on") == 0;
	/* This session may write at least: what an older probe has told is over. */
	if (strcmp(name, read_only) == 0 && !server->read_only && server->at)
		server->at->read_only = false;
}

void host_role_logged_in(struct server_link *server)
{
	if (server->at && learn(server, server->role, HOST_TOLD_BY_LOGIN))
		host_role_wake(link_registry(&server->link));
}

void host_role_reported(struct server_link *server, const char *name, const char *value)
{
	struct registry *registry = link_registry(&server->link);

	if (!server->at)
		return;
	if (strcmp(name, hot_standby) == 0) {
		if (learn(server, role_of(value), HOST_TOLD_BY_REPORT))
			host_role_wake(registry);
	} else if (strcmp(name, read_only) == 0) {
		/* The client may have set it, or the host may have been fenced. */
		host_role_doubt(server);
	}
}

/* --- what probes say ---------------------------------------------------------------------- */

static void log_foreign(const struct pool *pool, const struct host *host)
{
	char text[HOST_TEXT_SIZE];

	if (host->system == 0 || host->system == pool->database->system ||
		pool_target_session(pool) == TARGET_ANY || !host_items_have(pool, host))
		return;
	log_write(LEVEL_ERROR,
		"database %s: host %s is of another PostgreSQL system than the others (%llu, not "
		"%llu)%s",
		pool->database->name, host_text(host, text), (unsigned long long)host->system,
		(unsigned long long)pool->database->system,
		settings_of(pool)->host_identity_check ? ", and is not used" : "");
}

/* The system is that of the first servers that clients had. */
static uint64_t system_of_servers(const struct pool *pool)
{
	struct pool_walk walk = pool_walk_servers(pool);
	const struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		const struct server_link *server = (const struct server_link *)link;

		if (server->at && server->at->system && !server->watches && !server->login)
			return server->at->system;
	}
	return 0;
}

/* The host has told another system than before, or the first one. */
static void compare_system(struct pool *pool, const struct host *host)
{
	struct database *database = pool->database;

	if (database->system != 0) {
		log_foreign(pool, host);
		return;
	}
	database->system = system_of_servers(pool);
	if (database->system == 0)
		return;
	TAILQ_FOREACH (host, &pool->registry->process->hosts, in_hosts)
		log_foreign(pool, host);
}

static void compare_systems(struct registry *registry, const struct host *host)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (host_role_matters(pool))
			compare_system(pool, host);
	}
}

/* A standby may be too far behind now, or not any more: of which few databases want to know. */
static void retire_lagging(const struct registry *registry, const struct host *host)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (database_max_standby_lag(pool->database, registry->process->settings) !=
				0 &&
			host_role_matters(pool) && host_items_have(pool, host))
			retire_of_pool(pool);
	}
}

void host_role_probed(struct server_link *server, const struct host_facts *facts)
{
	struct registry *registry = link_registry(&server->link);
	struct host *host = server->at;
	bool changed = learn(server, facts->role, HOST_TOLD_BY_PROBE);
	char text[HOST_TEXT_SIZE];

	if (host->read_only != facts->read_only) {
		host->read_only = facts->read_only;
		link_log(&server->link, LEVEL_LOG, "host %s is %s now, as a probe tells",
			host_text(host, text), facts->read_only ? "read-only" : "read-write");
		changed = true;
	}
	host->progress = facts->progress;
	host->progress.told_at = loop_now(registry->loop);
	hosts_compare_progress(&registry->process->hosts, host);
	if (facts->system != host->system) {
		host->system = facts->system;
		compare_systems(registry, host);
		changed = true;
	}
	if (facts->timeline != host->timeline) {
		/* A primary that has another timeline than before was promoted meanwhile. */
		const bool promoted = host->timeline && facts->timeline > host->timeline;

		host->timeline = facts->timeline;
		if (host->role == HOST_ROLE_PRIMARY)
			judge_primaries(registry, host, promoted);
		changed = true;
	}
	/* The one that was promoted in its place may have turned out to be of another system. */
	if (host->superseded && !has_related_primary(registry, host)) {
		host->superseded = false;
		changed = true;
	}
	if (changed)
		host_role_wake(registry);
	else
		retire_lagging(registry, host);
}
