/* SPDX-License-Identifier: ISC */
#include "top/compose.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "top/summary.h"

enum {
	SNAPSHOT_ROWS = 100, /* of each view */
	LOW_SCREEN = 10, /* so many lines have no room for keys and names of views */
};

/* --- the rows of a view ------------------------------------------------------------------- */

static void fill_sheet(struct sheet *sheet, const struct view *view,
	const struct compose_source *source, size_t width)
{
	const struct view_source rows = {source->feed, source->rates, source->holds, width};

	sheet_begin(sheet, view->columns, view->column_count);
	view->fill(sheet, &rows);
}

/* A console that does not know the SHOW, or refuses it; returns whether there is such a line. */
static bool add_refusal(
	struct page *page, const struct view *view, const struct compose_source *source)
{
	const struct feed_answer *answer = &source->feed->answers[view->main];

	if (answer->refusal[0]) {
		if (feed_is_optional(view->main))
			page_printf(page, STYLE_PLAIN, "This console has no %s.",
				feed_query(view->main));
		else
			page_printf(page, STYLE_WARNING,
				"The console refuses %s:", feed_query(view->main));
		page_fold(page, STYLE_FAINT, answer->refusal, 0, 3);
		return true;
	}
	if (answer->at == 0)
		page_printf(
			page, STYLE_FAINT, "%s is not answered yet", feed_query(view->main));
	return answer->at == 0;
}

/* --- the screen --------------------------------------------------------------------------- */

static void add_views(struct page *page, const struct ui *ui)
{
	char text[512] = "";

	for (size_t i = 0; i < VIEWS; i++) {
		const size_t length = strlen(text);

		snprintf(text + length, sizeof(text) - length,
			i == ui->view ? "[%c %s] " : " %c %s  ", views[i]->key, views[i]->name);
	}
	page_add(page, STYLE_STRONG, text);
}

/* How old the rows are, and why they are no newer. */
static void write_state(char *out, size_t size, const struct ui *ui,
	const struct compose_source *source, const struct view *view)
{
	const struct feed_answer *answer = &source->feed->answers[view->main];
	const usec_t period = feed_period(source->feed, view->main);
	const size_t count = answer->table.row_count + answer->table.left_out;

	if (ui->paused)
		snprintf(out, size, "PAUSED, %lld s old",
			(long long)((source->now - answer->at) / USEC_PER_SEC));
	else if (count > FEED_MANY)
		snprintf(out, size, "%zu rows: every %lld s%s", count,
			(long long)(period / USEC_PER_SEC),
			answer->table.left_out > 0 ? ", not all are shown" : "");
	else
		snprintf(out, size, "every %g s", (double)ui->interval / USEC_PER_SEC);
}

static void add_keys(
	struct page *page, const struct ui *ui, const struct compose_source *source)
{
	const struct view *view = views[ui->view];
	char state[100];

	if (ui->typing) {
		page_printf(page, STYLE_STRONG, "filter: %s_", ui->filter);
		return;
	}
	write_state(state, sizeof(state), ui, source, view);
	page_printf(page, STYLE_FAINT, "%s%s%s%zu row%s, %s  q quit  h help  / filter  <> sort",
		ui->filter[0] ? "/" : "", ui->filter, ui->filter[0] ? "  " : "", ui->row_count,
		ui->row_count == 1 ? "" : "s", state);
}

static void add_rows(
	struct page *page, struct ui *ui, const struct compose_source *source, size_t height)
{
	const struct view *view = views[ui->view];
	struct ui_view *shown = ui_shown(ui);
	struct sheet_window window = {.count = height > 1 ? height - 1 : 1};
	struct sheet sheet = {0};

