/* SPDX-License-Identifier: ISC */
/*
 * The lines of a screen or of a snapshot: printable text in the encoding of the locale, each with a
 * style. Lines that do not fit into memory are left out.
 */
#ifndef PGUSHER_TOP_PAGE_H
#define PGUSHER_TOP_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum page_style {
	STYLE_PLAIN,
	STYLE_FAINT,
	STYLE_TITLE, /* of the columns */
	STYLE_STRONG,
	STYLE_WARNING,
	STYLE_CRITICAL,
	STYLES
};

struct page {
	struct buffer texts; /* each with its NUL */
	struct buffer lines; /* struct page_line */
	size_t width;
};

struct page_line {
	size_t text; /* where it begins */
	enum page_style style;
};

/* Begin an empty page of so many columns. */
void page_begin(struct page *page, size_t width);

/* Free the memory. The page is empty and usable afterwards. */
void page_free(struct page *page);

/* Returns the number of lines. */
size_t page_length(const struct page *page);

/* The text of a line, owned by the page until it grows; and its style. */
const char *page_text(const struct page *page, size_t line, enum page_style *style);

/* Add a line of any text, made printable and cut at the width. */
void page_add(struct page *page, enum page_style style, const char *text);

/* Add a line of text that is printable already, and no wider than the page. */
void page_add_printable(struct page *page, enum page_style style, const char *text);

/* The same as page_add() for formatted text, of at most 1 kB. */
void page_printf(struct page *page, enum page_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Add a text in as many lines as it needs, at most `most`, at least one; lines behind the first
 * begin with so many blanks.
 */
void page_fold(
	struct page *page, enum page_style style, const char *text, size_t blanks, size_t most);

#endif
