/* SPDX-License-Identifier: ISC */
/*
 * Moves clients to another pool after a reload has changed the user with which their database
 * logs in to servers.
 *
 * No client is closed: a client with a server keeps it until the end of its transaction or
 * session, and moves when it next needs a server. The old pool is dropped when it has no
 * clients left.
 */
#ifndef PGUSHER_SESSION_POOL_MOVE_CLIENTS_H
#define PGUSHER_SESSION_POOL_MOVE_CLIENTS_H

#include "model/registry.h"

/* The forced user of the database has changed, was removed, or was set for the first time. */
void move_clients_of_database(struct database *database);

/* Move the clients of this pool that can move, and set pool.left_behind again. */
void move_clients_of_pool(struct pool *pool);

/*
 * Move an IDLE, WAITING, WELCOMING or LAUNCHING client to the pool that it belongs to, if it is
 * in another one. When out of memory the client stays in its pool.
 */
void move_clients_one(struct client_link *client);

#endif
