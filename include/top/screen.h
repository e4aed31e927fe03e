/* SPDX-License-Identifier: ISC */
/*
 * The terminal, by ncurses. While it is open, the program has the whole screen; closing it gives the
 * terminal back as it was. ncurses itself handles SIGTSTP.
 */
#ifndef PGUSHER_TOP_SCREEN_H
#define PGUSHER_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "top/page.h"

/* What the terminal of stdout can do. */
enum screen_kind {
	SCREEN_NONE, /* stdin or stdout is no terminal */
	SCREEN_UNKNOWN, /* TERM names no terminal that the system knows */
	SCREEN_DUMB, /* it has no cursor that could be moved: lines only */
	SCREEN_FULL,
};

enum screen_kind screen_kind(void);

/* Open the screen; false if ncurses cannot. */
bool screen_open(bool colours);

/* Give the terminal back. Nothing happens if it is not open. */
void screen_close(void);

/* The columns and lines, at least 1 of each. */
void screen_size(size_t *width, size_t *height);

/* Follow a new size of the terminal, and paint everything anew. */
void screen_resize(void);

/* Show the page. */
void screen_draw(const struct page *page);

/* Returns the next key: a byte, or one of enum ui_key; -1 if none was pressed. */
int screen_key(void);

#endif
