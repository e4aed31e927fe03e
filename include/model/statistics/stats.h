/* SPDX-License-Identifier: ISC */
/*
 * The traffic counters of a pool, and their averages over the stats period.
 *
 * A query, as counted here, begins with the first message of a client and ends with the
 * ReadyForQuery after which all requests are answered.
 */
#ifndef PGUSHER_MODEL_STATISTICS_STATS_H
#define PGUSHER_MODEL_STATISTICS_STATS_H

#include <stdint.h>

#include "base/clock.h"

struct totals {
	uint64_t assignments; /* times that a client got a server */
	uint64_t transactions;
	uint64_t queries;
	uint64_t received; /* bytes from clients */
	uint64_t sent; /* bytes from servers */
	uint64_t transaction_time; /* microseconds, as all times */
	uint64_t query_time;
	uint64_t wait_time;
	uint64_t client_parses;
	uint64_t server_parses;
	uint64_t binds;
	uint64_t client_logins; /* successful ones */
};

/* The current totals and two snapshots of them, a stats period apart. */
struct stats {
	struct totals current, newer, older;
};

/* Add b to a. */
void totals_add(struct totals *a, const struct totals *b);

/* Add the three totals of b to those of a. */
void stats_add(struct stats *a, const struct stats *b);

/* Start a new stats period: newer becomes older, and current is copied to newer. */
void stats_rotate(struct stats *stats);

/*
 * Returns averages between two totals that are `span` microseconds apart, in the same fields:
 * counts and bytes per second, times per transaction, query or assignment; 0 if there was none.
 */
struct totals stats_average(const struct totals *now, const struct totals *then, usec_t span);

#endif
