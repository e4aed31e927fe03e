/* SPDX-License-Identifier: ISC */
/*
 * The servers of a registry by the process number of their backends, to find out which client runs
 * behind a backend.
 *
 * Servers are reused, and a message that names a backend may be late: the client is certain only if no
 * other one has had the server for some seconds.
 */
#ifndef PGUSHER_MODEL_BACKENDS_H
#define PGUSHER_MODEL_BACKENDS_H

#include <stdint.h>
#include <string.h>

#include "model/client_link.h"
#include "model/server_link.h"

enum { BACKENDS_SLOTS = 1024 };

/* All zeros is an empty table. The servers are chained by server.next_backend. */
struct backends {
	struct server_link *slots[BACKENDS_SLOTS];
};

/* Add a server that has its cancel key now, and is in no table; or remove one, if it is there. */
void backends_add(struct server_link *server);
void backends_remove(struct server_link *server);

/* Wipe and free the server's cancel key, if it has one, and remove it from the table. */
void server_drop_key(struct server_link *server);

/*
 * A client gets the server: note which one, and until when others may have had it. Inline, since
 * clients get servers for each transaction.
 */
static inline void backends_note_user(
	struct server_link *server, const struct client_link *client)
{
	if (server->user_id == client->link.id)
		return;
	if (server->user_id != 0)
		server->others_until = server->link.request_time;
	server->user_id = client->link.id;
	memcpy(server->user_key, client->key, sizeof(server->user_key));
}

/*
 * Returns the process number that the client behind this backend was told at its login; 0 if that is
 * not certain. The backend is one of the PostgreSQL that `server` is connected to.
 */
uint32_t backends_client_pid(const struct server_link *server, uint32_t pid);

#endif
