/* SPDX-License-Identifier: ISC */
/*
 * Users who stand in no file are looked up by a query: auth_user, auth_query, auth_dbname.
 *
 * The query runs in a pool like any other, as auth_user, by the extended protocol, for every
 * login anew. Nothing that clients chose is in force on its connection: their parameters are
 * never set there, and a server that a client has used before is made as new first, since that
 * one may have left a search_path, a role or a temporary pg_authid behind.
 * Protocol: "Message Flow", Extended Query.
 */
#ifndef PGUSHER_SESSION_AUTH_QUERY_H
#define PGUSHER_SESSION_AUTH_QUERY_H

#include "session/lookup.h"

/*
 * As whom users of this database are looked up: its entry's auth_user, else the global one. NULL:
 * they are not. A database without an entry of its own, which is yet to be made, has none here.
 */
const char *auth_query_user(
	const struct registry *registry, const struct database_config *entry);

/*
 * Look up who this client, AUTHENTICATING, says to be: it is LOOKING_UP now, and goes on with
 * client_login_found() or is closed; or it was closed at once.
 */
void auth_query_begin(struct client_link *client, const char *user);

/* An idle server runs the look-up whose turn it is. It may be closed by this. */
void auth_query_run(struct lookup *lookup, struct server_link *server);

enum auth_query_progress {
	AUTH_QUERY_GOES_ON,
	AUTH_QUERY_ENDS, /* that was the last of it */
	AUTH_QUERY_BROKEN, /* it is not what we asked for: close the server for that reason */
};

/* One message of the server, whole. */
enum auth_query_progress auth_query_answer(struct server_link *server, uint8_t type,
	const uint8_t *body, size_t length, enum reason *why);

/* The server has answered all: it is released, and the logins go on. */
void auth_query_done(struct server_link *server);

/* The server of a look-up is closed: another one may do, else its logins fail. */
void auth_query_server_gone(struct server_link *server, const struct failure *why);

/* The client of a login is closing. */
void auth_query_leave(struct login *login);

/* No server will come for those who wait for one in this pool: close them. */
void auth_query_refuse(struct pool *pool, const struct failure *why);

#endif
