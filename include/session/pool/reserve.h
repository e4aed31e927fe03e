/* SPDX-License-Identifier: ISC */
/*
 * The reserve of a pool: servers beyond its size, for clients that have waited for
 * reserve_pool_timeout.
 */
#ifndef PGUSHER_SESSION_POOL_RESERVE_H
#define PGUSHER_SESSION_POOL_RESERVE_H

#include "model/registry.h"

/*
 * Returns the client that has waited longest for a server or a look-up, apart from those for
 * which logins are in progress; NULL if there is none.
 */
const struct client_link *reserve_first_waiter(const struct pool *pool);

/*
 * Returns whether a full pool may open a server of its reserve for this waiting client; NULL:
 * it may not. If the client has not waited long enough, registry.work gets the pool again when
 * it has.
 */
bool reserve_may_be_used(struct pool *pool, const struct client_link *waiter);

/* Log that a server of the reserve is opened for this client. */
void reserve_log_use(const struct client_link *waiter);

#endif
