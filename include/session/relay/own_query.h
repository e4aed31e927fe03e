/* SPDX-License-Identifier: ISC */
/*
 * Queries that pgusher itself runs on a server that has logged in: connect_query, reset and
 * check queries, ROLLBACK. Their answers are not passed to clients (relay_own_server).
 */
#ifndef PGUSHER_SESSION_RELAY_OWN_QUERY_H
#define PGUSHER_SESSION_RELAY_OWN_QUERY_H

#include "model/registry.h"

/*
 * Send a query of our own. The relay reports its end as the event own_query_done. Returns false
 * when it could not be sent; the server is closed then.
 */
bool own_query_send(struct server_link *server, const char *sql);

/*
 * The connect_query, which has to be run again after parameters of the session were reset. NULL
 * if there is none, or if it has failed on this server.
 */
const char *own_query_connect_query(const struct server_link *server);

/*
 * Log the ErrorResponse with this body, which the server has sent for a query of our own, and
 * note what follows from it for the server. Does not close the server.
 */
void own_query_error(struct server_link *server, const uint8_t *body, size_t length);

#endif
