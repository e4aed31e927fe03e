/* SPDX-License-Identifier: ISC */
/*
 * Counters of a pool, bumped in place, and their averages over the stats period.
 *
 * A query cycle begins with a client's
 * first message and ends with the ReadyForQuery that leaves nothing owed.
 */
#ifndef PGUSHER_MODEL_STATS_H
#define PGUSHER_MODEL_STATS_H

#include <stdint.h>

#include "base/clock.h"

struct totals {
	uint64_t assignments; /* clients given a server */
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
};

/* The current totals and two snapshots of them, a stats period apart. */
struct stats {
	struct totals current, newer, older;
};

/* Add b to a. */
void totals_add(struct totals *a, const struct totals *b);

/* Add the three totals of b to those of a. */
void stats_add(struct stats *a, const struct stats *b);

/* The stats period is over: newer becomes older, current becomes newer. */
void stats_rotate(struct stats *stats);

/*
 * Averages between two totals that are `span` microseconds apart, under the same names: counts
 * and bytes per second, times per transaction, query or assignment; 0 where there is none.
 */
struct totals stats_average(const struct totals *now, const struct totals *then, usec_t span);

#endif
