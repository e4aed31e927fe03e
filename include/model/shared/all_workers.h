/* SPDX-License-Identifier: ISC */
/*
 * The workers in numbers: what each has and has done, and their sums. To be called by the first
 * worker between process_stop_others() and process_let_others_run().
 */
#ifndef PGUSHER_MODEL_SHARED_ALL_WORKERS_H
#define PGUSHER_MODEL_SHARED_ALL_WORKERS_H

#include "model/registry.h"

/* Of all workers. The slabs have numbers only. */
struct worker_sums {
	struct slab clients, servers, helds, backlogs;
	unsigned logins;
	size_t statement_bytes;
};

struct worker_sums all_workers_sum(const struct process *process);

/* Of one worker. */
struct worker_counts {
	unsigned databases, pools; /* at home there; without the console's */
	size_t clients; /* without those that log in */
	size_t logins, servers;
	struct crew_figures crew;
	usec_t age;
};

struct worker_counts worker_counts_of(const struct registry *registry);

#endif
