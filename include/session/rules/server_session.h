/* SPDX-License-Identifier: ISC */
/*
 * What a logged-in server does for us between clients: connect_query, SETs, reset and check
 * queries, and what its end or its stillness means.
 */
#ifndef PGUSHER_SESSION_RULES_SERVER_SESSION_H
#define PGUSHER_SESSION_RULES_SERVER_SESSION_H

#include "model/registry.h"

/* How the stream of a logged-in server reports. */
extern const struct stream_handlers server_session_handlers;

/* The same, for one that is to come to rest: see session/work/suspend. */
extern const struct stream_handlers server_resting_handlers;

/* Give a link (of either kind) one more tracked value. False: no memory, or too much of it. */
bool link_set_parameter(struct link *link, unsigned index, const char *value);

/* Send a query of our own; its answers go to relay_own_server. False: the server was closed. */
bool server_ask(struct server_link *server, const char *sql);

/* What has to be said again when parameters of its session were reset; NULL: nothing. */
const char *server_prelude(const struct server_link *server);

/* An ErrorResponse to a query of our own: log it as far as operators care. */
void server_own_error(struct server_link *server, const uint8_t *body, size_t length);

/* The query of our own has ended (ReadyForQuery): what it was for decides what comes next. */
void server_own_done(struct server_link *server);

#endif
