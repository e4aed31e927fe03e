/* SPDX-License-Identifier: ISC */
/*
 * Builds a result set: a RowDescription and DataRows, cell by cell, at the end of a buffer.
 *
 * The caller gives the cells in the order of the columns, one call each; they are rendered as
 * text. WHERE, ORDER BY, LIMIT and binary formats are applied here, so that every SHOW has
 * them: a row that is not wanted is removed as soon as it is built; rows that must be sorted
 * are kept until the end. Between two rows, and between calls of result_end_partly(), the
 * caller may take the buffer's content away. Lack of memory shows at the end (buffer.failed).
 * Protocol: "Message Formats".
 */
#ifndef PGUSHER_ADMIN_SHOW_RESULT_H
#define PGUSHER_ADMIN_SHOW_RESULT_H

#include <stdbool.h>
#include <time.h>

#include "admin/show/sorting.h"
#include "base/buffer.h"
#include "base/clock.h"

enum column_type {
	COLUMN_TEXT,
	COLUMN_INT4,
	COLUMN_INT8,
	COLUMN_NUMERIC,
	COLUMN_BYTEA,
	COLUMN_TIME,
	/* Of SQL that drivers send only. */
	COLUMN_BOOL,
	COLUMN_NAME,
	COLUMN_VOID
};

struct column {
	const char *name;
	enum column_type type;
};

struct clauses;

enum {
	/* More columns than any result set has. */
	RESULT_COLUMNS_MAX = 64,
	/* A caller that sends rows in slices sends a slice when it has so many bytes. */
	RESULT_SLICE_SIZE = 256 * 1024,
};

/* How a result set is wanted. All zero: with its description, all rows unsorted, in text. */
struct result_options {
	const struct clauses
		*clauses; /* NULL: all rows, unsorted; else they outlive the result */
	uint64_t binary; /* bit N: column N in binary */
	bool is_described; /* the client has the RowDescription: send rows only */
};

struct result {
	struct buffer *out; /* the caller's; it may be replaced between two rows */
	const struct column *columns;
	unsigned column_count;
	struct result_options options;
	struct buffer *rows; /* where the current row is built: `out` or `kept` */
	unsigned filled; /* cells of the current row */
	size_t row; /* where the fields of the current row begin in `rows` */
	uint64_t accepted; /* rows that passed WHERE and LIMIT */
	struct buffer
		kept; /* owned: rows that must be sorted or converted before they are sent */
	struct buffer places; /* owned: offsets in `kept` of the rows to sort, size_t each */
	struct sorting sorting; /* of `places`, once all rows are built */
	bool is_sorting, is_sorted;
	size_t moved; /* sorted rows that were written to `out` */
	time_t second; /* of `moment`; a cache, because most rows of a SHOW share a few seconds */
	char moment[48];
};

/* Append a RowDescription; bit N of `binary` is set if column N comes in binary format. */
void result_describe(struct buffer *out, const struct column *columns, unsigned column_count,
	uint64_t binary);

/*
 * Build a result set: begin, rows, end. `options` may be NULL. result_end() writes rows that
 * were kept for sorting and frees what the result owns.
 */
void result_begin(struct result *result, struct buffer *out, const struct column *columns,
	unsigned column_count, const struct result_options *options);
void result_end(struct result *result);

/*
 * Do a part of result_end(): about `effort` comparisons' worth, which is subtracted from it.
 * Returns true when the result set is complete or memory ran out; the caller then calls
 * result_free().
 */
bool result_end_partly(struct result *result, unsigned *effort);

/* Free what the result owns, at any time. */
void result_free(struct result *result);

/* Has LIMIT been reached, so that further rows would be dropped? */
bool result_is_full(const struct result *result);

/* Bytes of rows that are kept and not yet written to the buffer. */
size_t result_held(const struct result *result);

/* A row: begin, one cell for every column, end. */
void result_begin_row(struct result *result);
void result_end_row(struct result *result);

/* A text; NULL is SQL's NULL. */
void result_text(struct result *result, const char *text);

/*
 * A number; in an int4 column a value that does not fit becomes the largest or smallest int4.
 */
void result_number(struct result *result, int64_t number);

/* A counter of 64 bits. */
void result_count(struct result *result, uint64_t count);

/* `\x` and hex digits; NULL is SQL's NULL. */
void result_bytes(struct result *result, const void *bytes, size_t length);

/* Local time, given as microseconds since 1970: `YYYY-MM-DD HH:MM:SS TZ`. */
void result_time(struct result *result, usec_t wall);

#endif
