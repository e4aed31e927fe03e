/* SPDX-License-Identifier: ISC */
/*
 * Clients with replication: each has a server connection of its own, which logs in with the
 * startup parameters of the client and is closed with it. A client that waits for its server is
 * in pool.welcoming.
 *
 * These clients and servers count in all limits, but use no other servers or clients of the
 * pool.
 */
#ifndef PGUSHER_SESSION_SERVING_REPLICATION_H
#define PGUSHER_SESSION_SERVING_REPLICATION_H

#include "model/registry.h"
#include "wire/startup.h"

/*
 * For a client that logs in: store the replication mode and options of its StartupMessage, if
 * it has any. Returns false when out of memory.
 */
bool replication_want(struct client_link *client, const struct startup_login *wanted);

/*
 * Launch a server for the client that has waited longest for its own, if all limits allow it.
 */
void replication_launch(struct pool *pool);

/*
 * Returns true if a client with replication has waited longer than all other clients and
 * look-ups, and the pool is full, or it is the next one below a cap that is full.
 */
bool replication_is_next(const struct pool *pool);

/* Append to the StartupMessage the parameters of the client that the server is launched for. */
void replication_write_startup(const struct server_link *server, struct buffer *message);

/*
 * The server has logged in: pair it with its client, and first finish the login of the client
 * if it is WELCOMING. `head` is the beginning of a welcome with the parameters of the server,
 * which is appended to. Client and server may be closed when this returns.
 */
void replication_begin(struct server_link *server, struct buffer *head);

/*
 * Separate a server that logs in from its client, which waits on. Returns the client, or NULL
 * if the server had none.
 */
struct client_link *replication_detach(struct server_link *server);

/* Close the server that is logging in for this client, if there is one. */
void replication_close_server(struct client_link *client);

/* The client is closing: close its server that logs in, and free client->replica. */
void replication_client_closed(struct client_link *client);

/*
 * Returns true for a replication session without an end of its own: it streams, or runs no
 * query.
 */
bool replication_is_endless(const struct server_link *server);

/*
 * During a shutdown that waits for this number of clients: if all of them are such clients, close
 * them with an error.
 */
void replication_end_last(struct registry *registry, unsigned clients);

#endif
