/* SPDX-License-Identifier: ISC */
/*
 * Errors about a statement for which the server has another name than the client: what the client
 * gets is what PostgreSQL would have sent for the client's own messages.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_SQL_ERRORS_H
#define PGUSHER_SESSION_STATEMENTS_SQL_ERRORS_H

#include "session/relay/relay.h"

/*
 * Returns true if the server's oldest request is to hand over a statement to it: that this failed
 * is told by the Query behind it.
 */
bool sql_errors_are_swallowed(const struct server_link *server);

/* Returns true if the server's oldest request is one of pgusher's before a message of the client. */
bool sql_errors_are_carried(const struct server_link *server);

/*
 * Judge the ErrorResponse of the oldest request: returns RELAY_DROP, with another message inserted
 * in its place, if it has a name of pgusher's, or is about a Query with one or about a PREPARE of pgusher's.
 * Else RELAY_PASS.
 */
enum verdict sql_errors_judge(struct relay_run *run);

#endif
