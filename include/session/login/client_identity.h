/* SPDX-License-Identifier: ISC */
/*
 * Finds a client's database and user by the names in its startup message, and its rights on the
 * console. The client has not proved its identity yet.
 *
 * From here on databases and users count the client among theirs (model/limits).
 */
#ifndef PGUSHER_SESSION_LOGIN_CLIENT_IDENTITY_H
#define PGUSHER_SESSION_LOGIN_CLIENT_IDENTITY_H

#include "model/registry.h"

/* Does the client log in to the console? */
bool client_identity_is_console(const struct client_link *client);

/*
 * Is the client the operator of this pgusher, admitted to the console without authentication?
 * True for user pgbouncer over a Unix socket, with the uid of this process.
 */
bool client_identity_is_operator(struct client_link *client, const char *user);

/*
 * Find the client's database and count the client there. A database that does not exist yet is
 * made only if the login needs its configuration now (auth_type=any). Returns false when the
 * client was closed.
 */
bool client_identity_take_database(struct client_link *client, const char *user);

/*
 * Find the client's database, or make it if it is an automatic one, and count the client there.
 * Called only when the database is needed, since a mere name must not cost memory. Returns
 * false when there is no such database or the client was closed: link.state is CLIENT_CLOSED
 * then.
 */
bool client_identity_open_database(struct client_link *client);

/*
 * Set the client's user: the user of this name, or a mock user if there is none. A mock user
 * goes through authentication and always fails, so that a client cannot find out which names
 * exist. Returns false when the client was closed.
 */
bool client_identity_take_user(struct client_link *client, const char *name);

/*
 * Make a mock user of this name for the client. The client's login owns it. Returns false when
 * out of memory.
 */
bool client_identity_take_mock(struct client_link *client, const char *name);

/*
 * Count the client as one of this user's clients, even if it exceeds their limit. Returns false
 * in this case; the client was closed then.
 */
bool client_identity_count(struct client_link *client, struct user *user);

/* Must the user of this name be looked up at a server (auth_query)? */
bool client_identity_needs_lookup(const struct client_link *client, const char *name);

/*
 * For a client of the console: set client->admin if this user may change things there. Returns
 * false when the user may not even look; the client was closed then.
 */
bool client_identity_check_rights(struct client_link *client, const char *user);

#endif
