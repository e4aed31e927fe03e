/* SPDX-License-Identifier: ISC */
/*
 * What the janitor does for pools and databases: those that have to be there before anybody comes,
 * and those that nobody uses any more.
 */
#ifndef PGUSHER_DAEMON_POOL_UPKEEP_H
#define PGUSHER_DAEMON_POOL_UPKEEP_H

#include "model/registry.h"

/* A database with a forced user has its pool before the first client comes. */
void pool_upkeep_open_forced(struct registry *registry);

/* True if the pool is gone. */
bool pool_upkeep_drop_idle(struct pool *pool, usec_t now);

/* Automatic databases. */
void pool_upkeep_drop_databases(struct registry *registry, usec_t now);

#endif
