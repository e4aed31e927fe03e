/* SPDX-License-Identifier: ISC */
/*
 * The limits that are shared by everything in the process: asked for here, never counted on the
 * spot. Each take that succeeds is paired with one give by whoever closes.
 */
#ifndef PGUSHER_MODEL_LIMITS_H
#define PGUSHER_MODEL_LIMITS_H

#include <stdbool.h>

#include "base/failure.h"

struct client_link;
struct database;
struct pool;
struct registry;
struct user;

struct limits {
	unsigned clients; /* sockets accepted and not closed: all kinds */
};

/* A client's socket was accepted or is gone. */
void limits_take_socket(struct registry *registry);
void limits_give_socket(struct registry *registry);

/*
 * Is there room for one more client among all (max_client_conn)? The console is exempt. The
 * client's socket has already been taken.
 */
bool limits_allow_client(const struct registry *registry, bool console);

/*
 * Count the client for its database or user. False when that is one too many; it is counted all
 * the same until limits_give_client(). exempt: count, but never refuse. A client that turns out
 * to be another user is no longer counted for the one before.
 */
bool limits_take_database(struct client_link *client, struct database *database, bool exempt);
bool limits_take_user(struct client_link *client, struct user *user, bool exempt);

/* The client leaves: give back what it took. */
void limits_give_client(struct client_link *client);

/* May the pool's database or user have one more server connection? */
bool limits_allow_database_server(const struct pool *pool);
bool limits_allow_user_server(const struct pool *pool);

/* A server connection is launched, or is gone. */
void limits_take_server(struct pool *pool);
void limits_give_server(struct pool *pool);

#endif
