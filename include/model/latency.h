/* SPDX-License-Identifier: ISC */
/*
 * How long queries, transactions and waits of a pool took: percentiles over the stats period, and
 * the buckets of the metrics since the start, from one set of cells.
 *
 * A query is timed from its first byte to the server until its end, a transaction from when it
 * had a server until its end; what was spent waiting for one is the wait's. Each octave of
 * microseconds has four cells of equal width, and one more where a bound of the metrics cuts a
 * cell in two: so what the metrics tell is exact, and a percentile is off by an eighth at most.
 *
 * Made when a pool's first query has a server, and of constant size: nothing is ever allocated
 * for a sample.
 */
#ifndef PGUSHER_MODEL_LATENCY_H
#define PGUSHER_MODEL_LATENCY_H

#include <stdint.h>

#include "base/histogram.h"

enum latency_kind {
	LATENCY_QUERY,
	LATENCY_TRANSACTION,
	/* Only those who had to wait are counted here: see latency_add_unwaited(). */
	LATENCY_WAIT,
	LATENCY_KINDS,
};

/* "query", "transaction", "wait". */
extern const char *const latency_kind_names[LATENCY_KINDS];

enum {
	/* Beyond 2^33 microseconds, more than two hours, all is one cell. */
	LATENCY_OCTAVES = 33,
	/* The last octave has no cut. */
	LATENCY_CELLS = (LATENCY_OCTAVES - 3) * 5 + 8,
};

/* Where the metrics have a bound in an octave: the bound; elsewhere more than anything. */
extern const uint64_t latency_cuts[LATENCY_OCTAVES];

/* Counts of a stretch of time. */
struct latency_counts {
	uint64_t cells[LATENCY_CELLS];
	uint64_t max; /* microseconds */
};

struct latency_times {
	struct latency_counts recent, previous; /* this stats period, and the one before */
	struct histogram past; /* all that is not in `recent`; its sum has that, too */
};

struct latency {
	struct latency_times of[LATENCY_KINDS];
};

/* The cell of a time, in microseconds. */
static inline unsigned latency_cell(uint64_t time)
{
	const uint64_t largest = (UINT64_C(1) << LATENCY_OCTAVES) - 1;
	const uint64_t value = time < largest ? time : largest;
	const unsigned octave = 63 - (unsigned)__builtin_clzll(value | 4);

	/* Four to seven within the octave; below it, times that have a cell each. */
	return (octave - 2) * 5 + (unsigned)(value >> (octave - 2)) +
		(value > latency_cuts[octave]);
}

/* The shortest time of that cell. */
uint64_t latency_cell_least(unsigned cell);

static inline void latency_add_to(struct latency_times *times, unsigned cell, uint64_t time)
{
	times->recent.cells[cell]++;
	times->past.sum += time;
	if (time > times->recent.max)
		times->recent.max = time;
}

/* Count one time. */
static inline void latency_add(struct latency *latency, enum latency_kind kind, uint64_t time)
{
	latency_add_to(&latency->of[kind], latency_cell(time), time);
}

/* Count the time of a query that was a transaction by itself, as most are. */
static inline void latency_add_single(struct latency *latency, uint64_t time)
{
	const unsigned cell = latency_cell(time);

	latency_add_to(&latency->of[LATENCY_QUERY], cell, time);
	latency_add_to(&latency->of[LATENCY_TRANSACTION], cell, time);
}

/* The stats period is over. */
void latency_rotate(struct latency *latency);

/* Add b to a; both may be of different pools. */
void latency_merge(struct latency *a, const struct latency *b);

/* What the metrics tell, since the start. */
struct histogram latency_histogram(const struct latency *latency, enum latency_kind kind);

/* The last one to two stats periods, as SHOW tells them. */
struct latency_summary {
	uint64_t count;
	uint64_t p50, p90, p99, max; /* microseconds; 0 if nothing was counted */
};

/*
 * `none`: so many more that took no time at all. Percentiles are the middle of the cell in which
 * the value of that rank lies, so that they are off by an eighth of it at most; max is exact.
 */
struct latency_summary latency_summary(
	const struct latency *latency, enum latency_kind kind, uint64_t none);

#endif
