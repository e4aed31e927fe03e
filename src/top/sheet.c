/* SPDX-License-Identifier: ISC */
#include "top/sheet.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sheet_begin(struct sheet *sheet, const struct sheet_column *columns, size_t count)
{
	buffer_clear(&sheet->texts);
	buffer_clear(&sheet->cells);
	buffer_clear(&sheet->rows);
	sheet->columns = columns;
	sheet->column_count = count;
	sheet->note = NULL;
}

void sheet_free(struct sheet *sheet)
{
	buffer_free(&sheet->texts);
	buffer_free(&sheet->cells);
	buffer_free(&sheet->rows);
	*sheet = (struct sheet){0};
}

size_t sheet_length(const struct sheet *sheet)
{
	return sheet->rows.length / sizeof(struct sheet_row);
}

static struct sheet_row *rows_of(const struct sheet *sheet)
{
	return (struct sheet_row *)(void *)sheet->rows.data;
}

static struct sheet_cell *cells_of(const struct sheet *sheet, const struct sheet_row *row)
{
	return (struct sheet_cell *)(void *)sheet->cells.data + row->cells;
}

static const char *text_of(const struct sheet *sheet, const struct sheet_cell *cell)
{
	return cell->text == SIZE_MAX ? "" : (const char *)sheet->texts.data + cell->text;
}

/* --- filling ------------------------------------------------------------------------------ */

void sheet_row(struct sheet *sheet, enum page_style style)
{
	const struct sheet_row row = {
		.order = sheet_length(sheet),
		.cells = sheet->cells.length / sizeof(struct sheet_cell),
		.style = style,
	};
	struct sheet_cell *cells = (void *)buffer_extend(
		&sheet->cells, sheet->column_count * sizeof(struct sheet_cell));

	sheet->filled = sheet->column_count;
	if (!cells || !buffer_append(&sheet->rows, &row, sizeof(row)))
		return;
	sheet->filled = 0;
	for (size_t i = 0; i < sheet->column_count; i++)
		cells[i] = (struct sheet_cell){.text = SIZE_MAX};
}

void sheet_number(struct sheet *sheet, double number, const char *text)
{
	const size_t start = sheet->texts.length;
	struct sheet_cell *cell;

	if (sheet->filled >= sheet->column_count)
		return;
	cell = cells_of(sheet, &rows_of(sheet)[sheet_length(sheet) - 1]) + sheet->filled++;
	cell->number = number;
	if (text && text[0] && buffer_append(&sheet->texts, text, strlen(text) + 1))
		cell->text = start;
}

void sheet_text(struct sheet *sheet, const char *text)
{
	sheet_number(sheet, 0, text);
}

void sheet_count(struct sheet *sheet, double number)
{
	char text[32];

	snprintf(text, sizeof(text), "%.0f", number);
	sheet_number(sheet, number, text);
}

void sheet_write_time(char *out, size_t size, double seconds)
{
	const unsigned long long whole = seconds < 1e12 ? (unsigned long long)seconds : 0;

	if (seconds < 60)
		snprintf(out, size, "%.1f s", seconds);
	else if (whole < 3600)
		snprintf(out, size, "%llum%02llus", whole / 60, whole % 60);
	else if (whole < 86400)
		snprintf(out, size, "%lluh%02llum", whole / 3600, whole / 60 % 60);
	else
		snprintf(out, size, "%llud%02lluh", whole / 86400, whole / 3600 % 24);
}

void sheet_time(struct sheet *sheet, double seconds)
{
	char text[32] = "";

	if (seconds >= 0)
		sheet_write_time(text, sizeof(text), seconds);
	sheet_number(sheet, seconds, text);
}

/* --- choosing and sorting ----------------------------------------------------------------- */

bool sheet_has_column(const struct sheet *sheet, size_t column)
{
	const struct sheet_row *rows = rows_of(sheet);

	for (size_t i = 0; i < sheet_length(sheet); i++) {
		if (cells_of(sheet, &rows[i])[column].text != SIZE_MAX)
			return true;
	}
	return false;
}

static bool has_text(const struct sheet *sheet, const struct sheet_row *row, const char *text)
{
	const struct sheet_cell *cells = cells_of(sheet, row);

	for (size_t i = 0; i < sheet->column_count; i++) {
		if (strcasestr(text_of(sheet, &cells[i]), text))
			return true;
	}
	return false;
}

void sheet_filter(struct sheet *sheet, const char *text)
{
	struct sheet_row *rows = rows_of(sheet);
	size_t kept = 0;

	for (size_t i = 0; i < sheet_length(sheet); i++) {
		if (has_text(sheet, &rows[i], text))
			rows[kept++] = rows[i];
	}
	buffer_shorten(&sheet->rows, kept * sizeof(*rows));
}

/* What rows are compared by. */
struct sorting {
	const struct sheet *sheet;
	size_t column;
	int sign;
};

static int compare(const void *left, const void *right, void *argument)
{
	const struct sorting *sorting = argument;
	const struct sheet_row *rows[] = {left, right};
	const struct sheet_cell *cells[] = {
		cells_of(sorting->sheet, rows[0]) + sorting->column,
		cells_of(sorting->sheet, rows[1]) + sorting->column,
	};
	int order;

	if (sorting->sheet->columns[sorting->column].number)
		order = (cells[0]->number < cells[1]->number) -
			(cells[0]->number > cells[1]->number);
	else
		order = strcmp(
			text_of(sorting->sheet, cells[0]), text_of(sorting->sheet, cells[1]));
	if (order != 0)
		return order * sorting->sign;
	return (rows[0]->order > rows[1]->order) - (rows[0]->order < rows[1]->order);
}

void sheet_sort(struct sheet *sheet, size_t column, bool reverse)
{
	struct sorting sorting = {sheet, column, reverse ? -1 : 1};

	if (column < sheet->column_count && sheet_length(sheet) > 1)
		qsort_r(sheet->rows.data, sheet_length(sheet), sizeof(struct sheet_row),
			compare, &sorting);
}
