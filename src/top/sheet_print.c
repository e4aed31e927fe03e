/* SPDX-License-Identifier: ISC */
/* Columns of a sheet are fitted to the width of the page, and printed. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "top/printable.h"
#include "top/sheet.h"

enum {
	WIDEST = 250, /* column, of texts that nothing else bounds */
	CELL_SIZE = 1024,
	TITLE_SIZE = 64, /* longer ones are not marked */
	READABLE = 24, /* columns of a text that tell it from others */
	RANK_KEPT = 4, /* columns up to this rank are rather cut than left out */
};

/* The width of each column on the page; 0: it is left out. */
struct layout {
	size_t widths[SHEET_COLUMNS_MOST];
	size_t natural[SHEET_COLUMNS_MOST]; /* as wide as the texts */
};

static const struct sheet_cell *cells_at(const struct sheet *sheet, size_t row)
{
	const struct sheet_row *rows = (const void *)sheet->rows.data;

	return (const struct sheet_cell *)(const void *)sheet->cells.data + rows[row].cells;
}

static const char *text_at(const struct sheet *sheet, size_t row, size_t column)
{
	const struct sheet_cell *cell = cells_at(sheet, row) + column;

	return cell->text == SIZE_MAX ? "" : (const char *)sheet->texts.data + cell->text;
}

/* --- fitting ------------------------------------------------------------------------------ */

static void measure(
	const struct sheet *sheet, size_t first, size_t count, struct layout *layout)
{
	for (size_t row = first; row < first + count && row < sheet_length(sheet); row++) {
		for (size_t i = 0; i < sheet->column_count; i++) {
			const size_t width = printable_width(text_at(sheet, row, i), WIDEST);

			if (width > layout->natural[i])
				layout->natural[i] = width;
		}
	}
}

/* The width below which a column is of no use: a number that was cut would be another one. */
static size_t least_width(const struct sheet_column *column, size_t natural)
{
	const size_t least = column->least > 0 ? column->least : strlen(column->title);

	return column->number || natural < least ? natural : least;
}

static void begin_layout(
	const struct sheet *sheet, const struct sheet_window *window, struct layout *layout)
{
	*layout = (struct layout){0};
	for (size_t i = 0; i < sheet->column_count; i++)
		layout->natural[i] = strlen(sheet->columns[i].title) + (i == window->sorted);
	measure(sheet, 0, SHEET_MEASURED, layout);
	measure(sheet, window->first, window->count, layout);
	for (size_t i = window->shift; i < sheet->column_count; i++) {
		const struct sheet_column *column = &sheet->columns[i];
		size_t readable;

		if (sheet_length(sheet) > 0 && !sheet_has_column(sheet, i))
			continue;
		if (column->most > 0 && layout->natural[i] > column->most)
			layout->natural[i] = column->most;
		readable = column->readable > 0 ? column->readable : READABLE;
		layout->widths[i] = column->number || layout->natural[i] < readable
			? layout->natural[i]
			: readable;
	}
}

/* The width of all columns that are shown, with a blank between them. */
static size_t total_of(const struct sheet *sheet, const struct layout *layout)
{
	size_t total = 0;

	for (size_t i = 0; i < sheet->column_count; i++) {
		if (layout->widths[i] > 0)
			total += layout->widths[i] + (total > 0);
	}
	return total;
}

/* The column of a rank behind `kept` that is left out next; SIZE_MAX if there is none. */
static size_t least_important(
	const struct sheet *sheet, const struct layout *layout, unsigned kept)
{
	size_t found = SIZE_MAX, shown = 0;

	for (size_t i = 0; i < sheet->column_count; i++) {
		if (layout->widths[i] == 0)
			continue;
		shown++;
		if (found == SIZE_MAX || sheet->columns[i].rank >= sheet->columns[found].rank)
			found = i;
	}
	return shown > 1 && sheet->columns[found].rank > kept ? found : SIZE_MAX;
}

/* The column that gets room next: the most important one of those that are narrower than their texts. */
static size_t narrowed(const struct sheet *sheet, const struct layout *layout)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < sheet->column_count; i++) {
		if (layout->widths[i] > 0 && layout->widths[i] < layout->natural[i] &&
			(found == SIZE_MAX ||
				sheet->columns[i].rank < sheet->columns[found].rank))
			found = i;
	}
	return found;
}

