/* SPDX-License-Identifier: ISC */
/*
 * Counts and limits of clients, for the whole process, a database or a user. Each
 * limits_take_...() must be followed by one limits_give_...() when the connection is closed. A
 * limit of 0 or less means no limit, except for max_client_conn. Limits of servers are in
 * model/cap.
 */
#ifndef PGUSHER_MODEL_LIMITS_H
#define PGUSHER_MODEL_LIMITS_H

#include <stdbool.h>

#include "base/failure.h"
#include "model/cap.h"

struct client_link;
struct database;
struct pool;
struct registry;
struct user;

/* All loops change these counts: see base/lock. */
struct limits {
	unsigned clients; /* accepted sockets that are open, of clients of all kinds */
	unsigned admitted; /* of these clients: limits_admit_client() */
	unsigned consoles; /* of the admitted ones: clients of the console */
};

/* Count, or uncount, the socket of a client: it was accepted, or closed. */
void limits_take_socket(struct registry *registry);
void limits_give_socket(struct registry *registry);

/*
 * Returns whether the number of clients is within max_client_conn; always true for the console.
 * The client's socket must be counted already.
 */
bool limits_allow_client(const struct registry *registry, bool console);

/*
 * The client has said what it wants and may stay, as far as the process is concerned: count it
 * as admitted until limits_give_client().
 */
void limits_admit_client(struct client_link *client, bool console);

/*
 * Set the client's database or user and count the client there, until limits_give_client().
 * Returns false when that exceeds the limit; the client is counted nevertheless. `exempt`:
 * always returns true. limits_take_user() with another user uncounts the client for the
 * previous one, which may be freed.
 */
bool limits_take_database(struct client_link *client, struct database *database, bool exempt);
bool limits_take_user(struct client_link *client, struct user *user, bool exempt);

/*
 * The client is closed: uncount it for the process, its user and database. The user is freed if nothing
 * needs it any more, and so is a database that is no longer configured.
 */
void limits_give_client(struct client_link *client);

#endif
