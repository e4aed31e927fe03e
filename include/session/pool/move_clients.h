/* SPDX-License-Identifier: ISC */
/*
 * Moves clients to the pool that is theirs when a reload has changed as whom their database logs
 * in to its servers.
 *
 * Nobody is cut: those with a server keep it to the end of their transaction or session and go
 * over when they next need one. What they leave behind is dropped once nobody is in it.
 */
#ifndef PGUSHER_SESSION_POOL_MOVE_CLIENTS_H
#define PGUSHER_SESSION_POOL_MOVE_CLIENTS_H

#include "model/registry.h"

/* The database has another forced user, none any more, or one for the first time. */
void move_clients_of_database(struct registry *registry, struct database *database);

/* Look once more who may go over, and whether the pool is still one that was left behind. */
void move_clients_of_pool(struct pool *pool);

/*
 * An IDLE, WAITING or WELCOMING client: move it to its own pool if it stands in another one.
 * Without memory it stays where it is.
 */
void move_clients_one(struct client_link *client);

#endif
