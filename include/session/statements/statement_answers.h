/* SPDX-License-Identifier: ISC */
/*
 * ParseComplete and CloseComplete messages that pgusher itself sends to a client, in the order
 * of its requests: for a Parse of a statement that the server already has, and for each Close.
 * Protocol: "Message Flow", Extended Query.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_STATEMENT_ANSWERS_H
#define PGUSHER_SESSION_STATEMENTS_STATEMENT_ANSWERS_H

#include "model/statements_in_flight.h"
#include "session/relay/relay.h"

/* Insert the answers that are due into the run of the server. */
void statement_answers_insert(struct relay_run *run);

/*
 * Send the answers that are due to the client of the server, unless requests are in flight
 * behind them: the next run of the server inserts the answers then. Returns false when the
 * client's connection is broken; the caller closes the client.
 */
bool statement_answers_send(struct server_link *server);

#endif
