/* SPDX-License-Identifier: ISC */
/*
 * What the janitor does for servers: those that are old, idle, stuck, too many or too few.
 */
#ifndef PGUSHER_DAEMON_SERVER_UPKEEP_H
#define PGUSHER_DAEMON_SERVER_UPKEEP_H

#include "model/registry.h"

/* All servers of a pool, those that log in too. */
void server_upkeep_pool(struct pool *pool, usec_t now);

/* Only those that log in: the pools of peers have no others. */
void server_upkeep_logins(struct pool *pool, usec_t now);

#endif
