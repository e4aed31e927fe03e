/* SPDX-License-Identifier: ISC */
/*
 * The janitor's work on servers: closes old, idle, stuck and superfluous ones, and launches
 * missing ones.
 */
#ifndef PGUSHER_DAEMON_SERVER_UPKEEP_H
#define PGUSHER_DAEMON_SERVER_UPKEEP_H

#include "model/registry.h"

/* Check all servers of a pool, including those that log in. May close servers and clients. */
void server_upkeep_pool(struct pool *pool, usec_t now);

/*
 * Check only the servers that log in or carry a cancel request: the pools of peers have no
 * others. May close them.
 */
void server_upkeep_logins(struct pool *pool, usec_t now);

#endif
