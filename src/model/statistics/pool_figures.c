/* SPDX-License-Identifier: ISC */
#include "model/statistics/pool_figures.h"

#include <stdlib.h>

#include "wire/sqlstate.h"

/* --- counts ------------------------------------------------------------------------------- */

void pool_count_error(struct pool *pool, const char *sqlstate)
{
	pool_open_errors(pool);
	if (pool->errors)
		pool->errors[sqlstate_class(sqlstate)]++;
}

void pool_open_errors(struct pool *pool)
{
	if (!pool->errors)
		pool->errors = calloc(SQLSTATE_CLASSES, sizeof(*pool->errors));
}

void pool_open_latency(struct pool *pool)
{
	if (!pool->latency)
		pool->latency = calloc(1, sizeof(*pool->latency));
}

bool pool_histogram(
	const struct pool *pool, enum latency_kind kind, struct histogram *histogram)
{
	if (!pool->latency)
		return false;
	*histogram = latency_histogram(pool->latency, kind);
	if (kind == LATENCY_WAIT)
		histogram->counts[0] +=
			pool->stats.current.assignments - histogram_count(histogram);
	return true;
}

void pool_leave_counts(const struct pool *pool, struct pool *to)
{
	stats_add(&to->stats, &pool->stats);
	to->notified += pool->notified;
	for (unsigned i = 0; i < UNSENT_ENDINGS; i++)
		to->unsent[i] += pool->unsent[i];
	if (pool->latency)
		pool_open_latency(to);
	if (pool->latency && to->latency)
		latency_merge(to->latency, pool->latency);
	if (pool->errors)
		pool_open_errors(to);
	for (unsigned i = 0; pool->errors && to->errors && i < SQLSTATE_CLASSES; i++)
		to->errors[i] += pool->errors[i];
	to->counted_transactions += pool->counted_transactions;
	to->counted_errors += pool->counted_errors;
}

uint64_t pool_errors(const struct pool *pool)
{
	uint64_t errors = pool->unsent[UNSENT_QUEUE_FULL] +
		pool->unsent[UNSENT_QUERY_WAIT_TIMEOUT] + pool->unsent[UNSENT_QUERY_TIMEOUT];

	for (unsigned i = 0; pool->errors && i < SQLSTATE_CLASSES; i++)
		errors += pool->errors[i];
	return errors;
}

void pool_end_period(struct pool *pool)
{
	stats_rotate(&pool->stats);
	if (pool->latency)
		latency_rotate(pool->latency);
}

/* --- ages --------------------------------------------------------------------------------- */

static usec_t query_age(const struct client_link *client, usec_t now)
{
	/* Another worker's loop may have read the clock a moment after the caller's. */
	return client->query_start && now > client->query_start ? now - client->query_start : 0;
}

usec_t pool_longest_wait(const struct pool *pool, usec_t now)
{
	const struct client_link *client = pool_first_waiter(pool);
	const struct link *link;
	usec_t longest = client ? query_age(client, now) : 0;

	TAILQ_FOREACH (link, &pool->welcoming, place) {
		const usec_t age = query_age((const struct client_link *)link, now);

		if (age > longest)
			longest = age;
	}
	return longest;
}

usec_t pool_queue_age(const struct pool *pool, usec_t now)
{
	const struct client_link *waiter = pool_first_waiter(pool);
	const struct link *welcoming = TAILQ_FIRST(&pool->welcoming);
	const usec_t age = waiter ? query_age(waiter, now) : 0;
	const usec_t other =
		welcoming ? query_age((const struct client_link *)welcoming, now) : 0;

	return age > other ? age : other;
}

bool pool_server_idles_in_transaction(const struct server_link *server)
{
	return server->link.peer &&
		(server->transaction_status == 'T' || server->transaction_status == 'E') &&
		requests_is_empty(&server->requests);
}

static void note_age(usec_t *oldest, usec_t since, usec_t now)
{
	if (since > 0 && now - since > *oldest)
		*oldest = now - since;
}

usec_t pool_oldest_transaction(const struct pool *pool, usec_t now)
{
	struct link *link;
	usec_t oldest = 0;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		if (link->peer)
			note_age(&oldest, client_of(link->peer)->transaction_start, now);
	}
	return oldest;
}

usec_t pool_oldest_idle_transaction(const struct pool *pool, usec_t now)
{
	struct link *link;
	usec_t oldest = 0;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		if (pool_server_idles_in_transaction(server_of(link)))
			note_age(&oldest, link->request_time, now);
	}
	return oldest;
}

/* --- statements --------------------------------------------------------------------------- */

size_t pool_prepared_statements(const struct pool *pool)
{
	struct pool_walk walk = pool_walk_servers(pool);
	const struct link *link;
	size_t prepared = 0;

	while ((link = pool_walk_next(&walk)) != NULL) {
		const struct server_link *server = (const struct server_link *)link;

		prepared += server->statements ? server->statements->count : 0;
	}
	return prepared;
}
