/* SPDX-License-Identifier: ISC */
#include "session/query_clocks.h"

#include "model/latency.h"
#include "model/pool.h"
void query_clocks_start(struct client_link *client)
{
	struct totals *totals = &client->link.pool->stats.current;
	const usec_t now = loop_now(client->link.stream.loop);

	if (client->query_start == 0) {
		client->query_start = now;
		totals->queries++;
	}
	if (client->transaction_start == 0) {
		client->transaction_start = now;
		totals->transactions++;
	}
}

/* Its time with a server: what it waited for one before has been counted as a wait. */
static uint64_t time_with_server(const struct client_link *client, usec_t start, usec_t now)
{
	return (uint64_t)(now - (start > client->served ? start : client->served));
}

static void add_latencies(const struct client_link *client, bool ends_transaction, usec_t now)
{
	struct latency *latency = client->link.pool->latency;
	const usec_t query = client->query_start, transaction = client->transaction_start;

	if (!latency)
		return;
	if (ends_transaction && query && query == transaction) {
		latency_add_single(latency, time_with_server(client, query, now));
		return;
	}
	if (query)
		latency_add(latency, LATENCY_QUERY, time_with_server(client, query, now));
	if (ends_transaction && transaction)
		latency_add(latency, LATENCY_TRANSACTION,
			time_with_server(client, transaction, now));
}

/* For those who watch single queries. */
__attribute__((noinline, cold)) static void log_times(
	const struct client_link *client, bool ends_transaction, usec_t now)
{
	if (client->query_start)
		link_log(&client->link, LEVEL_DEBUG, "query time: %lld us",
			(long long)(now - client->query_start));
	if (ends_transaction && client->transaction_start)
		link_log(&client->link, LEVEL_DEBUG, "transaction time: %lld us",
			(long long)(now - client->transaction_start));
}

void query_clocks_stop(struct client_link *client, char status)
{
	struct totals *totals = &client->link.pool->stats.current;
	const usec_t now = loop_now(client->link.stream.loop);

	add_latencies(client, status == 'I', now);
	if (log_enabled(LEVEL_DEBUG))
		log_times(client, status == 'I', now);
	if (client->query_start) {
		totals->query_time += (uint64_t)(now - client->query_start);
		client->query_start = 0;
	}
	if (status == 'I' && client->transaction_start) {
		totals->transaction_time += (uint64_t)(now - client->transaction_start);
		client->transaction_start = 0;
	}
}