	fill_sheet(&sheet, view, source, page->width);
	if (ui->filter[0])
		sheet_filter(&sheet, ui->filter);
	if (shown->sorted < sheet.column_count)
		sheet_sort(&sheet, shown->sorted, shown->reverse);
	ui->row_count = sheet_length(&sheet);
	ui->column_count = sheet.column_count;
	ui->rows_shown = window.count;
	if (shown->first + window.count > ui->row_count)
		shown->first = ui->row_count > window.count ? ui->row_count - window.count : 0;
	if (shown->shift >= sheet.column_count)
		shown->shift = 0;
	window.first = shown->first;
	window.shift = shown->shift;
	window.sorted = shown->sorted;
	if (!add_refusal(page, view, source)) {
		if (ui->row_count > 0)
			sheet_print(&sheet, &window, page);
		else
			page_add(page, STYLE_FAINT,
				ui->filter[0] ? "no row has the text of the filter"
					      : sheet.note);
	}
	sheet_free(&sheet);
}

static void add_help(struct page *page)
{
	static const char *const lines[] = {
		"  Tab, 1-6        next view, view by number",
		"  arrows, j k     scroll; to the right: columns that did not fit",
		"  PgUp PgDn       a page; Home, End",
		"  < >             sort by the column before, behind; R: in reverse order",
		"  /               show only rows with a text; Esc: all of them",
		"  + -             ask less, more often",
		"  space           stop asking, go on",
		"  r               ask now, connect now",
		"  Ctrl-L          draw anew",
		"  q               quit",
		"Nothing here changes the pooler: only SHOW is sent.",
	};

	for (size_t i = 0; i < VIEWS; i++)
		page_printf(page, STYLE_PLAIN, "  %c               %s: %s", views[i]->key,
			views[i]->name, views[i]->help);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		page_add(page, STYLE_PLAIN, lines[i]);
}

void compose_screen(struct page *page, struct ui *ui, const struct compose_source *source,
	size_t width, size_t height)
{
	const bool low = height < LOW_SCREEN;
	const bool has_keys = !low || ui->typing;
	size_t used;

	page_begin(page, width);
	summary_add(page, source, low ? (height < 6 ? 1 : 2) : height / 3);
	if (!low)
		add_views(page, ui);
	used = page_length(page) + has_keys;
	if (ui->help)
		add_help(page);
	else
		add_rows(page, ui, source, height > used ? height - used : 1);
	/* The line of keys is the last one. */
	while (has_keys && page_length(page) + 1 < height)
		page_add(page, STYLE_PLAIN, "");
	if (has_keys)
		add_keys(page, ui, source);
}

/* --- the snapshot ------------------------------------------------------------------------- */

unsigned compose_snapshot_topics(void)
{
	unsigned topics = VIEW_COMMON_TOPICS;

	for (size_t i = 0; i < VIEWS; i++)
		topics |= views[i]->topics;
	return topics;
}

/* The clients are summed up in the other views. */
static bool is_in_snapshot(const struct view *view, const struct compose_source *source)
{
	const struct feed_answer *answer = &source->feed->answers[view->main];

	return view != &view_clients && !(feed_is_optional(view->main) && answer->refusal[0]);
}

static void add_section(
	struct page *page, const struct view *view, const struct compose_source *source)
{
	struct sheet_window window = {.count = SNAPSHOT_ROWS, .sorted = SIZE_MAX};
	struct sheet sheet = {0};

	fill_sheet(&sheet, view, source, page->width);
	if (view->sorted != SIZE_MAX)
		sheet_sort(&sheet, view->sorted, false);
	page_add(page, STYLE_PLAIN, "");
	page_printf(page, STYLE_STRONG, "%s (%zu)", view->name, sheet_length(&sheet));
	if (!add_refusal(page, view, source)) {
		if (sheet_length(&sheet) > 0)
			sheet_print(&sheet, &window, page);
		else
			page_add(page, STYLE_PLAIN, sheet.note);
		if (sheet_length(&sheet) > SNAPSHOT_ROWS)
			page_printf(page, STYLE_PLAIN, "and %zu more",
				sheet_length(&sheet) - SNAPSHOT_ROWS);
	}
	sheet_free(&sheet);
}

void compose_snapshot(struct page *page, const struct compose_source *source, size_t width)
{
	page_begin(page, width);
	summary_add(page, source, 20);
	for (size_t i = 0; i < VIEWS; i++) {
		if (is_in_snapshot(views[i], source))
			add_section(page, views[i], source);
	}
}
