/* SPDX-License-Identifier: ISC */
/*
 * Writes the page of metrics, a bit at a time: the families of the table one after the other,
 * each from one picture, in the text format 0.0.4 or as OpenMetrics 1.0.
 *
 * A family that would make the page longer than max_metric_series samples is left out whole, so
 * that no sum over a family lies, and counted in pgusher_metric_series_dropped.
 */
#ifndef PGUSHER_ADMIN_METRICS_METRIC_PAGE_H
#define PGUSHER_ADMIN_METRICS_METRIC_PAGE_H

#include "admin/metrics/metric_family.h"

enum metric_format { METRIC_TEXT, METRIC_OPEN, METRIC_FORMATS };

struct metric_page {
	struct buffer out; /* whoever uses the page takes it from here */
	enum metric_format format;
	struct metric_scene scene;
	const struct metric_family *family; /* being written; NULL: the page is complete */
	const struct metric_source *source; /* of the picture; NULL: there is none */
	struct metric_picture picture;
	bool has_begun; /* the family's head is written */
	size_t row; /* of the picture, to be written next */
	uint64_t series, series_most;
};

/* What an Accept header asks for. */
enum metric_format metric_format_of(const char *accept);

/* For the Content-Type header. */
const char *metric_format_type(enum metric_format format);

/* Start a page. The metrics are the endpoint's, for what it counts of itself. */
void metric_page_begin(struct metric_page *page, enum metric_format format,
	struct registry *registry, const struct metrics *metrics);

/*
 * Write on: take one picture, or write some `lines` lines from it. False when the page is
 * complete; without memory `out.failed` is set, and it is complete at once.
 */
bool metric_page_write(struct metric_page *page, unsigned lines);

void metric_page_free(struct metric_page *page);

#endif
