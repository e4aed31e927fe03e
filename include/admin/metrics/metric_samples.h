/* SPDX-License-Identifier: ISC */
/*
 * The samples of a source at one moment: rows of labels and figures, copied from the model, so
 * that a family that is written over several turns is consistent.
 *
 * The figures of a row are a struct of int64_t and struct histogram; all rows have the same
 * struct.
 */
#ifndef PGUSHER_ADMIN_METRICS_METRIC_SAMPLES_H
#define PGUSHER_ADMIN_METRICS_METRIC_SAMPLES_H

#include "base/buffer.h"

/* An unknown figure: its sample is left out. */
#define METRIC_UNKNOWN INT64_MIN
/* A limit that is not set: written as +Inf. */
#define METRIC_UNLIMITED INT64_MAX

/* The most rows with labels that were altered because they were not UTF-8. */
enum { METRIC_ALTERED_ROWS = 64 };

struct metric_samples {
	struct buffer labels; /* of all rows, `name="value",...` each */
	struct buffer rows;
	size_t figures_size;
	size_t row_labels; /* offset of the current row's labels */
	size_t count;
	bool is_altered; /* a label of the current row was altered */
	size_t altered[METRIC_ALTERED_ROWS]; /* numbers of rows with an altered label */
	size_t altered_count;
};

struct metric_row {
	const char *labels; /* no NUL at the end */
	size_t labels_length;
	const void *figures;
};

/* Start with no rows; the figures of a row have this size. Earlier rows are dropped. */
void metric_samples_begin(struct metric_samples *samples, size_t figures_size);

void metric_samples_free(struct metric_samples *samples);

/* Did memory run out? */
static inline bool metric_samples_failed(const struct metric_samples *samples)
{
	return samples->labels.failed || samples->rows.failed;
}

/*
 * Add a label to the current row; it is escaped here. NULL is an empty value, a value that is
 * not UTF-8 becomes `<invalid>`.
 */
void metric_samples_label(struct metric_samples *samples, const char *name, const char *value);

/*
 * Complete the current row with these figures. If altering has made its labels those of another
 * row, the figures are added to that row's. After METRIC_ALTERED_ROWS altered rows a new one is
 * dropped.
 */
void metric_samples_add(struct metric_samples *samples, const void *figures);

/* The row of that number; its pointers are valid until the samples change. */
struct metric_row metric_samples_row(const struct metric_samples *samples, size_t number);

#endif
