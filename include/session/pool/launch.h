/* SPDX-License-Identifier: ISC */
/*
 * Opening server connections within every limit, and what is remembered of attempts that failed.
 */
#ifndef PGUSHER_SESSION_POOL_LAUNCH_H
#define PGUSHER_SESSION_POOL_LAUNCH_H

#include "model/registry.h"

/*
 * Open a connection for the pool if every limit allows: one attempt at a time, a pause after a
 * failed one, pool size, reserve, limits of database and user (evicting the least recently used
 * idle server there). top_up: only for min_pool_size, which never evicts and never takes from
 * the reserve. False when nothing was opened.
 */
bool launch_server(struct pool *pool, bool top_up);

/*
 * Open one for a client of replication, which waits for it: idle servers of the pool make room if
 * it is full. What a server refused to others need not hold for it. False when nothing was opened.
 */
bool launch_for_replication(struct client_link *client);

/* Did the last attempt fail so recently that the next one has to wait? */
bool launch_must_pause(const struct pool *pool);

#endif
