/* SPDX-License-Identifier: ISC */
/*
 * How often something took how long, in the buckets that all our metrics share. Counts only ever
 * grow. For percentiles there is model/latency, which is finer.
 */
#ifndef PGUSHER_BASE_HISTOGRAM_H
#define PGUSHER_BASE_HISTOGRAM_H

#include <stdint.h>

#include "base/clock.h"

/* Buckets with a bound; one more takes what is beyond the last. */
enum { HISTOGRAM_BOUNDS = 16 };

/* What a bucket holds at most, in microseconds, ascending: 500 (0.5 ms) to 60,000,000 (60 s). */
extern const uint64_t histogram_bounds[HISTOGRAM_BOUNDS];

struct histogram {
	uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* each bucket's own, not those below it too */
	uint64_t sum; /* of all values, microseconds */
};

/* The bucket of a value. */
static inline unsigned histogram_bucket(uint64_t value)
{
	unsigned i = 0;

	while (i < HISTOGRAM_BOUNDS && value > histogram_bounds[i])
		i++;
	return i;
}

/* Count one value, in microseconds; less than nothing is nothing. */
static inline void histogram_add(struct histogram *histogram, usec_t value)
{
	const uint64_t time = value > 0 ? (uint64_t)value : 0;

	histogram->counts[histogram_bucket(time)]++;
	histogram->sum += time;
}

/* Add b to a. */
void histogram_merge(struct histogram *a, const struct histogram *b);

/* How many values were counted. */
uint64_t histogram_count(const struct histogram *histogram);

#endif
