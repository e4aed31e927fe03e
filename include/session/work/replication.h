/* SPDX-License-Identifier: ISC */
/*
 * Clients that asked for replication: each has a server connection of its own, which logs in for
 * it with its wishes and ends with it. Who waits for that stands in pool.welcoming.
 *
 * They count as servers and clients like all others; nothing else of the pool is theirs.
 */
#ifndef PGUSHER_SESSION_WORK_REPLICATION_H
#define PGUSHER_SESSION_WORK_REPLICATION_H

#include "model/registry.h"
#include "wire/startup.h"

/* Remember what a client wants that logs in. False: no memory. */
bool replication_want(struct client_link *client, const struct startup_login *wanted);

/* Launch a server for the one that waits longest for its own, if every limit allows. */
void replication_launch(struct pool *pool);

/*
 * Does one of them wait longer than all who want any server, and for nothing but a place in the
 * pool?
 */
bool replication_is_next(const struct pool *pool);

/* Append what its StartupMessage has for the sake of the client that it is for. */
void replication_write_startup(const struct server_link *server, struct buffer *message);

/*
 * The server has logged in: its client gets it, after a welcome with the server's own parameters
 * if it still waits for that. `head` is the beginning of one, and is written to.
 */
void replication_begin(struct server_link *server, struct buffer *head);

/* The server logs in for nobody any more; returns for whom it did, who waits on. NULL: nobody. */
struct client_link *replication_detach(struct server_link *server);

/* The client needs no server any more: what logs in for it is closed. Else nothing happens. */
void replication_close_server(struct client_link *client);

/* The client is closing: let go of all that it has by this module. */
void replication_client_closed(struct client_link *client);

/*
 * Is the server's session one of replication that could go on for ever: a stream, or one in which
 * nothing runs?
 */
bool replication_is_endless(const struct server_link *server);

/* If no client is left but such ones, tell them that the process ends. */
void replication_end_last(struct registry *registry);

#endif
