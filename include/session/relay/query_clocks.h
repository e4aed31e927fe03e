/* SPDX-License-Identifier: ISC */
/*
 * How long a client's queries and transactions take, for the statistics and for its limits.
 *
 * Every message of a client starts them, and the end of every transaction stops them: hence inline.
 */
#ifndef PGUSHER_SESSION_RELAY_QUERY_CLOCKS_H
#define PGUSHER_SESSION_RELAY_QUERY_CLOCKS_H

#include "model/client_link.h"
#include "model/latency.h"
#include "model/pool.h"

/* A query cycle begins with its first message, a transaction with its first query. */
static inline void query_clocks_start(struct client_link *client)
{
	struct totals *totals;
	usec_t now;

	if (client->query_start != 0 && client->transaction_start != 0)
		return;
	totals = &client->link.pool->stats.current;
	now = loop_now(client->link.stream.loop);
	if (client->query_start == 0) {
		client->query_start = now;
		totals->queries++;
	}
	if (client->transaction_start == 0) {
		client->transaction_start = now;
		totals->transactions++;
	}
}

/* For those who watch single queries. */
void query_clocks_log(const struct client_link *client, bool ends_transaction, usec_t now);

/* Its time with a server: what it waited for one before has been counted as a wait. */
static inline uint64_t query_clocks_served(
	const struct client_link *client, usec_t start, usec_t now)
{
	return (uint64_t)(now - (start > client->served ? start : client->served));
}

static inline void query_clocks_add(
	const struct client_link *client, bool ends_transaction, usec_t now)
{
	struct latency *latency = client->link.pool->latency;
	const usec_t query = client->query_start, transaction = client->transaction_start;

	if (!latency)
		return;
	if (ends_transaction && query && query == transaction) {
		latency_add_single(latency, query_clocks_served(client, query, now));
		return;
	}
	if (query)
		latency_add(latency, LATENCY_QUERY, query_clocks_served(client, query, now));
	if (ends_transaction && transaction)
		latency_add(latency, LATENCY_TRANSACTION,
			query_clocks_served(client, transaction, now));
}

/* Nothing is owed any more: the query is over, and in status I the transaction too. */
static inline void query_clocks_stop(struct client_link *client, char status)
{
	struct totals *totals = &client->link.pool->stats.current;
	const usec_t now = loop_now(client->link.stream.loop);

	query_clocks_add(client, status == 'I', now);
	if (log_enabled(LEVEL_DEBUG))
		query_clocks_log(client, status == 'I', now);
	if (client->query_start) {
		totals->query_time += (uint64_t)(now - client->query_start);
		client->query_start = 0;
	}
	if (status == 'I' && client->transaction_start) {
		totals->transaction_time += (uint64_t)(now - client->transaction_start);
		client->transaction_start = 0;
	}
}

#endif
