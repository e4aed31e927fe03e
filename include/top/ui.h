/* SPDX-License-Identifier: ISC */
/* What the operator has chosen, and how keys change it. */
#ifndef PGUSHER_TOP_UI_H
#define PGUSHER_TOP_UI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "top/view.h"

/* Keys that are no characters, besides those of ASCII. */
enum ui_key {
	UI_KEY_UP = 0x110000,
	UI_KEY_DOWN,
	UI_KEY_LEFT,
	UI_KEY_RIGHT,
	UI_KEY_PAGE_UP,
	UI_KEY_PAGE_DOWN,
	UI_KEY_HOME,
	UI_KEY_END,
	UI_KEY_BACK_TAB,
	UI_KEY_BACKSPACE,
	UI_KEY_OTHER,
};

enum ui_action {
	UI_NOTHING,
	UI_REDRAW,
	UI_REFRESH, /* ask for everything now, or connect now */
	UI_REPAINT, /* the whole screen, in case that another program has written to it */
	UI_QUIT,
};

enum { UI_FILTER_SIZE = 64 };

/* How one view is shown. */
struct ui_view {
	size_t first, shift; /* row and column at the left and at the top */
	size_t sorted; /* SIZE_MAX: as the rows come */
	bool reverse;
};

struct ui {
	size_t view; /* index in `views` */
	struct ui_view shown[VIEWS];
	char filter[UI_FILTER_SIZE]; /* UTF-8; "": none */
	bool typing; /* keys go to the filter */
	bool paused, help;
	bool plain; /* no colours */
	usec_t interval;
	/* Of the last page, for the limits of scrolling. */
	size_t row_count, rows_shown, column_count;
};

/* Begin with the first view. */
void ui_begin(struct ui *ui, usec_t interval);

/* A key was pressed: a byte of the terminal, or of enum ui_key. */
enum ui_action ui_press(struct ui *ui, int key);

/* How the current view is shown. */
struct ui_view *ui_shown(struct ui *ui);

#endif
