/* SPDX-License-Identifier: ISC */
/*
 * A client gets a server: an idle one at once, else it joins the queue of its pool. Clients are
 * served strictly in the order in which they began to wait; a new client never passes them.
 */
#ifndef PGUSHER_SESSION_POOL_PAIRING_H
#define PGUSHER_SESSION_POOL_PAIRING_H

#include "model/registry.h"

enum pairing_result {
	PAIRING_READY, /* paired: pass the message on */
	PAIRING_WAITING, /* in the queue: hold the message */
	PAIRING_CLOSED, /* the client was refused and closed */
};

/* An IDLE client has a whole message for a server. Its time limit is query_wait_timeout. */
enum pairing_result pairing_take(struct client_link *client);

/* The next idle server of the pool that may be used; unfit ones are closed. NULL: there is none. */
struct server_link *pairing_next_idle(struct pool *pool);

/*
 * Give an IDLE server to an IDLE or WAITING client. Parameters in which they differ are set before
 * the client's first message (session/parameters/parameter_sync). Returns PAIRING_READY or
 * PAIRING_CLOSED.
 */
enum pairing_result pairing_give(struct client_link *client, struct server_link *server);

/*
 * If no server of the pool is up and the last attempt to launch one failed, close the client with
 * the error of that attempt, launch the next one if it is due, and return true.
 */
bool pairing_refuse_hopeless(struct client_link *client, struct pool *pool);

#endif
