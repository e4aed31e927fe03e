/* SPDX-License-Identifier: ISC */
#include "top/ui.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

enum { CONTROL_C = 3, CONTROL_L = 12, ESCAPE = 27, DELETE = 127 };

static const usec_t intervals[] = {
	USEC_PER_SEC / 5,
	USEC_PER_SEC / 2,
	USEC_PER_SEC,
	2 * USEC_PER_SEC,
	5 * USEC_PER_SEC,
	10 * USEC_PER_SEC,
	30 * USEC_PER_SEC,
	60 * USEC_PER_SEC,
};

enum { INTERVALS = sizeof(intervals) / sizeof(intervals[0]) };

const struct view *const views[VIEWS] = {
	&view_pools,
	&view_servers,
	&view_clients,
	&view_waits,
	&view_advice,
	&view_slow,
};

void ui_begin(struct ui *ui, usec_t interval)
{
	*ui = (struct ui){.interval = interval};
	for (size_t i = 0; i < VIEWS; i++)
		ui->shown[i].sorted = views[i]->sorted;
}

struct ui_view *ui_shown(struct ui *ui)
{
	return &ui->shown[ui->view];
}

/* --- the filter --------------------------------------------------------------------------- */

static void erase_character(struct ui *ui)
{
	size_t length = strlen(ui->filter);

	/* Bytes behind the first of a UTF-8 character are 10xxxxxx. */
	while (length > 0 && (ui->filter[length - 1] & 0xc0) == 0x80)
		length--;
	ui->filter[length > 0 ? length - 1 : 0] = '\0';
}

static enum ui_action type(struct ui *ui, int key)
{
	const size_t length = strlen(ui->filter);

	if (key == CONTROL_C)
		return UI_QUIT;
	if (key == '\n' || key == '\r' || key == ESCAPE) {
		ui->typing = false;
		if (key == ESCAPE)
			ui->filter[0] = '\0';
	} else if (key == UI_KEY_BACKSPACE || key == DELETE || key == '\b') {
		erase_character(ui);
	} else if (key >= ' ' && key < 256 && length + 1 < sizeof(ui->filter)) {
		ui->filter[length] = (char)key;
		ui->filter[length + 1] = '\0';
	}
	ui_shown(ui)->first = 0;
	return UI_REDRAW;
}

/* --- moving ------------------------------------------------------------------------------- */

static void scroll(struct ui *ui, bool down, size_t rows)
{
	struct ui_view *shown = ui_shown(ui);
	const size_t most = ui->row_count > ui->rows_shown ? ui->row_count - ui->rows_shown : 0;

	if (shown->first > most)
		shown->first = most;
	if (down)
		shown->first = rows < most - shown->first ? shown->first + rows : most;
	else
		shown->first = rows < shown->first ? shown->first - rows : 0;
}

static bool move(struct ui *ui, int key)
{
	struct ui_view *shown = ui_shown(ui);
	const size_t page = ui->rows_shown > 1 ? ui->rows_shown - 1 : 1;

	switch (key) {
	case UI_KEY_UP:
	case UI_KEY_DOWN:
	case 'k':
	case 'j':
		scroll(ui, key == UI_KEY_DOWN || key == 'j', 1);
		return true;
	case UI_KEY_PAGE_UP:
	case UI_KEY_PAGE_DOWN:
		scroll(ui, key == UI_KEY_PAGE_DOWN, page);
		return true;
	case UI_KEY_HOME:
	case UI_KEY_END:
		scroll(ui, key == UI_KEY_END, SIZE_MAX);
		return true;
	case UI_KEY_LEFT:
		shown->shift -= shown->shift > 0;
		return true;
	case UI_KEY_RIGHT:
		shown->shift += shown->shift + 1 < ui->column_count;
		return true;
	default:
		return false;
	}
}

/* --- choosing ----------------------------------------------------------------------------- */

static void choose_view(struct ui *ui, size_t view)
{
	ui->view = view % VIEWS;
	ui->help = false;
}

static bool is_view_key(struct ui *ui, int key)
{
	for (size_t i = 0; i < VIEWS; i++) {
		if (key == views[i]->key || key == '1' + (int)i) {
			choose_view(ui, i);
			return true;
		}
	}
	if (key == '\t' || key == UI_KEY_BACK_TAB) {
		choose_view(ui, ui->view + (key == '\t' ? 1 : VIEWS - 1));
		return true;
	}
	return false;
}

/* One step to the next longer or shorter interval. */
static void change_interval(struct ui *ui, bool longer)
{
	for (size_t i = 0; longer && i < INTERVALS; i++) {
		if (intervals[i] > ui->interval) {
			ui->interval = intervals[i];
			return;
		}
	}
	for (size_t i = INTERVALS; !longer && i-- > 0;) {
		if (intervals[i] < ui->interval) {
			ui->interval = intervals[i];
			return;
		}
	}
}

static void change_sorting(struct ui *ui, bool next)
{
	struct ui_view *shown = ui_shown(ui);
	const size_t count = ui->column_count;

	if (count == 0)
		return;
	if (shown->sorted >= count)
		shown->sorted = next ? 0 : count - 1;
	else
		shown->sorted = (shown->sorted + (next ? 1 : count - 1)) % count;
	shown->reverse = false;
}

static enum ui_action choose(struct ui *ui, int key)
{
	switch (key) {
	case 'q':
	case CONTROL_C:
		return UI_QUIT;
	case CONTROL_L:
		return UI_REPAINT;
	case 'r':
		return UI_REFRESH;
	case ' ':
		ui->paused = !ui->paused;
		return ui->paused ? UI_REDRAW : UI_REFRESH;
	case 'h':
	case '?':
		ui->help = !ui->help;
		break;
	case ESCAPE:
		ui->help = false;
		ui->filter[0] = '\0';
		break;
	case '/':
		ui->typing = true;
		ui->help = false;
		break;
	case '+':
	case '-':
		change_interval(ui, key == '+');
		break;
	case '<':
	case '>':
		change_sorting(ui, key == '>');
		break;
	case 'R':
		ui_shown(ui)->reverse = !ui_shown(ui)->reverse;
		break;
	default:
		return UI_NOTHING;
	}
	return UI_REDRAW;
}

enum ui_action ui_press(struct ui *ui, int key)
{
	if (ui->typing)
		return type(ui, key);
	return is_view_key(ui, key) || move(ui, key) ? UI_REDRAW : choose(ui, key);
}
