/* SPDX-License-Identifier: ISC */
/*
 * The events of servers that have logged in, and the ends of our own queries: connect_query,
 * SETs, reset and check queries.
 */
#ifndef PGUSHER_SESSION_SERVING_SERVER_SESSION_H
#define PGUSHER_SESSION_SERVING_SERVER_SESSION_H

#include "model/registry.h"

/* The stream handlers of a server that has logged in. */
extern const struct stream_handlers server_session_handlers;

/* The same during a SUSPEND: see serving/suspend. */
extern const struct stream_handlers server_suspend_handlers;

/*
 * A query of our own has ended (ReadyForQuery): take the next step, which depends on the state
 * of the server. The server may be paired or closed when this returns.
 */
void server_session_own_query_done(struct server_link *server);

#endif
