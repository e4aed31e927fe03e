/* SPDX-License-Identifier: ISC */
#include "admin/metrics/metric_page.h"

#include <string.h>

#include "base/histogram.h"

static const char total_suffix[] = "_total";

static const struct {
	const char *content_type;
	const char *type_names[METRIC_UNTYPED + 1];
	bool bare_counters; /* TYPE and HELP name a counter without `_total` */
	const char *end;
} formats[METRIC_FORMATS] = {
	[METRIC_TEXT] = {"text/plain; version=0.0.4; charset=utf-8",
		{"gauge", "counter", "histogram", "untyped"}, false, ""},
	[METRIC_OPEN] = {"application/openmetrics-text; version=1.0.0; charset=utf-8",
		{"gauge", "counter", "histogram", "unknown"}, true, "# EOF\n"},
};

enum metric_format metric_format_of(const char *accept)
{
	return strstr(accept, "application/openmetrics-text") ? METRIC_OPEN : METRIC_TEXT;
}

const char *metric_format_type(enum metric_format format)
{
	return formats[format].content_type;
}

/* --- numbers and lines -------------------------------------------------------------------- */

static void put(struct buffer *out, const char *text)
{
	buffer_append(out, text, strlen(text));
}

/* Write at least `least` decimal digits in front of `end`. Returns where they begin. */
static char *digits_before(char *end, uint64_t number, unsigned least)
{
	while (number > 0 || least > 0) {
		*--end = (char)('0' + number % 10);
		number /= 10;
		least -= least > 0;
	}
	return end;
}

/*
 * Write `.` and six digits in front of `end`, and cut zeros at the end. Returns the beginning.
 */
static char *put_fraction(char *end, uint64_t micros)
{
	char *begin = digits_before(end, micros, 6);

	while (end[-1] == '0')
		*--end = '\0';
	*--begin = '.';
	return begin;
}

/* Room for the text of a number. */
enum { NUMBER_SIZE = 32 };

/* The text of a figure, written in `room`; a negative figure counts as 0. */
static const char *number_text(int64_t figure, enum metric_unit unit, char room[NUMBER_SIZE])
{
	const uint64_t number = figure > 0 ? (uint64_t)figure : 0;
	char *at = room + NUMBER_SIZE - 1;

	*at = '\0';
	if (figure == METRIC_UNLIMITED)
		return "+Inf";
	if (unit == METRIC_NUMBER)
		return digits_before(at, number, 1);
	if (number % USEC_PER_SEC != 0)
		at = put_fraction(at, number % USEC_PER_SEC);
	return digits_before(at, number / USEC_PER_SEC, 1);
}

/* `NAMEsuffix{labels,le="bound"} NUMBER`; `bound` may be NULL. */
static void put_line(struct metric_page *page, const char *suffix, const struct metric_row *row,
	const char *bound, int64_t figure, enum metric_unit unit)
{
	struct buffer *out = &page->out;
	char room[NUMBER_SIZE];

	put(out, page->family->name);
	put(out, suffix);
	if (row->labels_length > 0 || bound) {
		put(out, "{");
		buffer_append(out, row->labels, row->labels_length);
		if (bound) {
			put(out, row->labels_length > 0 ? ",le=\"" : "le=\"");
			put(out, bound);
			put(out, "\"");
		}
		put(out, "}");
	}
	put(out, " ");
	put(out, number_text(figure, unit, room));
	put(out, "\n");
}

/* --- samples ------------------------------------------------------------------------------ */

/* OpenMetrics requires that a bound has a fraction, `1.0`. */
static const char *bound_text(unsigned bucket, char room[NUMBER_SIZE])
{
	const int64_t bound = (int64_t)histogram_bounds[bucket];

	if (bound % USEC_PER_SEC != 0)
		return number_text(bound, METRIC_SECONDS, room);
	memcpy(room + NUMBER_SIZE - 3, ".0", 3);
	return digits_before(room + NUMBER_SIZE - 3, (uint64_t)(bound / USEC_PER_SEC), 1);
}

static void put_histogram(struct metric_page *page, const struct metric_row *row,
	const struct histogram *histogram)
{
	char room[NUMBER_SIZE];
	uint64_t count = 0;

	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		count += histogram->counts[i];
		put_line(page, "_bucket", row, bound_text(i, room), (int64_t)count,
			METRIC_NUMBER);
	}
	count += histogram->counts[HISTOGRAM_BOUNDS];
	put_line(page, "_bucket", row, "+Inf", (int64_t)count, METRIC_NUMBER);
	put_line(page, "_sum", row, NULL, (int64_t)histogram->sum, METRIC_SECONDS);
	put_line(page, "_count", row, NULL, (int64_t)count, METRIC_NUMBER);
}

