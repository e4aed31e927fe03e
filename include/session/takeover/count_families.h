/* SPDX-License-Identifier: ISC */
/*
 * Everything that is counted and never lowered, but totals of traffic: one row for each array of
 * counters, with the words that its elements have. session/takeover/count_record tells another process of
 * it; so a new counter needs a row here, or it begins anew with each online restart.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_COUNT_FAMILIES_H
#define PGUSHER_SESSION_TAKEOVER_COUNT_FAMILIES_H

#include "model/registry.h"

enum count_shape {
	COUNT_NUMBER, /* uint64_t: a total */
	COUNT_HISTOGRAM, /* struct histogram: its sum, and pairs of bounds */
	COUNT_HISTOGRAM_AT, /* a pointer to one, which may be NULL */
	COUNT_LATENCY, /* struct latency_counts: its longest time, and pairs of times */
};

/* Counts of one kind, as they stand in a struct: rows of as many as there are words. */
struct count_family {
	const char *name;
	const char *const *rows,
		*const *words; /* NULL: one row, one word, both without a name */
	unsigned row_count, word_count;
	enum count_shape shape;
	size_t offset, stride;
};

/* The struct in which families stand, of whoever is being told of; NULL: there is none. */
typedef void *count_place(void *owner, bool make);

struct count_table {
	const struct count_family *families;
	size_t count;
	count_place *place;
};

/* Of a registry, a database, a pool; each ends with a table that has no families. */
extern const struct count_table count_tables_of_process[], count_tables_of_database[],
	count_tables_of_pool[];

#endif
