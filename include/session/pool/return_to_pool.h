/* SPDX-License-Identifier: ISC */
/*
 * How a server goes back to its pool. return_if_free() asks whether a paired server is free;
 * return_to_pool() takes the next step of the way back, which the server's state decides:
 *
 *   PAIRED, DRAINING, LOOKING_UP   close it, if it is retired or the pool is paused; else
 *                                  HELD, while a cancel request that was sent may still hit it
 *   HELD                           RESETTING, if a reset query is due
 *   RESETTING                      STALE, if servers are checked before each use
 *   CHECKING, STALE, IDLE          to the client that has waited longest, else IDLE
 *
 * A step that is not due is left out. A server whose client has closed in the middle of something
 * is drained first (session/pool/draining).
 */
#ifndef PGUSHER_SESSION_POOL_RETURN_TO_POOL_H
#define PGUSHER_SESSION_POOL_RETURN_TO_POOL_H

#include "model/server_link.h"

/*
 * A paired server has answered something: in transaction and statement mode, if it is clean and
 * its client has been sent everything, split the pair and return the server. It may be paired with
 * another client, or be closed, when this returns.
 */
void return_if_free(struct server_link *server);

/*
 * Take the next step of a server that is clean and has no client. It may be paired with a waiting
 * client, or be closed, when this returns.
 */
void return_to_pool(struct server_link *server);

/*
 * Close the server if it has reached server_lifetime; closings of a pool are spread over the
 * lifetime. Returns true if it was closed.
 */
bool return_retire_old(struct server_link *server);

#endif
