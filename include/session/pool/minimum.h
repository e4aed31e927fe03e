/* SPDX-License-Identifier: ISC */
/*
 * min_pool_size: the servers that a pool keeps open, and launches before clients need them.
 *
 * A pool is filled while it has clients; without clients, if it has a forced user, or if a
 * secret is known with which it can log in: from the auth_file, or learnt at the login of a
 * client. Pools are not opened for that, except those of forced users (daemon/pool_upkeep):
 * databases times users of the auth_file would be too many. A pool without clients is given up
 * after pool_idle_timeout (in an automatic database: also after autodb_idle_timeout), and when
 * the server rejects its user or database.
 */
#ifndef PGUSHER_SESSION_POOL_MINIMUM_H
#define PGUSHER_SESSION_POOL_MINIMUM_H

#include "model/registry.h"

/* Returns how many servers of the pool are kept when they are idle; 0: none. */
unsigned minimum_size(const struct pool *pool);

/*
 * Launch the servers that are missing, several at the same time as session/pool/
 * login_concurrency allows. No server is closed for them, and the reserve is not used.
 */
void minimum_fill(struct pool *pool);

#endif
