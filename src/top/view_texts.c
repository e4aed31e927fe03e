/* SPDX-License-Identifier: ISC */
/* SHOW ADVICE as sentences over the whole width, and SHOW SLOW with the columns that it has. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "top/ages.h"
#include "top/printable.h"
#include "top/view.h"

/* --- advice ------------------------------------------------------------------------------- */

static const struct sheet_column advice_columns[] = {{"ADVICE", 1, 20}};

static enum page_style style_of(const char *severity)
{
	if (severity && strcmp(severity, "critical") == 0)
		return STYLE_CRITICAL;
	return severity && strcmp(severity, "warning") == 0 ? STYLE_WARNING : STYLE_PLAIN;
}

/* A text over several rows, those behind the first indented. */
static void add_folded(struct sheet *sheet, enum page_style style, const char *text,
	size_t width, bool indented)
{
	const char *blanks = indented && width > 40 ? "    " : "";
	char line[TABLE_CELL_MOST + 8];

	while (*text) {
		const size_t length = printable_fold(text, width - strlen(blanks));

		snprintf(line, sizeof(line), "%s%.*s", blanks, (int)length, text);
		sheet_row(sheet, style);
		sheet_text(sheet, line);
		text += length;
	}
}

static const char *cell(const struct table *table, size_t row, const char *column)
{
	const char *text = table_text(table, row, table_column(table, column));

	return text ? text : "";
}

/* The pool, since when, and the setting to change: above the sentence. */
static void add_head(struct sheet *sheet, const struct table *advice, size_t row, size_t width)
{
	const char *severity = cell(advice, row, "severity"),
		   *database = cell(advice, row, "database"), *user = cell(advice, row, "user"),
		   *setting = cell(advice, row, "setting");
	const double since =
		table_number(advice, row, table_column(advice, "since_seconds"), AGES_UNKNOWN);
	char text[5 * 160], time[32] = "";

	if (since >= 0)
		sheet_write_time(time, sizeof(time), since);
	snprintf(text, sizeof(text), "%.64s %.64s%s%.128s%s%.128s%s%s%s%.128s", severity,
		cell(advice, row, "code"), database[0] ? "  " : "", database,
		user[0] ? "/" : "", user, time[0] ? "  since " : "", time,
		setting[0] ? "  change: " : "", setting);
	add_folded(sheet, style_of(severity), text, width, false);
}

static void fill_advice(struct sheet *sheet, const struct view_source *source)
{
	const struct table *advice = feed_table(source->feed, TOPIC_ADVICE);

	sheet->note = "nothing to advise";
	for (size_t row = 0; row < advice->row_count; row++) {
		add_head(sheet, advice, row, source->width);
		add_folded(
			sheet, STYLE_PLAIN, cell(advice, row, "advice"), source->width, true);
	}
}

const struct view view_advice = {
	.key = 'a',
	.name = "advice",
	.help = "what the pooler advises, if it has SHOW ADVICE",
	.topics = TOPIC_BIT(TOPIC_ADVICE),
	.main = TOPIC_ADVICE,
	.columns = advice_columns,
	.column_count = 1,
	.sorted = SIZE_MAX,
	.fill = fill_advice,
};

/* --- slow queries ------------------------------------------------------------------------- */

/* The columns of the last answer. They point to its names, which live as long as the feed's table. */
static struct sheet_column slow_columns[SHEET_COLUMNS_MOST];

/* What matters most comes first. Other columns follow in the console's order. */
static const char *const important[] = {
	"total_us",
	"text",
	"queue_us",
	"server_us",
	"cause",
	"application_name",
	"at",
	"database",
	"user",
	"client_us",
	"client_addr",
};

enum { IMPORTANT = sizeof(important) / sizeof(important[0]) };

static unsigned char rank_of(const char *name, size_t column)
{
	for (size_t i = 0; i < IMPORTANT; i++) {
		if (strcmp(name, important[i]) == 0)
			return (unsigned char)(i + 1);
	}
	return (unsigned char)(IMPORTANT + column + 1);
}

/* Whether the column has a number in the first rows. */
static bool has_numbers(const struct table *table, size_t column)
{
	for (size_t row = 0; row < table->row_count && row < 20; row++) {
		const char *text = table_text(table, row, column);

		if (text && text[0])
			return strspn(text, "-+.0123456789") == strlen(text);
	}
	return false;
}

static bool is_microseconds(const char *name)
{
	const size_t length = strlen(name);

	return length > 3 && strcmp(name + length - 3, "_us") == 0;
}

static size_t name_columns(const struct table *slow)
{
	const size_t count = slow->column_count < SHEET_COLUMNS_MOST ? slow->column_count
								     : SHEET_COLUMNS_MOST;

	for (size_t i = 0; i < count; i++) {
		slow_columns[i] = (struct sheet_column){
			.title = table_name(slow, i),
			.rank = rank_of(table_name(slow, i), i),
			.least = 4,
			.number = has_numbers(slow, i),
			.readable = strcmp(table_name(slow, i), "text") == 0 ? 50 : 0,
		};
	}
	return count;
}

/* A time in microseconds as it is read best. */
static void add_microseconds(struct sheet *sheet, double number)
{
	const double seconds = number / USEC_PER_SEC;
	char text[32];

	if (seconds < 1)
		snprintf(text, sizeof(text), "%.1f ms", number / USEC_PER_MSEC);
	else
		sheet_write_time(text, sizeof(text), seconds);
	sheet_number(sheet, number, text);
}

static void add_cell(struct sheet *sheet, const struct table *slow, size_t row, size_t column)
{
	const char *text = table_text(slow, row, column);
	const double number = table_number(slow, row, column, 0);

	if (text && text[0] && slow_columns[column].number &&
		is_microseconds(slow_columns[column].title))
		add_microseconds(sheet, number);
	else
		sheet_number(sheet, number, text);
}

static void fill_slow(struct sheet *sheet, const struct view_source *source)
{
	const struct table *slow = feed_table(source->feed, TOPIC_SLOW);
	const size_t count = name_columns(slow);

	sheet_begin(sheet, slow_columns, count);
	sheet->note = "no slow query was recorded: log_min_duration says from when on";
	for (size_t row = 0; row < slow->row_count; row++) {
		sheet_row(sheet, STYLE_PLAIN);
		for (size_t i = 0; i < count; i++)
			add_cell(sheet, slow, row, i);
	}
}

const struct view view_slow = {
	.key = 'l',
	.name = "slow",
	.help = "the last slow queries, if the pooler has SHOW SLOW",
	.topics = TOPIC_BIT(TOPIC_SLOW),
	.main = TOPIC_SLOW,
	.sorted = SIZE_MAX,
	.fill = fill_slow,
};
