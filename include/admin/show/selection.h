/* SPDX-License-Identifier: ISC */
/*
 * Applies the clauses of a SHOW to rows: bodies of DataRow messages with all cells as text.
 * Pure.
 */
#ifndef PGUSHER_ADMIN_SHOW_SELECTION_H
#define PGUSHER_ADMIN_SHOW_SELECTION_H

#include "admin/show/clauses.h"

struct row_bytes {
	const uint8_t *body;
	size_t length;
};

/* Does the row pass every test? NULL passes IS NULL only. */
bool selection_accepts(const struct clauses *clauses, struct row_bytes row);

/*
 * Less than, equal to, or more than 0: the order of two rows by the keys of ORDER BY. NULL is
 * the largest value.
 */
int selection_compare(const struct clauses *clauses, const struct column *columns,
	struct row_bytes a, struct row_bytes b);

#endif
