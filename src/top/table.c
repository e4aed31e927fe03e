/* SPDX-License-Identifier: ISC */
#include "top/table.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void table_free(struct table *table)
{
	buffer_free(&table->names);
	buffer_free(&table->texts);
	buffer_free(&table->cells);
	*table = (struct table){0};
}

/* Append at most TABLE_CELL_MOST bytes of a text, and a NUL. */
static bool append_text(struct buffer *buffer, const char *text)
{
	const size_t length = text_utf8_cut(text, strlen(text), TABLE_CELL_MOST);

	return buffer_append(buffer, text, length) && buffer_append(buffer, "", 1);
}

void table_begin(struct table *table, const char *const *names, size_t count)
{
	if (table->begun)
		return;
	table->begun = true;
	if (count > TABLE_COLUMNS_MOST)
		count = TABLE_COLUMNS_MOST;
	for (size_t i = 0; i < count && append_text(&table->names, names[i]); i++)
		table->column_count++;
}

static bool append_row(struct table *table, const char *const *cells)
{
	for (size_t i = 0; i < table->column_count; i++) {
		const size_t start = cells[i] ? table->texts.length : SIZE_MAX;

		if ((cells[i] && !append_text(&table->texts, cells[i])) ||
			!buffer_append(&table->cells, &start, sizeof(start)))
			return false;
	}
	return true;
}

void table_add(struct table *table, const char *const *cells)
{
	/* Once memory has run out, a row that fitted would stand at the place of another. */
	if (table->left_out > 0 || table->row_count == TABLE_ROWS_MOST ||
		!append_row(table, cells))
		table->left_out++;
	else
		table->row_count++;
}

const char *table_name(const struct table *table, size_t column)
{
	const char *name = (const char *)table->names.data;

	for (; column > 0; column--)
		name += strlen(name) + 1;
	return name;
}

size_t table_column(const struct table *table, const char *name)
{
	const char *cursor = (const char *)table->names.data;

	for (size_t i = 0; i < table->column_count; i++) {
		if (strcmp(cursor, name) == 0)
			return i;
		cursor += strlen(cursor) + 1;
	}
	return TABLE_NO_COLUMN;
}

const char *table_text(const struct table *table, size_t row, size_t column)
{
	const size_t *cells = (const size_t *)(const void *)table->cells.data;
	size_t start;

	if (row >= table->row_count || column >= table->column_count)
		return NULL;
	start = cells[row * table->column_count + column];
	return start == SIZE_MAX ? NULL : (const char *)table->texts.data + start;
}

double table_number(const struct table *table, size_t row, size_t column, double otherwise)
{
	const char *text = table_text(table, row, column);
	double number;
	char *end;

	if (!text)
		return otherwise;
	number = strtod(text, &end);
	return end == text || !isfinite(number) ? otherwise : number;
}

size_t table_find(const struct table *table, size_t column, const char *text)
{
	for (size_t row = 0; row < table->row_count; row++) {
		const char *cell = table_text(table, row, column);

		if (cell && strcmp(cell, text) == 0)
			return row;
	}
	return table->row_count;
}
