/* SPDX-License-Identifier: ISC */
/*
 * Rows of an answer found by the text of one column, or of two: a sorted list, so that many searches
 * in an answer of many rows take little time.
 */
#ifndef PGUSHER_TOP_LOOKUP_H
#define PGUSHER_TOP_LOOKUP_H

#include <stddef.h>

#include "top/table.h"

/* No such row. */
#define LOOKUP_NONE ((size_t)-1)

struct lookup {
	struct lookup_entry *list;
	size_t count;
};

/*
 * List the rows by the texts in these columns; `second` may be TABLE_NO_COLUMN. Rows with NULL in
 * one of them are left out. Empty when out of memory. The list borrows the texts of the table. The
 * caller frees it.
 */
void lookup_begin(
	struct lookup *lookup, const struct table *table, size_t first, size_t second);
void lookup_free(struct lookup *lookup);

/* Returns a row with these texts, or LOOKUP_NONE. `second` counts only if there is such a column. */
size_t lookup_find(const struct lookup *lookup, const char *first, const char *second);

#endif
