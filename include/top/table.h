/* SPDX-License-Identifier: ISC */
/*
 * The rows that a console answers a SHOW with. Columns are found by name: versions and programs
 * differ in their order and number.
 *
 * Bounded whatever the console sends: TABLE_COLUMNS_MOST columns, TABLE_ROWS_MOST rows, and
 * TABLE_CELL_MOST bytes of each cell, cut between UTF-8 characters. Further rows are only counted.
 */
#ifndef PGUSHER_TOP_TABLE_H
#define PGUSHER_TOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum { TABLE_COLUMNS_MOST = 64, TABLE_ROWS_MOST = 50000, TABLE_CELL_MOST = 1024 };

/* The column that a table does not have. */
#define TABLE_NO_COLUMN ((size_t)-1)

struct table {
	size_t column_count, row_count;
	size_t left_out; /* rows beyond the limit, or for which there was no memory */
	struct buffer names; /* each with its NUL */
	struct buffer texts; /* of the cells, each with its NUL */
	struct buffer cells; /* size_t each: where the text begins; SIZE_MAX for NULL */
	bool begun; /* it has columns, even if it has no row */
};

/* A zeroed table is empty. Free what it owns; it is empty and usable afterwards. */
void table_free(struct table *table);

/* Give an empty table its columns. The names are copied; further calls do nothing. */
void table_begin(struct table *table, const char *const *names, size_t count);

/* Add a row of as many cells as there are columns; NULL for the SQL value. Texts are copied. */
void table_add(struct table *table, const char *const *cells);

/* Returns the index of a column, or TABLE_NO_COLUMN. */
size_t table_column(const struct table *table, const char *name);

/* The name of a column, owned by the table. */
const char *table_name(const struct table *table, size_t column);

/*
 * Returns the text of a cell, owned by the table until it is freed; NULL for the SQL value and for
 * a column that the table does not have.
 */
const char *table_text(const struct table *table, size_t row, size_t column);

/* Returns the number in a cell; `otherwise` if it has none. */
double table_number(const struct table *table, size_t row, size_t column, double otherwise);

/* Returns the row whose cell in this column equals the text; row_count if there is none. */
size_t table_find(const struct table *table, size_t column, const char *text);

#endif
