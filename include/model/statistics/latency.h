/* SPDX-License-Identifier: ISC */
/*
 * Durations of the queries, transactions and waits of a pool: percentiles over the stats
 * period, and the histograms of the metrics since the start, from one set of cells.
 *
 * A query is timed from its first byte to the server until its end, a transaction from when it
 * has a server until its end; the time before that is a wait. Each octave of microseconds has
 * four cells of equal width, and a fifth one if a bound of the histograms lies inside a cell
 * and splits it. So the histograms are exact, and a percentile is off by an eighth at most.
 *
 * Allocated when the first query of a pool gets a server, with a fixed size: counting a sample
 * allocates nothing.
 */
#ifndef PGUSHER_MODEL_STATISTICS_LATENCY_H
#define PGUSHER_MODEL_STATISTICS_LATENCY_H

#include <stdint.h>

#include "base/histogram.h"

enum latency_kind {
	LATENCY_QUERY,
	LATENCY_TRANSACTION,
	/* Only clients that had to wait are counted; pool_histogram() adds the others. */
	LATENCY_WAIT,
	LATENCY_KINDS,
};

/* "query", "transaction", "wait". */
extern const char *const latency_kind_names[LATENCY_KINDS];

enum {
	/* Times of 2^33 microseconds (more than two hours) and above are in the last cell. */
	LATENCY_OCTAVES = 33,
	/* The last octave has no cut. */
	LATENCY_CELLS = (LATENCY_OCTAVES - 3) * 5 + 8,
};

/* For each octave the bound of the histograms that lies in it; UINT64_MAX if there is none. */
extern const uint64_t latency_cuts[LATENCY_OCTAVES];

/* Counts of a period. */
struct latency_counts {
	uint64_t cells[LATENCY_CELLS];
	uint64_t max; /* microseconds */
};

struct latency_times {
	struct latency_counts recent, previous; /* this stats period, and the one before */
	struct histogram past; /* samples before `recent`; its sum includes those of `recent` */
};

struct latency {
	struct latency_times of[LATENCY_KINDS];
};

/* Returns the cell of a time in microseconds. */
static inline unsigned latency_cell(uint64_t time)
{
	const uint64_t largest = (UINT64_C(1) << LATENCY_OCTAVES) - 1;
	const uint64_t value = time < largest ? time : largest;
	const unsigned octave = 63 - (unsigned)__builtin_clzll(value | 4);

	/* The shifted value is 4 to 7 in an octave; times below 4 have a cell each. */
	return (octave - 2) * 5 + (unsigned)(value >> (octave - 2)) +
		(value > latency_cuts[octave]);
}

/* Returns the shortest time of a cell. */
uint64_t latency_cell_least(unsigned cell);

/* Count a time of which the caller knows the cell. */
static inline void latency_add_to(struct latency_times *times, unsigned cell, uint64_t time)
{
	times->recent.cells[cell]++;
	times->past.sum += time;
	if (time > times->recent.max)
		times->recent.max = time;
}

/* Count one time in microseconds. */
static inline void latency_add(struct latency *latency, enum latency_kind kind, uint64_t time)
{
	latency_add_to(&latency->of[kind], latency_cell(time), time);
}

/* Count the time of a query that is a transaction by itself, as most are. */
static inline void latency_add_single(struct latency *latency, uint64_t time)
{
	const unsigned cell = latency_cell(time);

	latency_add_to(&latency->of[LATENCY_QUERY], cell, time);
	latency_add_to(&latency->of[LATENCY_TRANSACTION], cell, time);
}

/* Start a new stats period. */
void latency_rotate(struct latency *latency);

/* Add the counts of b to a; they may belong to different pools. */
void latency_merge(struct latency *a, const struct latency *b);

/* Returns the histogram since the start, for the metrics. */
struct histogram latency_histogram(const struct latency *latency, enum latency_kind kind);

/* Add the counts of b to a. */
void latency_counts_merge(struct latency_counts *a, const struct latency_counts *b);

/* Add the counts of one kind, of the current stats period and the one before, to a sum. */
void latency_gather(
	struct latency_counts *sum, const struct latency *latency, enum latency_kind kind);

/* The percentiles in SHOW: of the current stats period and the one before. */
struct latency_summary {
	uint64_t count;
	uint64_t p50, p90, p99, max; /* microseconds; 0 if nothing was counted */
};

/*
 * Returns the summary of one kind; `none` is a number of additional samples of time 0. A
 * percentile is the middle of the cell that has the sample of that rank, so it is off by an
 * eighth at most; max is exact.
 */
struct latency_summary latency_summary(
	const struct latency *latency, enum latency_kind kind, uint64_t none);

/* Returns the same of a sum that was gathered. */
struct latency_summary latency_summary_of(const struct latency_counts *sum, uint64_t none);

#endif
