/* SPDX-License-Identifier: ISC */
#include "admin/show/selection.h"

#include <string.h>

#include "admin/show/cells.h"
#include "base/check.h"
#include "wire/row.h"

/* --- conditions --------------------------------------------------------------------------- */

static bool holds(enum comparison comparison, int order)
{
	switch (comparison) {
	case COMPARE_EQUAL:
		return order == 0;
	case COMPARE_UNEQUAL:
		return order != 0;
	case COMPARE_LESS:
		return order < 0;
	case COMPARE_LESS_OR_EQUAL:
		return order <= 0;
	case COMPARE_MORE:
		return order > 0;
	case COMPARE_MORE_OR_EQUAL:
		return order >= 0;
	case COMPARE_LIKE:
	case COMPARE_UNLIKE:
	case COMPARE_NULL:
	case COMPARE_NOT_NULL:
		break;
	}
	CHECK(false);
	return false;
}

/* A text that is no number is unequal to every number, and neither less nor more. */
static bool compare_as_numbers(const struct clause_test *test, const char *text, size_t length)
{
	struct decimal cell, value;

	if (!cells_read_decimal(test->value, strlen(test->value), &value) ||
		!cells_read_decimal(text, length, &cell))
		return test->comparison == COMPARE_UNEQUAL;
	return holds(test->comparison, cells_compare_decimals(&cell, &value));
}

static bool meets(const struct clause_test *test, const struct row_value *cell)
{
	const char *text = (const char *)cell->data;

	if (test->comparison == COMPARE_NULL || test->comparison == COMPARE_NOT_NULL)
		return (text == NULL) == (test->comparison == COMPARE_NULL);
	if (!text)
		return false;
	if (test->comparison == COMPARE_LIKE || test->comparison == COMPARE_UNLIKE)
		return cells_are_alike(text, cell->length, test->value) ==
			(test->comparison == COMPARE_LIKE);
	if (test->as_number)
		return compare_as_numbers(test, text, cell->length);
	return holds(test->comparison,
		cells_compare_texts(text, cell->length, test->value, strlen(test->value)));
}

bool selection_accepts(const struct clauses *clauses, struct row_bytes row)
{
	struct row_value cells[RESULT_COLUMNS_MAX];

	CHECK(row_read(row.body, row.length, cells, RESULT_COLUMNS_MAX) != ROW_MALFORMED);
	for (unsigned i = 0; i < clauses->test_count; i++) {
		if (!meets(&clauses->tests[i], &cells[clauses->tests[i].column]))
			return false;
	}
	return true;
}

/* --- order -------------------------------------------------------------------------------- */

static int compare_cells(
	enum column_type type, const struct row_value *a, const struct row_value *b)
{
	struct decimal first, second;

	if (!a->data || !b->data)
		return (a->data == NULL) - (b->data == NULL);
	if ((type == COLUMN_INT4 || type == COLUMN_INT8 || type == COLUMN_NUMERIC) &&
		cells_read_decimal((const char *)a->data, a->length, &first) &&
		cells_read_decimal((const char *)b->data, b->length, &second))
		return cells_compare_decimals(&first, &second);
	return cells_compare_texts(
		(const char *)a->data, a->length, (const char *)b->data, b->length);
}

int selection_compare(const struct clauses *clauses, const struct column *columns,
	struct row_bytes a, struct row_bytes b)
{
	struct row_value first[RESULT_COLUMNS_MAX], second[RESULT_COLUMNS_MAX];
	int order = 0;

	CHECK(row_read(a.body, a.length, first, RESULT_COLUMNS_MAX) != ROW_MALFORMED);
	CHECK(row_read(b.body, b.length, second, RESULT_COLUMNS_MAX) != ROW_MALFORMED);
	for (unsigned i = 0; i < clauses->key_count && order == 0; i++) {
		const struct clause_key *key = &clauses->keys[i];

		order = compare_cells(
			columns[key->column].type, &first[key->column], &second[key->column]);
		if (key->descending)
			order = -order;
	}
	return order;
}