/* Leave out columns behind a rank until the others fit; returns whether they do. */
static bool leave_out(
	const struct sheet *sheet, size_t width, struct layout *layout, unsigned kept)
{
	while (total_of(sheet, layout) > width) {
		const size_t column = least_important(sheet, layout, kept);

		if (column == SIZE_MAX)
			return false;
		layout->widths[column] = 0;
	}
	return true;
}

static void narrow(const struct sheet *sheet, struct layout *layout)
{
	for (size_t i = 0; i < sheet->column_count; i++) {
		if (layout->widths[i] > 0)
			layout->widths[i] = least_width(&sheet->columns[i], layout->natural[i]);
	}
}

static void fit(const struct sheet *sheet, size_t width, struct layout *layout)
{
	size_t total, column;

	if (!leave_out(sheet, width, layout, RANK_KEPT)) {
		narrow(sheet, layout);
		if (!leave_out(sheet, width, layout, 0))
			return;
	}
	total = total_of(sheet, layout);
	while (total < width && (column = narrowed(sheet, layout)) != SIZE_MAX) {
		size_t more = layout->natural[column] - layout->widths[column];

		if (more > width - total)
			more = width - total;
		layout->widths[column] += more;
		total += more;
	}
}

/* --- printing ----------------------------------------------------------------------------- */

static void pad(struct buffer *line, size_t count)
{
	while (count-- > 0)
		buffer_append(line, " ", 1);
}

static void print_cell(
	struct buffer *line, const char *text, size_t width, bool to_right, bool is_last)
{
	char cell[CELL_SIZE];
	const size_t used = printable_write(cell, sizeof(cell), text, width);

	if (to_right)
		pad(line, width - used);
	buffer_append(line, cell, strlen(cell));
	if (!to_right && !is_last)
		pad(line, width - used);
}

static size_t last_shown(const struct sheet *sheet, const struct layout *layout)
{
	size_t last = 0;

	for (size_t i = 0; i < sheet->column_count; i++) {
		if (layout->widths[i] > 0)
			last = i;
	}
	return last;
}

/* Print a row, or the titles if `row` is SIZE_MAX. */
static void print_row(const struct sheet *sheet, const struct layout *layout, size_t row,
	size_t sorted, struct buffer *line)
{
	const size_t last = last_shown(sheet, layout);
	char title[TITLE_SIZE];

	buffer_clear(line);
	for (size_t i = 0; i < sheet->column_count; i++) {
		const char *text = sheet->columns[i].title;

		if (layout->widths[i] == 0)
			continue;
		if (line->length > 0)
			pad(line, 1);
		if (row == SIZE_MAX && i == sorted && strlen(text) < layout->widths[i]) {
			snprintf(title, sizeof(title),
				sheet->columns[i].number ? "*%.60s" : "%.60s*", text);
			text = title;
		}
		print_cell(line, row == SIZE_MAX ? text : text_at(sheet, row, i),
			layout->widths[i], sheet->columns[i].number, i == last);
	}
	buffer_append(line, "", 1);
}

static void add_line(struct page *page, enum page_style style, const struct buffer *line)
{
	if (!line->failed)
		page_add_printable(page, style, (const char *)line->data);
}

void sheet_print(
	const struct sheet *sheet, const struct sheet_window *window, struct page *page)
{
	const struct sheet_row *rows = (const void *)sheet->rows.data;
	struct buffer line = {0};
	struct layout layout;

	begin_layout(sheet, window, &layout);
	fit(sheet, page->width, &layout);
	/* A single column may still be wider than the page. */
	for (size_t i = 0; i < sheet->column_count; i++) {
		if (layout.widths[i] > page->width)
			layout.widths[i] = page->width;
	}
	print_row(sheet, &layout, SIZE_MAX, window->sorted, &line);
	add_line(page, STYLE_TITLE, &line);
	for (size_t i = 0; i < window->count; i++) {
		const size_t row = window->first + i;

		if (row >= sheet_length(sheet))
			break;
		print_row(sheet, &layout, row, SIZE_MAX, &line);
		add_line(page, rows[row].style, &line);
	}
	buffer_free(&line);
}
