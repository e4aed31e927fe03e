/* SPDX-License-Identifier: ISC */
/*
 * The table of what the metrics page holds. A family is a row: its name, what it is, where its
 * samples come from, and a sentence. A source makes the picture that its families, which stand
 * next to each other, are written from.
 *
 * The order of the table is that of the page, and of importance: where the page would become too
 * long, what stands further down is left out first.
 */
#ifndef PGUSHER_ADMIN_METRICS_METRIC_FAMILY_H
#define PGUSHER_ADMIN_METRICS_METRIC_FAMILY_H

#include <stddef.h>

#include "admin/metrics/metric_picture.h"
#include "model/registry.h"

enum metric_type {
	METRIC_GAUGE,
	METRIC_COUNTER,
	METRIC_HISTOGRAM,
	METRIC_UNTYPED, /* a counter whose name, given by others, is none for a counter */
};

enum metric_unit {
	METRIC_NUMBER,
	METRIC_SECONDS, /* kept as microseconds */
};

struct metrics;

/* What a picture is made from. */
struct metric_scene {
	struct registry *registry;
	const struct metrics *metrics; /* what the endpoint counts of itself */
	usec_t now; /* of the loop */
	uint64_t series_dropped;
};

struct metric_source {
	/* Add the rows; the picture has been begun. `detail` is that of the source. */
	void (*collect)(struct metric_picture *picture, const struct metric_scene *scene,
		const void *detail);
	size_t figures_size;
	const void *detail;
};

struct metric_family {
	const char *name; /* with the `_total` of a counter */
	enum metric_type type;
	enum metric_unit unit;
	const struct metric_source *source;
	size_t figure; /* offset in the figures: an int64_t, or a struct histogram */
	const char *help;
};

/* The table; ends with a row without a name. */
extern const struct metric_family metric_families[];

#endif
