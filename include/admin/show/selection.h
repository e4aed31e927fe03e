/* SPDX-License-Identifier: ISC */
/*
 * Applies the clauses of a SHOW to rows as they travel: bodies of DataRow messages, all of whose
 * cells are text. Pure.
 */
#ifndef PGUSHER_ADMIN_SHOW_SELECTION_H
#define PGUSHER_ADMIN_SHOW_SELECTION_H

#include "admin/show/clauses.h"

struct row_bytes {
	const uint8_t *body;
	size_t length;
};

/* Does every condition hold? NULL meets none but IS NULL. */
bool selection_accepts(const struct clauses *clauses, struct row_bytes row);

/* Less than, equal to, or more than 0: how rows are to be ordered. NULL is the largest. */
int selection_compare(const struct clauses *clauses, const struct column *columns,
	struct row_bytes a, struct row_bytes b);

#endif
