/* SPDX-License-Identifier: ISC */
/*
 * Looks up users that are in no file by a query: auth_user, auth_query, auth_dbname.
 *
 * The query runs once for every login, as auth_user, on a server of an ordinary pool. Clients
 * cannot influence it: their parameters are not set on this server, and a server that a client
 * has used before is reset first, since its session may have a search_path, a role or a
 * temporary pg_authid of the client. Protocol: "Message Flow", Extended Query.
 */
#ifndef PGUSHER_SESSION_LOOKUP_AUTH_QUERY_H
#define PGUSHER_SESSION_LOOKUP_AUTH_QUERY_H

#include "model/registry.h"

/*
 * Returns the auth_user that looks up users of this database: of its entry, else the global
 * one. Returns NULL if users are not looked up. The text belongs to the configuration.
 */
const char *auth_query_user(
	const struct registry *registry, const struct database_config *entry);

/*
 * Look up this user for an AUTHENTICATING client. The client is LOOKING_UP when this returns,
 * or was closed. It continues with login_steps.found, or is closed when the look-up fails.
 */
void auth_query_begin(struct client_link *client, const char *user);

#endif
