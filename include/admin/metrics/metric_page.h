/* SPDX-License-Identifier: ISC */
/*
 * Writes the page of metrics in pieces: the families of the table one after the other, each
 * from samples of one moment, in the text format 0.0.4 or as OpenMetrics 1.0.
 *
 * A family with which the page would have more than max_metric_series samples is left out as a
 * whole, so that sums over a family stay correct; pgusher_metric_series_dropped counts its
 * samples.
 */
#ifndef PGUSHER_ADMIN_METRICS_METRIC_PAGE_H
#define PGUSHER_ADMIN_METRICS_METRIC_PAGE_H

#include "admin/metrics/metric_family.h"

enum metric_format { METRIC_TEXT, METRIC_OPEN, METRIC_FORMATS };

struct metric_page {
	struct buffer out; /* the text; the caller may take it away when the page is complete */
	enum metric_format format;
	struct metric_context context;
	const struct metric_family *family; /* being written; NULL: the page is complete */
	const struct metric_source *source; /* of `samples`; NULL: nothing was collected yet */
	struct metric_samples samples;
	bool has_begun; /* the family's HELP and TYPE lines are written */
	size_t row; /* of `samples`, written next */
	uint64_t series, series_most;
};

/* The format that an Accept header asks for. */
enum metric_format metric_format_of(const char *accept);

/* The value of the Content-Type header. */
const char *metric_format_type(enum metric_format format);

/* Start a page. `metrics` is the endpoint; its own counters are on the page. */
void metric_page_begin(struct metric_page *page, enum metric_format format,
	struct registry *registry, const struct metrics *metrics);

/*
 * Continue: collect the samples of one source, or write about `lines` lines from them. Returns
 * false when the page is complete, or when out of memory (out.failed).
 */
bool metric_page_write(struct metric_page *page, unsigned lines);

/* Free what the page owns, at any time. */
void metric_page_free(struct metric_page *page);

#endif
