/* SPDX-License-Identifier: ISC */
#include "admin/metrics/metric_picture.h"

#include <string.h>

#include "base/text.h"

/* What stands before the figures of a row. */
struct head {
	size_t labels_at, labels_length;
};

void metric_picture_begin(struct metric_picture *picture, size_t figures_size)
{
	picture->is_altered = false;
	picture->altered_count = 0;
	buffer_clear(&picture->labels);
	buffer_clear(&picture->rows);
	picture->figures_size = figures_size;
	picture->row_labels = 0;
	picture->count = 0;
}

void metric_picture_free(struct metric_picture *picture)
{
	buffer_free(&picture->labels);
	buffer_free(&picture->rows);
	picture->count = 0;
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

/* Formats: "Text-based exposition", and OpenMetrics, "Escaping": the same three. */
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

void metric_picture_label(struct metric_picture *picture, const char *name, const char *value)
{
	struct buffer *out = &picture->labels;

	if (out->length > picture->row_labels)
		buffer_append(out, ",", 1);
	buffer_append(out, name, strlen(name));
	buffer_append(out, "=\"", 2);
	if (value && !is_utf8(value)) {
		picture->is_altered = true;
		value = "<invalid>";
	}
	if (value)
		append_escaped(out, value);
	buffer_append(out, "\"", 1);
}

/* --- rows --------------------------------------------------------------------------------- */

static uint8_t *row_at(const struct metric_picture *picture, size_t number)
{
	return picture->rows.data + number * (sizeof(struct head) + picture->figures_size);
}

static void add_figures(const struct metric_picture *picture, uint8_t *row, const void *figures)
{
	int64_t *sums = (int64_t *)(row + sizeof(struct head));
	const int64_t *more = figures;

	for (size_t i = 0; i < picture->figures_size / sizeof(*sums); i++) {
		if (sums[i] == METRIC_UNKNOWN || more[i] == METRIC_UNKNOWN)
			sums[i] = METRIC_UNKNOWN;
		else
			sums[i] += more[i];
	}
}

/*
 * The labels of the row under way are not what they were: is there a row of the same already?
 * Then the figures are added to it, since no two samples of a page may have the same labels.
 */
static bool was_merged(struct metric_picture *picture, const void *figures)
{
	const size_t length = picture->labels.length - picture->row_labels;
	const uint8_t *labels = picture->labels.data + picture->row_labels;

	for (size_t i = 0; i < picture->altered_count; i++) {
		const struct metric_row row = metric_picture_row(picture, picture->altered[i]);

		if (row.labels_length != length || memcmp(row.labels, labels, length) != 0)
			continue;
		add_figures(picture, row_at(picture, picture->altered[i]), figures);
		return true;
	}
	return false;
}

/* Of so many strange names the rest is not told. */
static bool may_add(struct metric_picture *picture, const void *figures)
{
	if (!picture->is_altered)
		return true;
	if (was_merged(picture, figures) || picture->altered_count == METRIC_ALTERED_ROWS)
		return false;
	picture->altered[picture->altered_count++] = picture->count;
	return true;
}

void metric_picture_add(struct metric_picture *picture, const void *figures)
{
	const struct head head = {
		.labels_at = picture->row_labels,
		.labels_length = picture->labels.length - picture->row_labels,
	};

	if (metric_picture_failed(picture))
		return;
	if (!may_add(picture, figures)) {
		buffer_shorten(&picture->labels, picture->row_labels);
		picture->is_altered = false;
		return;
	}
	picture->is_altered = false;
	picture->row_labels = picture->labels.length;
	if (buffer_append(&picture->rows, &head, sizeof(head)) &&
		buffer_append(&picture->rows, figures, picture->figures_size))
		picture->count++;
}

struct metric_row metric_picture_row(const struct metric_picture *picture, size_t number)
{
	const uint8_t *at = row_at(picture, number);
	const struct head *head = (const struct head *)at;

	return (struct metric_row){
		.labels = (const char *)picture->labels.data + head->labels_at,
		.labels_length = head->labels_length,
		.figures = at + sizeof(*head),
	};
}
