/* SPDX-License-Identifier: ISC */
/*
 * A database that clients may connect to: its configuration, its pools, its counts for limits.
 *
 * A registry owns its databases: each database belongs to one (model/shared/directory). An automatic one
 * (made from the `*` entry) owns its configuration.
 */
#ifndef PGUSHER_MODEL_DATABASE_H
#define PGUSHER_MODEL_DATABASE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>

/* When out of memory uthash leaves an item out of its table instead of ending the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "config/snapshot.h"
#include "model/cap.h"
#include "model/state/session_functions.h"
#include "model/statistics/meter.h"

struct database_counters;
struct pool;
struct registry;

TAILQ_HEAD(pool_list, pool);
TAILQ_HEAD(database_list, database);

/* Counts of the uses of prepared statements on servers of a database. */
struct prepared_counts {
	uint64_t hits, misses; /* the server had the statement; it had to be prepared there */
	uint64_t evictions; /* statements closed to make room for another one */
	struct meter hits_meter, misses_meter, evictions_meter; /* for advice */
};

struct database {
	UT_hash_handle by_name; /* in directory.databases */
	TAILQ_ENTRY(database) in_registry;
	struct registry *registry; /* its home: its pools and clients belong to that one */
	const struct database_config *config;
	struct database_config *own_config; /* of an automatic database, owned; else NULL */
	uint64_t handle; /* in process.handles; 0: none yet */
	struct pool_list pools;
	struct prepared_counts prepared;
	struct database_counters *counters; /* owned; NULL: nothing was counted yet */
	struct cap cap; /* of the servers of all its pools */
	struct session_functions functions; /* that may change the session */
	unsigned clients; /* that have asked for it, logged in or not */
	unsigned peer_id; /* it represents this peer process (model/peer); 0: a real database */
	int auto_size; /* the largest of its pools with POOL_SIZE_AUTO; 0: not known yet */
	unsigned
		auto_pools; /* of its pools, with pool_size = auto: counted by pool/auto_size */
	bool console; /* the admin console */
	bool paused, disabled;
	usec_t paused_at; /* time of its PAUSE */
	unsigned paused_servers; /* that it had then */
	bool gone; /* no longer configured: freed with its last client */
	uint64_t system; /* PostgreSQL's system identifier of its hosts; 0: not known yet */
	bool wants_primary; /* a standby has refused to write: see session/server/failover */
	usec_t failover_pause; /* until then, ignore servers that refuse to write */
	usec_t idle_since; /* automatic: last time with clients or servers; 0 otherwise */
	char name[]; /* as clients name it */
};

/*
 * Returns the pool_size that is configured, POOL_SIZE_AUTO if it is to be computed: for peers, which
 * are no PostgreSQL, a number stands for that.
 */
int database_configured_size(const struct database *database, const struct settings *settings);

/*
 * Return the values that apply to the database: its own, else those of the settings. With
 * POOL_SIZE_AUTO the size is that of its largest pool.
 */
int database_pool_size(const struct database *database, const struct settings *settings);
int database_min_pool_size(const struct database *database, const struct settings *settings);
int database_reserve_pool_size(
	const struct database *database, const struct settings *settings);
int database_max_servers(const struct database *database, const struct settings *settings);
int database_max_clients(const struct database *database, const struct settings *settings);

static inline usec_t database_server_lifetime(
	const struct database *database, const struct settings *settings)
{
	const usec_t own = database->config->server_lifetime;

	return own > 0 ? own : settings->server_lifetime;
}

/* Which role its servers must have. */
static inline enum target_session database_target_session(
	const struct database *database, const struct settings *settings)
{
	const enum target_session own = database->config->target_session_attrs;

	return own != TARGET_INHERIT ? own : settings->target_session_attrs;
}

static inline enum load_balance database_load_balance(
	const struct database *database, const struct settings *settings)
{
	const enum load_balance own = database->config->load_balance_hosts;

	return own != LOAD_BALANCE_INHERIT ? own : settings->load_balance_hosts;
}

static inline standby_lag database_max_standby_lag(
	const struct database *database, const struct settings *settings)
{
	const standby_lag own = database->config->max_standby_lag;

	return own != STANDBY_LAG_INHERIT ? own : settings->max_standby_lag;
}

#endif
