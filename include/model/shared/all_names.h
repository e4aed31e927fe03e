/* SPDX-License-Identifier: ISC */
/*
 * What the resolvers of all workers know, each host name and zone once. A worker looks up the names
 * that its own databases need. To be called by the first worker between process_stop_others() and
 * process_let_others_run().
 */
#ifndef PGUSHER_MODEL_SHARED_ALL_NAMES_H
#define PGUSHER_MODEL_SHARED_ALL_NAMES_H

#include "model/process.h"
#include "net/dns_zones.h"
#include "net/resolver.h"

/* A walk over names or zones; all but `process` is zero at first. */
struct name_walk {
	const struct process *process;
	unsigned number; /* of the worker whose names come now */
	const struct resolver_name *name; /* the last one; NULL: none of this worker */
	const struct dns_zone *zone;
};

/* Returns whether there is one more name, and sets `name` to that of the first worker that has it. */
bool name_walk_next(struct name_walk *walk);

/* A row of SHOW DNS_HOSTS: of the name that the walk is at, with the answer that is valid for longest. */
struct resolver_row all_names_row(
	const struct name_walk *walk, const struct resolver_name **answer);

/* The same for the zones of the names, `zone` and SHOW DNS_ZONES. */
bool zone_walk_next(struct name_walk *walk);
struct dns_zone_row all_zones_row(const struct name_walk *walk);

/* Return the number of names and zones, and of questions in flight. */
size_t all_names_count(const struct process *process);
size_t all_zones_count(const struct process *process);
size_t all_names_in_flight(const struct process *process);

/* Returns the sum of the counts of all resolvers. */
struct resolver_counts all_names_counts(const struct process *process);

#endif
