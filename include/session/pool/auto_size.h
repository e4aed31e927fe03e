/* SPDX-License-Identifier: ISC */
/*
 * Computes the sizes of pools with pool_size = auto, by what is known of their hosts
 * (session/server/host_capacity) and of the pools and processes that share them: model/host/sizing has
 * the formula. A pool that has servers at several hosts has the smallest of their sizes; one that has
 * no server keeps the size that it had.
 *
 * While no pool has pool_size = auto none of this runs.
 */
#ifndef PGUSHER_SESSION_POOL_AUTO_SIZE_H
#define PGUSHER_SESSION_POOL_AUTO_SIZE_H

#include "model/registry.h"

/*
 * Compute all sizes anew: registry.size_pools, a task of the loop. Only the first worker computes, while
 * the others are stopped: on another one this sends it mail.
 */
void auto_size_round(struct loop_task *task);

/*
 * To be called regularly by the first worker, while the others are stopped: likewise, once a second,
 * since pools, peers and limits come and go.
 */
void auto_size_upkeep(struct registry *registry);

/*
 * A login of the pool has failed. If the server accepts no more connections, the pool has no more
 * servers than now for a minute.
 */
void auto_size_note_failure(struct pool *pool, const struct failure *why);

#endif
