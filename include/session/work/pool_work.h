/* SPDX-License-Identifier: ISC */
/*
 * What a pool has to do: give idle servers to clients that wait, check servers before use, launch
 * new ones.
 */
#ifndef PGUSHER_SESSION_WORK_POOL_WORK_H
#define PGUSHER_SESSION_WORK_POOL_WORK_H

#include "model/registry.h"

/*
 * Give the idle servers of the pool to its waiting clients and look-ups, the one that has waited
 * longest first. Clients and servers may be closed by this. This is registry.serve.
 */
void pool_work_serve(struct pool *pool);

/*
 * At the end of a turn: serve every pool of registry.work, check its used servers, and launch new
 * ones within the limits. The task is registry.work_task; this is registry.do_work.
 */
void pool_work_run(struct loop_task *task);

#endif
