/* SPDX-License-Identifier: ISC */
/*
 * Opens server connections within all limits, and pauses after attempts that failed.
 */
#ifndef PGUSHER_SESSION_POOL_LAUNCH_H
#define PGUSHER_SESSION_POOL_LAUNCH_H

#include "model/registry.h"

/*
 * Open a connection for the pool if all limits allow it: logins at the same time
 * (login_concurrency), the pause after a failed one, pool size, reserve, limits of the database and the user. If one of the latter two
 * is reached, the least recently used idle server that counts there is closed to make room.
 * top_up: the connection is only for min_pool_size, so no server is closed and the reserve is
 * not used. Returns false if no connection was opened.
 */
bool launch_server(struct pool *pool, bool top_up);

enum launch_result {
	LAUNCH_BEGUN,
	LAUNCH_NOT_NOW, /* it may be tried again */
	LAUNCH_NO_ROOM, /* a limit of the database or the user is reached */
};

/*
 * Open a connection that replaces a server of the pool: the pool may exceed its size by one. No
 * server is closed for it.
 */
enum launch_result launch_replacement(struct pool *pool);

/*
 * Open a connection for this client, which wants replication and waits for its own server. If
 * the pool is full, idle servers of it are closed. An ErrorResponse to other logins of the pool
 * causes no pause, since it may not apply to replication. Returns false if no connection was
 * opened.
 */
bool launch_for_replication(struct client_link *client);

/*
 * Open the connection of the pool's listening server, which does not count for the size of the pool. At
 * most half of the places below a limit that pools share may listen: if there is none, clients that wait
 * to LISTEN get an error. Returns false if no connection was opened.
 */
bool launch_listening_server(struct pool *pool);

/* Returns true if the last attempt has failed and the next one is not due yet. */
bool launch_must_pause(const struct pool *pool);

#endif
