/* SPDX-License-Identifier: ISC */
#include "model/statistics/latency.h"

const char *const latency_kind_names[LATENCY_KINDS] = {
	[LATENCY_QUERY] = "query",
	[LATENCY_TRANSACTION] = "transaction",
	[LATENCY_WAIT] = "wait",
};

/* No octave has two bounds of the histograms. */
#define NO_CUT UINT64_MAX
const uint64_t latency_cuts[LATENCY_OCTAVES] = {
	NO_CUT, /* 1 */
	NO_CUT, NO_CUT, NO_CUT, NO_CUT, NO_CUT, NO_CUT, NO_CUT, 500, /* 256 */
	1000, NO_CUT, 2500, /* 2,048 */
	5000, 10000, 25000, /* 16,384 */
	50000, 100000, 250000, 500000, /* 262,144 */
	1000000, NO_CUT, 2500000, /* 2,097,152 */
	5000000, 10000000, 30000000, /* 16,777,216 */
	60000000, NO_CUT, NO_CUT, NO_CUT, NO_CUT, NO_CUT, NO_CUT, NO_CUT, /* 4,294,967,296 */
};

/* --- cells -------------------------------------------------------------------------------- */

struct span {
	uint64_t first, last; /* microseconds */
};

/* Returns the range of times of a cell; first > last if it has none. */
static struct span span_of(unsigned cell)
{
	unsigned octave, quarter;
	uint64_t width, cut;
	struct span whole;

	if (cell < 4)
		return (struct span){cell, cell};
	octave = 2 + (cell - 4) / 5;
	quarter = (cell - 4) % 5;
	width = UINT64_C(1) << (octave - 2);
	cut = latency_cuts[octave];
	/* After the cut the number of a cell is one more than that of its quarter. */
	if (quarter > 0 && (4 + quarter) * width > cut)
		quarter--;
	else if (quarter == 4)
		return (struct span){1, 0};
	whole = (struct span){(4 + quarter) * width, (5 + quarter) * width - 1};
	if (cut < whole.first || cut >= whole.last)
		return whole;
	if ((cell - 4) % 5 == quarter)
		whole.last = cut;
	else
		whole.first = cut + 1;
	return whole;
}

uint64_t latency_cell_least(unsigned cell)
{
	return span_of(cell).first;
}

/* --- periods ------------------------------------------------------------------------------ */

/* Cells and bounds are in ascending order, and a bound never lies inside a cell. */
static void add_cells(struct histogram *histogram, const struct latency_counts *counts)
{
	unsigned bucket = 0;

	for (unsigned i = 0; i < LATENCY_CELLS; i++) {
		if (counts->cells[i] == 0)
			continue;
		while (bucket < HISTOGRAM_BOUNDS && span_of(i).first > histogram_bounds[bucket])
			bucket++;
		histogram->counts[bucket] += counts->cells[i];
	}
}

void latency_rotate(struct latency *latency)
{
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++) {
		struct latency_times *times = &latency->of[kind];

		add_cells(&times->past, &times->recent);
		times->previous = times->recent;
		times->recent = (struct latency_counts){0};
	}
}

void latency_counts_merge(struct latency_counts *a, const struct latency_counts *b)
{
	for (unsigned i = 0; i < LATENCY_CELLS; i++)
		a->cells[i] += b->cells[i];
	if (b->max > a->max)
		a->max = b->max;
}

void latency_merge(struct latency *a, const struct latency *b)
{
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++) {
		latency_counts_merge(&a->of[kind].recent, &b->of[kind].recent);
		latency_counts_merge(&a->of[kind].previous, &b->of[kind].previous);
		histogram_merge(&a->of[kind].past, &b->of[kind].past);
	}
}

/* --- results ------------------------------------------------------------------------------ */

struct histogram latency_histogram(const struct latency *latency, enum latency_kind kind)
{
	struct histogram all = latency->of[kind].past;

	add_cells(&all, &latency->of[kind].recent);
	return all;
}

/* Returns the time of the sample with this rank, counted from 1. */
static uint64_t time_of_rank(const struct latency_counts *counts, uint64_t rank)
{
	struct span span;
	unsigned i = 0;

	for (uint64_t seen = counts->cells[0]; seen < rank; seen += counts->cells[i])
		i++;
	span = span_of(i);
	if (span.last > counts->max)
		span.last = counts->max;
	return span.first + (span.last - span.first) / 2;
}

static uint64_t percentile(
	const struct latency_counts *counts, uint64_t count, unsigned percent)
{
	/* The shortest time that `percent` per cent of the samples do not exceed. */
	const uint64_t rank = (uint64_t)(((unsigned __int128)count * percent + 99) / 100);

	return count > 0 ? time_of_rank(counts, rank) : 0;
}

void latency_gather(
	struct latency_counts *sum, const struct latency *latency, enum latency_kind kind)
{
	latency_counts_merge(sum, &latency->of[kind].recent);
	latency_counts_merge(sum, &latency->of[kind].previous);
}

struct latency_summary latency_summary_of(const struct latency_counts *sum, uint64_t none)
{
	struct latency_counts all = *sum;
	struct latency_summary summary = {0};

	all.cells[0] += none;
	for (unsigned i = 0; i < LATENCY_CELLS; i++)
		summary.count += all.cells[i];
	summary.p50 = percentile(&all, summary.count, 50);
	summary.p90 = percentile(&all, summary.count, 90);
	summary.p99 = percentile(&all, summary.count, 99);
	summary.max = all.max;
	return summary;
}

struct latency_summary latency_summary(
	const struct latency *latency, enum latency_kind kind, uint64_t none)
{
	struct latency_counts sum = {0};

	latency_gather(&sum, latency, kind);
	return latency_summary_of(&sum, none);
}
