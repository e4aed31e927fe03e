/* SPDX-License-Identifier: ISC */
/* Rows and columns: filtered, sorted, and fitted to a width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "top/sheet.h"

static const struct sheet_column columns[] = {
	{"NAME", 1, 4},
	{"WAIT", 2, .number = true},
	{"USER", 4, 3, 8},
	{"EMPTY", 3},
	{"SIZE", 5, .number = true},
};

static struct sheet sheet;
static struct page page;

static void add_row(const char *name, double wait, const char *user, double size)
{
	sheet_row(&sheet, STYLE_PLAIN);
	sheet_text(&sheet, name);
	sheet_time(&sheet, wait);
	sheet_text(&sheet, user);
	sheet_text(&sheet, NULL);
	sheet_count(&sheet, size);
}

static int fill(void **state)
{
	(void)state;
	sheet_begin(&sheet, columns, 5);
	add_row("orders", 1.5, "app", 10);
	add_row("accounts", 120, "application_user", 5);
	add_row("archive", -1, "Batch", 123456);
	return 0;
}

static int drop(void **state)
{
	(void)state;
	sheet_free(&sheet);
	page_free(&page);
	return 0;
}

/* The line of the page that a width has. */
static const char *line(size_t width, size_t number)
{
	const struct sheet_window window = {.count = 10, .sorted = SIZE_MAX};
	enum page_style style;

	page_begin(&page, width);
	sheet_print(&sheet, &window, &page);
	return page_text(&page, number, &style);
}

static void test_columns_without_a_value_are_left_out(void **state)
{
	(void)state;
	assert_string_equal(line(80, 0), "NAME      WAIT USER       SIZE");
	assert_string_equal(line(80, 1), "orders   1.5 s app          10");
	assert_string_equal(line(80, 2), "accounts 2m00s applica~      5");
	assert_string_equal(line(80, 3), "archive        Batch    123456");
}

static void test_unimportant_columns_give_way(void **state)
{
	(void)state;
	/* SIZE first, then USER. Texts are cut, numbers are not. */
	assert_string_equal(line(20, 0), "NAME      WAIT USER");
	assert_string_equal(line(18, 2), "accounts 2m00s ap~");
	assert_string_equal(line(17, 2), "accoun~ 2m00s ap~");
	assert_string_equal(line(13, 2), "accoun~ 2m00s");
	assert_string_equal(line(10, 2), "acc~ 2m00s");
	assert_string_equal(line(9, 2), "accounts");
	assert_string_equal(line(3, 2), "ac~");
}

static void test_no_line_is_wider_than_the_page(void **state)
{
	(void)state;
	for (size_t width = 1; width < 60; width++) {
		for (size_t number = 0; number < 4; number++)
			assert_true(strlen(line(width, number)) <= width);
	}
}

static void test_numbers_begin_with_the_largest(void **state)
{
	(void)state;
	sheet_sort(&sheet, 1, false);
	assert_memory_equal(line(80, 1), "accounts", 8);
	assert_memory_equal(line(80, 3), "archive", 7);
	sheet_sort(&sheet, 1, true);
	assert_memory_equal(line(80, 1), "archive", 7);
	sheet_sort(&sheet, 0, false);
	assert_memory_equal(line(80, 1), "accounts", 8);
	assert_memory_equal(line(80, 3), "orders", 6);
	/* Equal rows stay as they were added. */
	sheet_sort(&sheet, 3, true);
	assert_memory_equal(line(80, 1), "orders", 6);
}

static void test_filter_looks_into_every_cell(void **state)
{
	(void)state;
	sheet_filter(&sheet, "BATCH");
	assert_int_equal(sheet_length(&sheet), 1);
	assert_memory_equal(line(80, 1), "archive", 7);
	sheet_filter(&sheet, "nothing");
	assert_int_equal(sheet_length(&sheet), 0);
	line(80, 0);
	assert_int_equal(page_length(&page), 1);
}

static void test_window_shows_a_part(void **state)
{
	const struct sheet_window window = {.first = 1, .count = 1, .shift = 1, .sorted = 1};
	enum page_style style;

	(void)state;
	page_begin(&page, 80);
	sheet_print(&sheet, &window, &page);
	assert_int_equal(page_length(&page), 2);
	assert_string_equal(page_text(&page, 0, &style), "*WAIT USER       SIZE");
	assert_string_equal(page_text(&page, 1, &style), "2m00s applica~      5");
}

static void test_times_are_short(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} rows[] = {
		{0, "0.0 s"},
		{12.34, "12.3 s"},
		{60, "1m00s"},
		{3599, "59m59s"},
		{3600, "1h00m"},
		{86400 * 12 + 3600 * 4, "12d04h"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sheet_write_time(text, sizeof(text), rows[i].seconds);
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_columns_without_a_value_are_left_out, fill, drop),
		cmocka_unit_test_setup_teardown(test_unimportant_columns_give_way, fill, drop),
		cmocka_unit_test_setup_teardown(
			test_no_line_is_wider_than_the_page, fill, drop),
		cmocka_unit_test_setup_teardown(
			test_numbers_begin_with_the_largest, fill, drop),
		cmocka_unit_test_setup_teardown(test_filter_looks_into_every_cell, fill, drop),
		cmocka_unit_test_setup_teardown(test_window_shows_a_part, fill, drop),
		cmocka_unit_test(test_times_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
