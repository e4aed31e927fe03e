/* SPDX-License-Identifier: ISC */
/*
 * The pools on the page: those with the most waiting and active clients come first, and there are at
 * most STATE_POOLS. Rates are those since the state was written last, or of the stats period where
 * that is too long ago.
 */
#ifndef PGUSHER_ADMIN_PAGE_STATE_POOLS_H
#define PGUSHER_ADMIN_PAGE_STATE_POOLS_H

#include "base/json.h"
#include "model/registry.h"

enum { STATE_POOLS = 200 };

/* What is counted of a pool, or of all. */
struct pool_count {
	uint64_t number; /* of the pool */
	uint64_t transactions, queries, received, sent, errors;
};

struct pool_counts {
	usec_t at; /* 0: never */
	struct pool_count sum;
	struct pool_count pools[STATE_POOLS]; /* in order by number, when complete */
	unsigned count;
};

struct state_pools {
	struct registry *registry;
	uint64_t chosen[STATE_POOLS]; /* handles of process.handles */
	unsigned chosen_count, next;
	unsigned total, servers; /* pools, except the console's, and their server connections */
	/* Of the state that is being written, and of the one before. */
	struct pool_counts now, before;
};

/* The rates of all pools, in thousandths per second; thousandths of bytes. */
struct pool_rates {
	int64_t transactions, queries, received, sent, errors;
};

/*
 * Choose pools: a walk over all. Until state_pools_end() the process's handles are in use. Returns
 * false when out of memory; state_pools_end() is to be called then too.
 */
bool state_pools_begin(struct state_pools *pools, struct registry *registry);

/* Returns the rates of all pools together. */
struct pool_rates state_pools_rates(const struct state_pools *pools);

/* Write some pools as elements of an array. Returns false when there are no more. */
bool state_pools_write(struct state_pools *pools, struct json *json, bool details);

/* All pools are written, or the state is given up. */
void state_pools_end(struct state_pools *pools);

#endif
