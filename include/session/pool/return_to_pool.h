/* SPDX-License-Identifier: ISC */
/*
 * Returns a server to its pool. return_if_free() checks whether a paired server is free;
 * return_to_pool() takes the next step, which depends on the state of the server:
 *
 *   PAIRED, DRAINING, LOOKING_UP   close it, if it is retired or the pool is paused; else
 *                                  HELD, while a cancel request that was sent may hit it
 *   HELD                           RESETTING, if a reset query is due
 *   RESETTING                      STALE, if servers are checked before each use
 *   CHECKING, STALE, IDLE          to the client that has waited longest, else IDLE
 *
 * A step that is not needed is skipped. If the client was closed in the middle of its work,
 * the server is drained first (pool/draining).
 */
#ifndef PGUSHER_SESSION_POOL_RETURN_TO_POOL_H
#define PGUSHER_SESSION_POOL_RETURN_TO_POOL_H

#include "model/server_link.h"

/*
 * A paired server has sent an answer: in transaction and statement mode, if the server is clean
 * and its client was sent everything, split the pair and return the server to the pool. The
 * server may be paired with another client, or be closed, when this returns.
 */
void return_if_free(struct server_link *server);

/*
 * Take the next step of a server that is clean and has no client. It may be paired with a
 * waiting client, or be closed, when this returns.
 */
void return_to_pool(struct server_link *server);

#endif
