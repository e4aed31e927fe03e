/* SPDX-License-Identifier: ISC */
/* How many servers of a pool, and below the caps that pools share, may be pinned: max_pinned. */
#ifndef PGUSHER_MODEL_POOL_PINS_H
#define PGUSHER_MODEL_POOL_PINS_H

#include "model/pool.h"

/*
 * Returns whether one more server may be pinned (max_pinned, a number, or a part of pool_size).
 * Below each of the pool's caps at most the same part of the cap may be pinned, in all pools
 * together, and not the last of several places: or the clients of other pools might wait for
 * ever.
 */
bool pool_may_pin(const struct pool *pool);

/* Returns what has pinned most servers of the pool so far. */
session_topics pool_main_pin(const struct pool *pool);

/* A server of the pool is pinned, or is no longer. */
void pool_pin(struct pool *pool);
void pool_unpin(struct pool *pool);

#endif
