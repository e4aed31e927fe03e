/* SPDX-License-Identifier: ISC */
#include "top/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "top/printable.h"

enum {
	LINE_SIZE = 4096, /* 300 columns of the widest characters */
	TEXT_SIZE = 1024,
};

void page_begin(struct page *page, size_t width)
{
	buffer_clear(&page->texts);
	buffer_clear(&page->lines);
	page->width = width;
}

void page_free(struct page *page)
{
	buffer_free(&page->texts);
	buffer_free(&page->lines);
}

size_t page_length(const struct page *page)
{
	return page->lines.length / sizeof(struct page_line);
}

const char *page_text(const struct page *page, size_t line, enum page_style *style)
{
	const struct page_line *lines = (const void *)page->lines.data;

	*style = lines[line].style;
	return (const char *)page->texts.data + lines[line].text;
}

void page_add_printable(struct page *page, enum page_style style, const char *text)
{
	const struct page_line line = {page->texts.length, style};

	if (buffer_append(&page->texts, text, strlen(text) + 1))
		buffer_append(&page->lines, &line, sizeof(line));
}

void page_add(struct page *page, enum page_style style, const char *text)
{
	char line[LINE_SIZE];

	printable_write(line, sizeof(line), text, page->width);
	page_add_printable(page, style, line);
}

void page_printf(struct page *page, enum page_style style, const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	page_add(page, style, text);
}

/* Where a text is folded, it ends with the blank between two words. */
static void drop_blanks(char *line)
{
	size_t length = strlen(line);

	while (length > 0 && line[length - 1] == ' ')
		line[--length] = '\0';
}

void page_fold(
	struct page *page, enum page_style style, const char *text, size_t blanks, size_t most)
{
	char line[TEXT_SIZE + 16];

	if (blanks > 8 || blanks + 8 > page->width)
		blanks = 0;
	for (size_t count = 0; count == 0 || *text; count++) {
		const size_t indent = count == 0 ? 0 : blanks;
		const bool last = count + 1 >= most;
		size_t length =
			last ? strlen(text) : printable_fold(text, page->width - indent);

		if (length > TEXT_SIZE)
			length = TEXT_SIZE;
		snprintf(line, sizeof(line), "%*s%.*s", (int)indent, "", (int)length, text);
		drop_blanks(line);
		page_add(page, style, line);
		if (last)
			return;
		text += length;
	}
}
