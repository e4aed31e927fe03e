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
#ifndef PGUSHER_SESSION_LOOKUP_AUTH_QUERY_H
#define PGUSHER_SESSION_LOOKUP_AUTH_QUERY_H

#include "model/registry.h"

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

#endif
