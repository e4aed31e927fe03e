/* SPDX-License-Identifier: ISC */
/*
 * What a logged-in server does for us between clients: connect_query, SETs, reset and check
 * queries, and what its end or its stillness means.
 */
#ifndef PGUSHER_SESSION_WORK_SERVER_SESSION_H
#define PGUSHER_SESSION_WORK_SERVER_SESSION_H

#include "model/registry.h"

/* How the stream of a logged-in server reports. */
extern const struct stream_handlers server_session_handlers;

/* The same, for one that is to come to rest: see session/work/suspend. */
extern const struct stream_handlers server_suspend_handlers;

/* The query of our own has ended (ReadyForQuery): what it was for decides what comes next. */
void server_session_own_query_done(struct server_link *server);

#endif
