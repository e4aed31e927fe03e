/* SPDX-License-Identifier: ISC */
/*
 * Rows with columns of one view: filled with texts as the console has them, filtered, sorted, and
 * fitted to the width of a terminal.
 *
 * A column without any value is left out, and so are the least important ones where the width does
 * not suffice. Widths follow the first SHEET_MEASURED rows and those that are shown.
 */
#ifndef PGUSHER_TOP_SHEET_H
#define PGUSHER_TOP_SHEET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "top/page.h"

enum { SHEET_COLUMNS_MOST = 32, SHEET_MEASURED = 200 };

struct sheet_column {
	const char *title;
	unsigned char rank; /* the importance: 1 is left out last */
	unsigned char least, most; /* width; 0: that of the title, as wide as the texts */
	bool number; /* to the right, sorted by number, the largest first */
	unsigned char readable; /* less important columns give way up to this width; 0: 24 */
};

struct sheet_cell {
	size_t text; /* where it begins; SIZE_MAX: nothing */
	double number; /* what the row is sorted by, in columns of numbers */
};

struct sheet_row {
	size_t order; /* in which the rows were added */
	size_t cells; /* index of the first */
	enum page_style style;
};

struct sheet {
	const struct sheet_column *columns;
	size_t column_count;
	struct buffer texts, cells, rows;
	size_t filled; /* cells of the last row */
	const char *note; /* in place of rows that there are not; static, or NULL */
};

/* Begin an empty sheet. The columns are not copied, and outlive it. At most SHEET_COLUMNS_MOST. */
void sheet_begin(struct sheet *sheet, const struct sheet_column *columns, size_t count);

/* Free the memory. The sheet may be begun again. */
void sheet_free(struct sheet *sheet);

size_t sheet_length(const struct sheet *sheet);

/* Begin a row. Its cells are added from left to right; those that are not stay empty. */
void sheet_row(struct sheet *sheet, enum page_style style);

/* Add a cell. NULL and "" are empty. The text is copied. */
void sheet_text(struct sheet *sheet, const char *text);

/* Add a cell with a number, and how it is written. */
void sheet_number(struct sheet *sheet, double number, const char *text);

/* Add a cell with a whole number. */
void sheet_count(struct sheet *sheet, double number);

/* Add a cell with a length of time in seconds; nothing if it is negative. */
void sheet_time(struct sheet *sheet, double seconds);

/* Whether the column has a value in some row. */
bool sheet_has_column(const struct sheet *sheet, size_t column);

/* Remove the rows that have the text in none of their cells, whatever the case of its letters. */
void sheet_filter(struct sheet *sheet, const char *text);

/*
 * Sort by a column; rows that are equal there stay in the order in which they were added. Numbers
 * begin with the largest, texts with the first; `reverse` turns that round.
 */
void sheet_sort(struct sheet *sheet, size_t column, bool reverse);

/* What of a sheet is shown. */
struct sheet_window {
	size_t first, count; /* rows */
	size_t shift; /* columns that are left out at the left */
	size_t sorted; /* the column whose title is marked; SIZE_MAX: none */
};

/* Add the line of titles, and the rows of the window, to the page. */
void sheet_print(
	const struct sheet *sheet, const struct sheet_window *window, struct page *page);

/*
 * Write a length of time in at most seven characters: 0.0 s, 12.3 s, 4m05s, 3h20m, 12d04h. `size`
 * is at least 16.
 */
void sheet_write_time(char *out, size_t size, double seconds);

#endif
