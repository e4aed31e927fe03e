/* SPDX-License-Identifier: ISC */
/*
 * Histogram of durations, in the buckets that all our metrics share. Counts only ever grow.
 * For percentiles use model/statistics/latency, which has finer buckets.
 */
#ifndef PGUSHER_BASE_HISTOGRAM_H
#define PGUSHER_BASE_HISTOGRAM_H

#include <stdint.h>

#include "base/clock.h"

/* Number of buckets with an upper bound; one more bucket takes longer durations. */
enum { HISTOGRAM_BOUNDS = 16 };

/*
 * Inclusive upper bound of each bucket, in microseconds, ascending: 500 (0.5 ms) to 60,000,000
 * (60 s).
 */
extern const uint64_t histogram_bounds[HISTOGRAM_BOUNDS];

struct histogram {
	uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* per bucket, not cumulative */
	uint64_t sum; /* of all values, microseconds */
};

/* Index of the bucket that a value in microseconds belongs to. */
static inline unsigned histogram_bucket(uint64_t value)
{
	unsigned i = 0;

	while (i < HISTOGRAM_BOUNDS && value > histogram_bounds[i])
		i++;
	return i;
}

/* Count one duration, in microseconds; a negative one counts as 0. */
static inline void histogram_add(struct histogram *histogram, usec_t value)
{
	const uint64_t time = value > 0 ? (uint64_t)value : 0;

	histogram->counts[histogram_bucket(time)]++;
	histogram->sum += time;
}

/* Add the counts and the sum of b to a. */
void histogram_merge(struct histogram *a, const struct histogram *b);

/* Number of durations counted. */
uint64_t histogram_count(const struct histogram *histogram);

#endif
