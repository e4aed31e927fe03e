/* SPDX-License-Identifier: ISC */
/*
 * Closes idle servers for the file descriptors of the process (model/descriptors): of the own worker's
 * pools, else of another worker's, which is asked by mail.
 */
#ifndef PGUSHER_SESSION_POOL_EVICTION_H
#define PGUSHER_SESSION_POOL_EVICTION_H

#include "model/registry.h"

/* Set *oldest to the idle server of this pool that was used least recently, if it is older. */
void eviction_find(const struct pool *pool, struct server_link **oldest);

/*
 * Close the least recently used idle server of all pools of this worker, for its descriptor. Returns false
 * if there is none, or a search shortly before found none: then the other workers are asked, one after the
 * other. When one has closed a server, the pools of this worker that want servers have work.
 */
bool eviction_run(struct registry *registry);

/*
 * A client or a server has got a descriptor. If the next client would find none, ask the other workers for
 * one now: a client that logs in cannot wait for them.
 */
void eviction_ask_ahead(struct registry *registry);

#endif
