/* SPDX-License-Identifier: ISC */
/*
 * Builds a result set: a RowDescription and DataRows, cell by cell, at the end of a buffer.
 *
 * Cells are given in the order of the columns, one call each, and rendered as text. What the one
 * who asks wants of it (some rows, another order, binary values) is seen to here, so that every
 * SHOW has it: rows that are not wanted are taken back as soon as they are built, those that are to
 * be ordered are kept until the end. Between two rows, and while the end goes on, the buffer may be
 * taken away and emptied. Lack of memory is found out at the end (buffer.failed).
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
	COLUMN_TIME
};

struct column {
	const char *name;
	enum column_type type;
};

struct clauses;

enum {
	/* More columns than any result set has. */
	RESULT_COLUMNS_MAX = 64,
	/* Whoever takes rows away while more are to come does so when there are so many bytes. */
	RESULT_SLICE_SIZE = 256 * 1024,
};

/* What is wanted of a result set. All zero: its description, and all rows as they come, in text. */
struct result_wish {
	const struct clauses *clauses; /* NULL: all rows as they come */
	uint64_t binary; /* bit N: column N in binary */
	bool is_described; /* already: rows only */
};

struct result {
	struct buffer *out; /* the caller's, who may put another in its place */
	const struct column *columns;
	unsigned column_count;
	struct result_wish wish;
	struct buffer *rows; /* where the row under way is built: `out` or `kept` */
	unsigned filled; /* cells of it */
	size_t row; /* where its fields begin */
	uint64_t accepted; /* rows */
	struct buffer kept; /* owned: rows that cannot go out as they are built */
	struct buffer places; /* owned: of those that are to be ordered, size_t each */
	struct sorting sorting; /* of the places, when all rows are there */
	bool is_sorting, is_sorted;
	size_t moved; /* rows that have gone out since */
	time_t second; /* what `moment` says: most rows of a SHOW share a few seconds */
	char moment[48];
};

/* RowDescription. */
void result_describe(struct buffer *out, const struct column *columns, unsigned column_count,
	uint64_t binary);

/* A result set: begin, its rows, end; only then is it whole. NULL wishes for nothing special. */
void result_begin(struct result *result, struct buffer *out, const struct column *columns,
	unsigned column_count, const struct result_wish *wish);
void result_end(struct result *result);

/*
 * The end for whoever has no time for all of it: about so much of it is done, taken off `effort`,
 * where a comparison costs 1. True: it is whole; result_free() is still to come.
 */
bool result_end_partly(struct result *result, unsigned *effort);

/* Give back what it owns, at any time. */
void result_free(struct result *result);

/* Will no more rows be taken? */
bool result_is_full(const struct result *result);

/* Bytes of rows that have not gone out. */
size_t result_held(const struct result *result);

/* A row: begin, one cell for every column, end. */
void result_begin_row(struct result *result);
void result_end_row(struct result *result);

/* NULL is NULL. */
void result_text(struct result *result, const char *text);

/* A number; in an int4 column what does not fit is cut to the largest or smallest int4. */
void result_number(struct result *result, int64_t number);

/* A counter of 64 bits. */
void result_count(struct result *result, uint64_t count);

/* `\x` and hex digits; NULL is NULL. */
void result_bytes(struct result *result, const void *bytes, size_t length);

/* Local time of a moment since 1970: `YYYY-MM-DD HH:MM:SS TZ`. */
void result_time(struct result *result, usec_t wall);

#endif
