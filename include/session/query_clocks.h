/* SPDX-License-Identifier: ISC */
/*
 * How long a client's queries and transactions take, for the statistics and for its limits.
 */
#ifndef PGUSHER_SESSION_QUERY_CLOCKS_H
#define PGUSHER_SESSION_QUERY_CLOCKS_H

#include "model/client_link.h"

/* A query cycle begins with its first message, a transaction with its first query. */
void query_clocks_start(struct client_link *client);

/* Nothing is owed any more: the query is over, and in status I the transaction too. */
void query_clocks_stop(struct client_link *client, char status);

#endif
