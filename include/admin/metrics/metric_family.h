/* SPDX-License-Identifier: ISC */
/*
 * The table of metrics. A family is a row: its name, type, unit, source of samples and help
 * text. A source collects the samples of all its families, which are neighbours in the table,
 * at one moment.
 *
 * The order of the table is the order of the page, the most important family first: if the page
 * would become too long, families at its end are left out.
 */
#ifndef PGUSHER_ADMIN_METRICS_METRIC_FAMILY_H
#define PGUSHER_ADMIN_METRICS_METRIC_FAMILY_H

#include <stddef.h>

#include "admin/metrics/metric_samples.h"
#include "model/registry.h"

enum metric_type {
	METRIC_GAUGE,
	METRIC_COUNTER,
	METRIC_HISTOGRAM,
	METRIC_UNTYPED, /* a counter with a given name that lacks the suffix `_total` */
};

enum metric_unit {
	METRIC_NUMBER,
	METRIC_SECONDS, /* the figure is in microseconds */
};

struct metrics;

/* What samples are collected from. */
struct metric_context {
	struct registry *registry;
	const struct metrics *metrics; /* the endpoint's own counters */
	usec_t now; /* the loop's time */
	uint64_t series_dropped; /* samples left out of this page so far */
};

struct metric_source {
	/* Add the rows; metric_samples_begin() has been called. `detail` is the source's. */
	void (*collect)(struct metric_samples *samples, const struct metric_context *context,
		const void *detail);
	size_t figures_size;
	const void *detail;
};

struct metric_family {
	const char *name; /* including the `_total` of a counter */
	enum metric_type type;
	enum metric_unit unit;
	const struct metric_source *source;
	size_t figure; /* offset in the row's figures of an int64_t or a struct histogram */
	const char *help;
};

/* The table; ends with a row without a name. */
extern const struct metric_family metric_families[];

#endif
