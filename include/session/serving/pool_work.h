/* SPDX-License-Identifier: ISC */
/*
 * The work of pools: give idle servers to waiting clients, check servers before use, launch new
 * servers.
 */
#ifndef PGUSHER_SESSION_SERVING_POOL_WORK_H
#define PGUSHER_SESSION_SERVING_POOL_WORK_H

#include "model/registry.h"

/*
 * Give the idle servers of the pool to its waiting clients and look-ups, the one that has
 * waited longest first. Clients and servers may be closed when this returns. This is
 * registry.serve.
 */
void pool_work_serve(struct pool *pool);

/*
 * At the end of a turn: for each pool in registry.work, serve its clients, check used servers,
 * and launch servers within the limits. `task` is registry.work_task; this is registry.do_work.
 */
void pool_work_run(struct loop_task *task);

#endif
