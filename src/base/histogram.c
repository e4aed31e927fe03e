/* SPDX-License-Identifier: ISC */
#include "base/histogram.h"

const uint64_t histogram_bounds[HISTOGRAM_BOUNDS] = {
	500,
	1000,
	2500,
	5000,
	10000,
	25000,
	50000,
	100000,
	250000,
	500000,
	1000000,
	2500000,
	5000000,
	10000000,
	30000000,
	60000000,
};

void histogram_merge(struct histogram *a, const struct histogram *b)
{
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		a->counts[i] += b->counts[i];
	a->sum += b->sum;
}

uint64_t histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;

	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		count += histogram->counts[i];
	return count;
}
