/* SPDX-License-Identifier: ISC */
/*
 * What a family of metrics says at one moment: rows of labels and figures, copied from the model,
 * so that a page can be written over several turns and still shows one picture.
 *
 * A row's figures are a struct of int64_t and struct histogram, all rows of a picture the same.
 */
#ifndef PGUSHER_ADMIN_METRICS_METRIC_PICTURE_H
#define PGUSHER_ADMIN_METRICS_METRIC_PICTURE_H

#include "base/buffer.h"

/* A figure that nobody knows: its sample is left out. */
#define METRIC_UNKNOWN INT64_MIN
/* One that has no limit. */
#define METRIC_UNLIMITED INT64_MAX

/* Most rows with labels that were not UTF-8. */
enum { METRIC_ALTERED_ROWS = 64 };

struct metric_picture {
	struct buffer labels; /* of all rows, each `name="value",...` */
	struct buffer rows;
	size_t figures_size;
	size_t row_labels; /* where those of the row under way begin */
	size_t count;
	bool is_altered; /* a label of the row under way is not what it was */
	size_t altered[METRIC_ALTERED_ROWS]; /* rows of which that is so */
	size_t altered_count;
};

struct metric_row {
	const char *labels; /* no NUL at the end */
	size_t labels_length;
	const void *figures;
};

/* Start a picture whose rows have figures of this size; an old one is forgotten. */
void metric_picture_begin(struct metric_picture *picture, size_t figures_size);

void metric_picture_free(struct metric_picture *picture);

/* Did memory run out? */
static inline bool metric_picture_failed(const struct metric_picture *picture)
{
	return picture->labels.failed || picture->rows.failed;
}

/*
 * A label of the row under way, escaped; NULL is an empty one, what is not UTF-8 becomes
 * `<invalid>`.
 */
void metric_picture_label(struct metric_picture *picture, const char *name, const char *value);

/*
 * The row is complete with these figures. If labels that are not UTF-8 have made it the same as
 * another, the figures are added to that one's; beyond METRIC_ALTERED_ROWS such rows it is left out.
 */
void metric_picture_add(struct metric_picture *picture, const void *figures);

/* The row of that number, valid until the picture changes. */
struct metric_row metric_picture_row(const struct metric_picture *picture, size_t number);

#endif
