/* SPDX-License-Identifier: ISC */
/*
 * The janitor's work on pools and databases: opens pools that must exist before the first
 * client, and drops unused ones.
 */
#ifndef PGUSHER_DAEMON_POOL_UPKEEP_H
#define PGUSHER_DAEMON_POOL_UPKEEP_H

#include "model/registry.h"

/*
 * Open the pool of each database that has a forced user and a min_pool_size, so that its
 * servers are there before the first client.
 */
void pool_upkeep_open_forced(struct registry *registry);

/*
 * Drops the pool, which frees it, if it is unused for longer than pool_idle_timeout or left
 * behind.
 */
void pool_upkeep_drop_idle(struct pool *pool, usec_t now);

/* Drop automatic databases that are unused for longer than autodb_idle_timeout. */
void pool_upkeep_drop_databases(struct registry *registry, usec_t now);

#endif