/* The number of samples of one row. */
static unsigned samples_of(const struct metric_family *family)
{
	return family->type == METRIC_HISTOGRAM ? HISTOGRAM_BOUNDS + 3 : 1;
}

static const void *figure_of(const struct metric_family *family, const struct metric_row *row)
{
	return (const char *)row->figures + family->figure;
}

static bool is_known(const struct metric_family *family, const struct metric_row *row)
{
	return family->type == METRIC_HISTOGRAM ||
		*(const int64_t *)figure_of(family, row) != METRIC_UNKNOWN;
}

static void put_row(struct metric_page *page, const struct metric_row *row)
{
	const struct metric_family *family = page->family;
	const void *figure = figure_of(family, row);

	if (!is_known(family, row))
		return;
	if (family->type == METRIC_HISTOGRAM)
		put_histogram(page, row, figure);
	else
		put_line(page, "", row, NULL, *(const int64_t *)figure, family->unit);
}

/* --- families ----------------------------------------------------------------------------- */

static void put_name(struct metric_page *page)
{
	const struct metric_family *family = page->family;
	size_t length = strlen(family->name);

	if (family->type == METRIC_COUNTER && formats[page->format].bare_counters)
		length -= strlen(total_suffix);
	buffer_append(&page->out, family->name, length);
}

static void put_head(struct metric_page *page)
{
	const struct metric_family *family = page->family;

	put(&page->out, "# HELP ");
	put_name(page);
	put(&page->out, " ");
	put(&page->out, family->help);
	put(&page->out, "\n# TYPE ");
	put_name(page);
	put(&page->out, " ");
	put(&page->out, formats[page->format].type_names[family->type]);
	put(&page->out, "\n");
}

static uint64_t count_samples(const struct metric_page *page)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < page->samples.count; i++) {
		const struct metric_row row = metric_samples_row(&page->samples, i);

		rows += is_known(page->family, &row);
	}
	return rows * samples_of(page->family);
}

static void next_family(struct metric_page *page)
{
	page->family++;
	page->row = 0;
	page->has_begun = false;
	if (!page->family->name) {
		put(&page->out, formats[page->format].end);
		page->family = NULL;
	}
}

/*
 * Write the HELP and TYPE lines of the family, or leave it out. The last family, which counts
 * the samples that were left out, is always written.
 */
static void begin_family(struct metric_page *page)
{
	const uint64_t samples = count_samples(page);
	const bool is_last = !page->family[1].name;

	if (samples > page->series_most - page->series && !is_last) {
		page->context.series_dropped += samples;
		next_family(page);
	} else if (samples == 0) {
		next_family(page);
	} else {
		page->series += samples;
		page->has_begun = true;
		put_head(page);
	}
}

static void collect_samples(struct metric_page *page)
{
	const struct metric_source *source = page->family->source;

	page->source = source;
	page->context.now = loop_now(page->context.registry->loop);
	metric_samples_begin(&page->samples, source->figures_size);
	source->collect(&page->samples, &page->context, source->detail);
	if (metric_samples_failed(&page->samples))
		page->out.failed = true;
}

/* Write at least one row of the current family. Returns the number of lines. */
static unsigned write_rows(struct metric_page *page, unsigned lines)
{
	const struct metric_family *family = page->family;
	unsigned written = 1;

	if (!page->has_begun)
		begin_family(page);
	if (page->family != family)
		return written;
	do {
		const struct metric_row row = metric_samples_row(&page->samples, page->row++);

		put_row(page, &row);
		written += samples_of(family);
	} while (page->row < page->samples.count && written < lines);
	if (page->row == page->samples.count)
		next_family(page);
	return written;
}

bool metric_page_write(struct metric_page *page, unsigned lines)
{
	unsigned written = 0;

	if (page->family && page->source != page->family->source) {
		collect_samples(page);
		return !page->out.failed;
	}
	while (page->family && page->source == page->family->source && written < lines)
		written += write_rows(page, lines - written);
	return page->family && !page->out.failed;
}

/* --- the page ----------------------------------------------------------------------------- */

void metric_page_begin(struct metric_page *page, enum metric_format format,
	struct registry *registry, const struct metrics *metrics)
{
	const int most = registry->process->settings->max_metric_series;

	*page = (struct metric_page){
		.format = format,
		.context = {.registry = registry, .metrics = metrics},
		.family = metric_families,
		.series_most = most > 0 ? (uint64_t)most : UINT64_MAX,
	};
}

void metric_page_free(struct metric_page *page)
{
	buffer_free(&page->out);
	metric_samples_free(&page->samples);
}
