/* SPDX-License-Identifier: ISC */
#include "model/statistics/stats.h"

void totals_add(struct totals *a, const struct totals *b)
{
	a->assignments += b->assignments;
	a->transactions += b->transactions;
	a->queries += b->queries;
	a->received += b->received;
	a->sent += b->sent;
	a->transaction_time += b->transaction_time;
	a->query_time += b->query_time;
	a->wait_time += b->wait_time;
	a->client_parses += b->client_parses;
	a->server_parses += b->server_parses;
	a->binds += b->binds;
	a->client_logins += b->client_logins;
}

void stats_add(struct stats *a, const struct stats *b)
{
	totals_add(&a->current, &b->current);
	totals_add(&a->newer, &b->newer);
	totals_add(&a->older, &b->older);
}

void stats_rotate(struct stats *stats)
{
	stats->older = stats->newer;
	stats->newer = stats->current;
}

/* A pool that was freed is missing in later sums: a difference below zero counts as zero. */
static uint64_t difference(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static uint64_t per_second(uint64_t now, uint64_t then, usec_t span)
{
	return (uint64_t)((unsigned __int128)difference(now, then) * USEC_PER_SEC /
		(uint64_t)span);
}

static uint64_t per_thing(
	uint64_t now, uint64_t then, uint64_t things_now, uint64_t things_then)
{
	const uint64_t things = difference(things_now, things_then);

	return things ? difference(now, then) / things : 0;
}

struct totals stats_average(const struct totals *now, const struct totals *then, usec_t span)
{
	struct totals out = {0};

	if (span <= 0)
		return out;
	out.assignments = per_second(now->assignments, then->assignments, span);
	out.transactions = per_second(now->transactions, then->transactions, span);
	out.queries = per_second(now->queries, then->queries, span);
	out.received = per_second(now->received, then->received, span);
	out.sent = per_second(now->sent, then->sent, span);
	out.client_parses = per_second(now->client_parses, then->client_parses, span);
	out.server_parses = per_second(now->server_parses, then->server_parses, span);
	out.binds = per_second(now->binds, then->binds, span);
	out.client_logins = per_second(now->client_logins, then->client_logins, span);
	out.transaction_time = per_thing(now->transaction_time, then->transaction_time,
		now->transactions, then->transactions);
	out.query_time =
		per_thing(now->query_time, then->query_time, now->queries, then->queries);
	out.wait_time =
		per_thing(now->wait_time, then->wait_time, now->assignments, then->assignments);
	return out;
}
