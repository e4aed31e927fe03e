/* SPDX-License-Identifier: ISC */
#include "top/screen.h"

/* Without macros, which have common names. */
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

/* Macros of term.h, which are names in ours. */
#undef columns
#undef lines

#include "top/ui.h"

enum { PAIR_WARNING = 1, PAIR_CRITICAL };

enum { ESCAPE = 27 };

static SCREEN *terminal; /* NULL: not open */
static bool coloured;

enum screen_kind screen_kind(void)
{
	const char *move;
	bool moves;
	int error;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return SCREEN_NONE;
	if (setupterm(NULL, STDOUT_FILENO, &error) != OK)
		return error == 0 ? SCREEN_UNKNOWN : SCREEN_DUMB;
	move = tigetstr("cup");
	moves = move != NULL && move != (const char *)-1;
	del_curterm(cur_term); /* newterm() makes one of its own */
	return moves ? SCREEN_FULL : SCREEN_DUMB;
}

static void choose_colours(bool wanted)
{
	coloured = wanted && has_colors() && start_color() == OK;
	if (!coloured)
		return;
	use_default_colors();
	init_pair(PAIR_WARNING, COLOR_YELLOW, -1);
	init_pair(PAIR_CRITICAL, COLOR_RED, -1);
}

bool screen_open(bool colours)
{
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return false;
	set_term(terminal);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	choose_colours(colours);
	return true;
}

void screen_close(void)
{
	if (!terminal)
		return;
	endwin();
	delscreen(terminal);
	terminal = NULL;
}

void screen_size(size_t *width, size_t *height)
{
	*width = COLS > 0 ? (size_t)COLS : 1;
	*height = LINES > 0 ? (size_t)LINES : 1;
}

void screen_resize(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE);
}

static attr_t attributes_of(enum page_style style, short *pair)
{
	*pair = 0;
	switch (style) {
	case STYLE_FAINT:
		return A_DIM;
	case STYLE_TITLE:
		return A_REVERSE;
	case STYLE_STRONG:
		return A_BOLD;
	case STYLE_WARNING:
		*pair = coloured ? PAIR_WARNING : 0;
		return A_BOLD;
	case STYLE_CRITICAL:
		*pair = coloured ? PAIR_CRITICAL : 0;
		return coloured ? A_BOLD : A_BOLD | A_UNDERLINE;
	case STYLE_PLAIN:
	case STYLES:
		break;
	}
	return A_NORMAL;
}

void screen_draw(const struct page *page)
{
	erase();
	for (size_t i = 0; i < page_length(page) && i < (size_t)LINES; i++) {
		enum page_style style;
		const char *text = page_text(page, i, &style);
		attr_t attributes;
		short pair;

		attributes = attributes_of(style, &pair);
		mvaddstr((int)i, 0, text);
		mvchgat((int)i, 0, -1, attributes, pair, NULL);
	}
	refresh();
}

/*
 * A sequence of another terminal than TERM says comes byte by byte: skip what follows its escape, so
 * that the parts of it are no keys. Returns the key that it is.
 */
static int skip_sequence(void)
{
	int code = getch();

	if (code == ERR)
		return ESCAPE;
	/* The operator has pressed Esc, and another key before this turn. */
	if (code == ESCAPE || code > UCHAR_MAX) {
		ungetch(code);
		return ESCAPE;
	}
	if (code == '[' || code == 'O') {
		do
			code = getch();
		while (code >= ' ' && code < '@');
	}
	return UI_KEY_OTHER;
}

int screen_key(void)
{
	static const struct {
		int code;
		enum ui_key key;
	} keys[] = {
		{KEY_UP, UI_KEY_UP},
		{KEY_DOWN, UI_KEY_DOWN},
		{KEY_LEFT, UI_KEY_LEFT},
		{KEY_RIGHT, UI_KEY_RIGHT},
		{KEY_PPAGE, UI_KEY_PAGE_UP},
		{KEY_NPAGE, UI_KEY_PAGE_DOWN},
		{KEY_HOME, UI_KEY_HOME},
		{KEY_END, UI_KEY_END},
		{KEY_BTAB, UI_KEY_BACK_TAB},
		{KEY_BACKSPACE, UI_KEY_BACKSPACE},
	};
	const int code = getch();

	if (code == ERR)
		return -1;
	if (code == ESCAPE)
		return skip_sequence();
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (code == keys[i].code)
			return keys[i].key;
	}
	return code < 256 ? code : UI_KEY_OTHER;
}
