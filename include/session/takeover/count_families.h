/* SPDX-License-Identifier: ISC */
/*
 * Every counter that is never lowered, except totals of traffic: one row for each array of
 * counters, with the labels of its elements. takeover/count_record writes them for another
 * process. A new counter needs a row here; otherwise it restarts at zero with each online
 * restart.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_COUNT_FAMILIES_H
#define PGUSHER_SESSION_TAKEOVER_COUNT_FAMILIES_H

#include "model/registry.h"

enum count_shape {
	COUNT_NUMBER, /* uint64_t: a total */
	COUNT_HISTOGRAM, /* struct histogram: its sum, and pairs of bound and count */
	COUNT_HISTOGRAM_AT, /* a pointer to a struct histogram, which may be NULL */
	COUNT_LATENCY, /* struct latency_counts: longest time, and pairs of time and count */
};

/* An array of counters in a struct: `row_count` rows of `column_count` elements. */
struct count_family {
	const char *name;
	const char *const *rows, *const *columns; /* labels; NULL: one without a label */
	unsigned row_count, column_count;
	enum count_shape shape;
	size_t offset, stride; /* of the first element, and from one to the next */
};

/*
 * Return the struct that holds the counters of this owner, or NULL when there is none. make:
 * make it if there is none yet; NULL means out of memory then.
 */
typedef void *count_place(void *owner, bool make);

struct count_table {
	const struct count_family *families;
	size_t count;
	count_place *place;
};

/*
 * The counters of a registry, a database and a pool; a table without families ends each list.
 */
extern const struct count_table count_tables_of_process[], count_tables_of_database[],
	count_tables_of_pool[];

#endif
