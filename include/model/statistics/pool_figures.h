/* SPDX-License-Identifier: ISC */
/*
 * What a pool counts since it was made, and how long its clients and servers have been at something: for
 * SHOW, the metrics, the page, advice and the slow-query log. Times are of the loop's clock.
 */
#ifndef PGUSHER_MODEL_STATISTICS_POOL_FIGURES_H
#define PGUSHER_MODEL_STATISTICS_POOL_FIGURES_H

#include "model/pool.h"

/* --- counts ------------------------------------------------------------------------------- */

/* Count an ErrorResponse of a server with this SQLSTATE; NULL: it has none. */
void pool_count_error(struct pool *pool, const char *sqlstate);

/* Allocate pool->latency, or pool->errors; it stays NULL when out of memory. */
void pool_open_latency(struct pool *pool);
void pool_open_errors(struct pool *pool);

/*
 * Write the histogram since the start. Waits include clients that did not wait, with time 0, so
 * that there are as many waits as assignments. Returns false, without a result, before the
 * first query.
 */
bool pool_histogram(
	const struct pool *pool, enum latency_kind kind, struct histogram *histogram);

/* Add the counts of a pool that is about to be freed to another pool. */
void pool_leave_counts(const struct pool *pool, struct pool *to);

/* Returns the errors of its servers, and queries that ended because none was free in time. */
uint64_t pool_errors(const struct pool *pool);

/* Start a new stats period. */
void pool_end_period(struct pool *pool);

/* --- ages --------------------------------------------------------------------------------- */

/* Returns the age of the longest waiting query, as in SHOW POOLS; 0 if none waits. */
usec_t pool_longest_wait(const struct pool *pool, usec_t now);

/* The same without a walk over clients: the first clients have waited longest. */
usec_t pool_queue_age(const struct pool *pool, usec_t now);

/* Returns whether a transaction is open and all requests of its client are answered. */
bool pool_server_idles_in_transaction(const struct server_link *server);

/*
 * Return the age of the oldest open transaction, and of the one that has waited longest for the
 * next message of its client; 0 if there is none. Both walk the active servers.
 */
usec_t pool_oldest_transaction(const struct pool *pool, usec_t now);
usec_t pool_oldest_idle_transaction(const struct pool *pool, usec_t now);

/* --- statements --------------------------------------------------------------------------- */

/* Returns the sum of the numbers of statements that are prepared on its servers. */
size_t pool_prepared_statements(const struct pool *pool);

#endif
