/* SPDX-License-Identifier: ISC */
#include "admin/metrics/metric_samples.h"

#include <string.h>

#include "base/text.h"

/* Precedes the figures of a row. */
struct head {
	size_t labels_at, labels_length;
};

void metric_samples_begin(struct metric_samples *samples, size_t figures_size)
{
	samples->is_altered = false;
	samples->altered_count = 0;
	buffer_clear(&samples->labels);
	buffer_clear(&samples->rows);
	samples->figures_size = figures_size;
	samples->row_labels = 0;
	samples->count = 0;
}

void metric_samples_free(struct metric_samples *samples)
{
	buffer_free(&samples->labels);
	buffer_free(&samples->rows);
	samples->count = 0;
}

static bool is_utf8(const char *text)
{
	size_t length;

	for (; *text != '\0'; text += length) {
		length = text_utf8_length(text, strnlen(text, 4));
		if (length == 0)
			return false;
	}
	return true;
}

/* Both formats escape these three: "Text-based exposition" and OpenMetrics, "Escaping". */
static void append_escaped(struct buffer *out, const char *text)
{
	while (*text != '\0') {
		const size_t plain = strcspn(text, "\\\"\n");

		buffer_append(out, text, plain);
		text += plain;
		if (*text == '\0')
			return;
		buffer_append(out, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\", 2);
		text++;
	}
}

void metric_samples_label(struct metric_samples *samples, const char *name, const char *value)
{
	struct buffer *out = &samples->labels;

	if (out->length > samples->row_labels)
		buffer_append(out, ",", 1);
	buffer_append(out, name, strlen(name));
	buffer_append(out, "=\"", 2);
	if (value && !is_utf8(value)) {
		samples->is_altered = true;
		value = "<invalid>";
	}
	if (value)
		append_escaped(out, value);
	buffer_append(out, "\"", 1);
}

/* --- rows --------------------------------------------------------------------------------- */

static uint8_t *row_at(const struct metric_samples *samples, size_t number)
{
	return samples->rows.data + number * (sizeof(struct head) + samples->figures_size);
}

static void add_figures(const struct metric_samples *samples, uint8_t *row, const void *figures)
{
	int64_t *sums = (int64_t *)(row + sizeof(struct head));
	const int64_t *more = figures;

	for (size_t i = 0; i < samples->figures_size / sizeof(*sums); i++) {
		if (sums[i] == METRIC_UNKNOWN || more[i] == METRIC_UNKNOWN)
			sums[i] = METRIC_UNKNOWN;
		else
			sums[i] += more[i];
	}
}

/*
 * If a row has the same altered labels as the current row, add the figures to it: no two
 * samples of a page may have the same labels. Returns whether there was such a row.
 */
static bool was_merged(struct metric_samples *samples, const void *figures)
{
	const size_t length = samples->labels.length - samples->row_labels;
	const uint8_t *labels = samples->labels.data + samples->row_labels;

	for (size_t i = 0; i < samples->altered_count; i++) {
		const struct metric_row row = metric_samples_row(samples, samples->altered[i]);

		if (row.labels_length != length || memcmp(row.labels, labels, length) != 0)
			continue;
		add_figures(samples, row_at(samples, samples->altered[i]), figures);
		return true;
	}
	return false;
}

/* Returns false for a row that was merged or that exceeds the limit of altered rows. */
static bool may_add(struct metric_samples *samples, const void *figures)
{
	if (!samples->is_altered)
		return true;
	if (was_merged(samples, figures) || samples->altered_count == METRIC_ALTERED_ROWS)
		return false;
	samples->altered[samples->altered_count++] = samples->count;
	return true;
}

void metric_samples_add(struct metric_samples *samples, const void *figures)
{
	const struct head head = {
		.labels_at = samples->row_labels,
		.labels_length = samples->labels.length - samples->row_labels,
	};

	if (metric_samples_failed(samples))
		return;
	if (!may_add(samples, figures)) {
		buffer_shorten(&samples->labels, samples->row_labels);
		samples->is_altered = false;
		return;
	}
	samples->is_altered = false;
	samples->row_labels = samples->labels.length;
	if (buffer_append(&samples->rows, &head, sizeof(head)) &&
		buffer_append(&samples->rows, figures, samples->figures_size))
		samples->count++;
}

struct metric_row metric_samples_row(const struct metric_samples *samples, size_t number)
{
	const uint8_t *at = row_at(samples, number);
	const struct head *head = (const struct head *)at;

	return (struct metric_row){
		.labels = (const char *)samples->labels.data + head->labels_at,
		.labels_length = head->labels_length,
		.figures = at + sizeof(*head),
	};
}
