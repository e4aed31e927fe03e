/* SPDX-License-Identifier: ISC */
/*
 * Whose login is it, at which database, and with which rights: what is known of a client by the
 * names that it gave. Nothing of that is proved yet.
 *
 * Databases and users count their clients from here on (model/limits).
 */
#ifndef PGUSHER_SESSION_LOGIN_CLIENT_IDENTITY_H
#define PGUSHER_SESSION_LOGIN_CLIENT_IDENTITY_H

#include "model/registry.h"

/* Does it log in to the console? */
bool client_identity_is_console(const struct client_link *client);

/* The operator at the machine itself: same uid, over the Unix socket, as user pgbouncer. */
bool client_identity_is_operator(struct client_link *client, const char *user);

/*
 * The client's database, if it is there already, or has to be known now. False: the client was
 * closed.
 */
bool client_identity_take_database(struct client_link *client, const char *user);

/*
 * The client's database, made now if it is an automatic one: not before it has to be there, since a
 * name alone must not cost memory. False: there is none, or the client was closed; its state tells.
 */
bool client_identity_open_database(struct client_link *client);

/*
 * The user of this name, or a mock one that can prove nothing: nobody is told which names exist.
 * False: the client was closed.
 */
bool client_identity_take_user(struct client_link *client, const char *name);

/* A user that nobody knows: it lives as long as the login. False: no memory. */
bool client_identity_take_mock(struct client_link *client, const char *name);

/* Count the client as this user's, refused or not. False: the client was closed. */
bool client_identity_count(struct client_link *client, struct user *user);

/* Does a server have to say who this is (auth_query)? */
bool client_identity_needs_lookup(const struct client_link *client, const char *name);

/*
 * On the console: whether this user may change things there (client->admin), or look at all. False:
 * not even that, and the client was closed.
 */
bool client_identity_check_rights(struct client_link *client, const char *user);

#endif
