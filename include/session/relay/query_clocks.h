/* SPDX-License-Identifier: ISC */
/*
 * Measures the duration of a client's queries and transactions, for the statistics and limits.
 *
 * Inline, because they run for every message of a client and every end of a transaction.
 */
#ifndef PGUSHER_SESSION_RELAY_QUERY_CLOCKS_H
#define PGUSHER_SESSION_RELAY_QUERY_CLOCKS_H

#include "model/client_link.h"
#include "model/pool.h"
#include "model/statistics/latency.h"

/*
 * The client sends a message: start the clocks that do not run. The query clock starts with the
 * first message of a query, the transaction clock with the first query of a transaction.
 */
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

/* Log the durations of a query, and of a transaction if that ends too, at level debug. */
static inline void query_clocks_log(
	const struct client_link *client, bool ends_transaction, usec_t now)
{
	if (client->query_start)
		link_log(&client->link, LEVEL_DEBUG, "query time: %lld us",
			(long long)(now - client->query_start));
	if (ends_transaction && client->transaction_start)
		link_log(&client->link, LEVEL_DEBUG, "transaction time: %lld us",
			(long long)(now - client->transaction_start));
}

/* Returns the time since `start` without the wait for a server, which is counted separately. */
static inline uint64_t query_clocks_served(
	const struct client_link *client, usec_t start, usec_t now)
{
	return (uint64_t)(now - (start > client->served ? start : client->served));
}

/* Add the durations to the histograms of the pool, if it has any. */
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

/*
 * The server has answered all requests of the client, with this transaction status: stop the
 * query clock, and in status 'I' the transaction clock, and add both to the statistics.
 */
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
