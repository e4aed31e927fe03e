/* SPDX-License-Identifier: ISC */
/*
 * A database that clients may name: its configuration in force, its pools, its limits' counts.
 *
 * Databases are owned by the registry; an automatic one (made from the `*` entry) owns the
 * configuration that it was made with.
 */
#ifndef PGUSHER_MODEL_DATABASE_H
#define PGUSHER_MODEL_DATABASE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>

/* Without memory uthash leaves an item out of its table instead of ending the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "config/snapshot.h"

struct database_counters;
struct pool;

TAILQ_HEAD(pool_list, pool);

/* What became of the statements that servers of a database were to have. */
struct prepared_counts {
	uint64_t hits, misses; /* the server had it, or it was prepared there */
	uint64_t evictions; /* closed for another one */
};

struct database {
	UT_hash_handle by_name;
	const struct database_config *config;
	struct database_config *own_config; /* automatic databases: freed with it; else NULL */
	uint64_t handle; /* as a pool's */
	struct pool_list pools;
	struct prepared_counts prepared;
	struct database_counters *counters; /* owned; NULL: nothing was counted yet */
	unsigned servers; /* connections of all its pools, in any state */
	unsigned clients; /* that named it, logged in or not */
	unsigned peer_id; /* of the process that it stands for (model/peer); 0: a database */
	bool console; /* the admin console */
	bool paused, disabled;
	usec_t paused_at; /* since when it is */
	bool gone; /* no longer configured: freed when its last client has let go */
	usec_t failover_pause; /* until then a server that refuses to write is no news */
	usec_t idle_since; /* automatic: without clients and servers since; 0 otherwise */
	char name[]; /* what clients call it */
};

/* Sizes and limits in force for the database: its own value, else the global one. */
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

#endif
