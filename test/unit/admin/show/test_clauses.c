/* SPDX-License-Identifier: ISC */
/* Clauses of SHOW: which texts are valid, which rows they select, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "admin/show/cells.h"
#include "admin/show/clauses.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/row.h"

static const struct column columns[] = {
	{"name", COLUMN_TEXT},
	{"port", COLUMN_INT4},
	{"total", COLUMN_NUMERIC},
	{"at", COLUMN_TIME},
	{"size", COLUMN_TEXT},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static struct clauses clauses;
static struct clause_fault fault;

static void assert_fault(const char *text, const char *sqlstate, const char *message)
{
	assert_false(clauses_parse(text, columns, COLUMNS, &clauses, &fault));
	assert_string_equal(fault.text, message);
	assert_string_equal(fault.sqlstate, sqlstate);
}

static void test_faults_are_reported(void **state)
{
	(void)state;
	assert_fault("WHERE", "42601", "a column expected at the end");
	assert_fault("WHERE nothing = 1", "42703", "column \"nothing\" does not exist");
	assert_fault("WHERE name", "42601", "a comparison expected at the end");
	assert_fault("WHERE name == 1", "42601", "a value expected at \"= 1\"");
	assert_fault("WHERE name ~ 'x'", "42601", "a comparison expected at \"~ 'x'\"");
	assert_fault("WHERE name = $1", "0A000",
		"parameters are not supported, write the value itself");
	assert_fault("WHERE name = 'x", "42601", "a value expected at \"'x\"");
	assert_fault("WHERE port = 'x'", "22P02", "column \"port\" is a number, 'x' is not");
	assert_fault("WHERE port = x", "22P02", "column \"port\" is a number, 'x' is not");
	assert_fault("WHERE name = x OR name = y", "42601",
		"another clause or the end expected at \"OR name = y\"");
	assert_fault("WHERE name IS empty", "42601", "NULL expected at \"empty\"");
	assert_fault("WHERE name NOT 'x'", "42601", "a comparison expected at \"'x'\"");
	assert_fault("ORDER name", "42601", "BY expected at \"name\"");
	assert_fault("ORDER BY", "42601", "a column expected at the end");
	assert_fault("ORDER BY 1", "42703", "column \"1\" does not exist");
	assert_fault("ORDER BY name,", "42601", "a column expected at the end");
	assert_fault("LIMIT", "42601", "LIMIT takes a number of rows");
	assert_fault("LIMIT -1", "42601", "LIMIT takes a number of rows");
	assert_fault("LIMIT 99999999999999999999", "42601", "LIMIT takes a number of rows");
	assert_fault("LIMIT 1 WHERE name = x", "42601",
		"another clause or the end expected at \"WHERE name = x\"");
	assert_fault("LIMIT 1; LIMIT 1", "42601",
		"another clause or the end expected at \"; LIMIT 1\"");
}

static void test_number_and_length_of_clauses_are_limited(void **state)
{
	char text[1024] = "WHERE port > 0";
	size_t length = strlen(text);

	(void)state;
	for (int i = 1; i < CLAUSE_TESTS; i++)
		length += (size_t)sprintf(text + length, " AND port > 0");
	assert_true(clauses_parse(text, columns, COLUMNS, &clauses, &fault));
	assert_int_equal(clauses.test_count, CLAUSE_TESTS);
	strcpy(text + length, " AND port > 0");
	assert_fault(text, "54001", "more than 16 conditions");
	assert_true(clauses_parse("ORDER BY name, name, name, name, name, name, name, name",
		columns, COLUMNS, &clauses, &fault));
	assert_fault("ORDER BY name, name, name, name, name, name, name, name, name", "54001",
		"more than 8 columns to order by");
	length = (size_t)sprintf(text, "WHERE name = '%0*d'", CLAUSE_VALUE_SIZE - 1, 0);
	assert_true(clauses_parse(text, columns, COLUMNS, &clauses, &fault));
	sprintf(text, "WHERE name = '%0*d'", CLAUSE_VALUE_SIZE, 0);
	assert_fault(text, "42601", "a value is too long");
}

static void test_clauses_are_refused_without_columns(void **state)
{
	(void)state;
	assert_false(clauses_parse("LIMIT 1", NULL, 0, &clauses, &fault));
	assert_string_equal(fault.text, "there are no rows to choose from");
}

/* --- rows --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int port;
	uint64_t total;
	const char *size;
} rows[] = {
	{"alpha", 9, UINT64_MAX, "        9"},
	{"beta", 10, 5, ""},
	{NULL, -1, 0, "       20"},
	{"Gamma", 10, 100, "x"},
	{"al_ha", 2000, 99, "0.5"},
	{"", 0, 10, "100"},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static struct buffer out;

static void build(const char *text)
{
	struct result_options options = {.clauses = &clauses, .is_described = true};
	struct result result;

	if (!clauses_parse(text, columns, COLUMNS, &clauses, &fault))
		fail_msg("%s: %s", text, fault.text);
	buffer_free(&out);
	result_begin(&result, &out, columns, COLUMNS, &options);
	for (int i = 0; i < ROWS; i++) {
		result_begin_row(&result);
		result_text(&result, rows[i].name);
		result_number(&result, rows[i].port);
		result_count(&result, rows[i].total);
		result_time(&result, (usec_t)(i + 1) * 1000 * USEC_PER_SEC);
		result_text(&result, rows[i].size);
		result_end_row(&result);
	}
	result_end(&result);
	assert_false(out.failed);
}

/* The first letters of the names of the selected rows; `-` is NULL and `.` is the empty text. */
static const char *selected(const char *text)
{
	static char names[ROWS + 1];
	struct frame frame = {0};
	size_t count = 0;

	build(text);
	for (size_t at = 0; at < out.length; at += frame.total) {
		struct row_value name;

		assert_int_equal(frame_peek(out.data + at, out.length - at, 1 << 20, &frame),
			FRAME_WHOLE);
		assert_int_equal(frame.type, PQ_DATA_ROW);
		assert_int_equal(
			row_read(frame_body(out.data + at), frame_body_size(&frame), &name, 1),
			COLUMNS);
		names[count++] = !name.data ? '-' : name.length ? (char)name.data[0] : '.';
	}
	names[count] = '\0';
	buffer_free(&out);
	return names;
}

static void test_rows_are_selected(void **state)
{
	static const char *const cases[][2] = {
		{"WHERE name = 'alpha'", "a"},
		{"where NAME=alpha;", "a"},
		{"WHERE \"name\" = \"beta\" ;", "b"},
		{"WHERE name = ''", "."},
		{"WHERE name = unknown", ""},
		{"WHERE name <> 'alpha'", "bGa."},
		{"WHERE name != 'alpha'", "bGa."},
		{"WHERE name > 'alpha'", "b"},
		{"WHERE name < 'alpha'", "Ga."},
		{"WHERE name >= 'alpha' AND name <= 'beta'", "ab"},
		{"WHERE name IS NULL", "-"},
		{"WHERE name IS NOT NULL", "abGa."},
		/* columns of numbers are compared by value, not digit by digit */
		{"WHERE port > 9", "bGa"},
		{"WHERE port >= 9.5", "bGa"},
		{"WHERE port<'10'", "a-."},
		{"WHERE port = 010", "bG"},
		{"WHERE port = 10.0", "bG"},
		{"WHERE port < 0", "-"},
		{"WHERE port = -0", "."},
		{"WHERE total = 18446744073709551615", "a"},
		{"WHERE total > 18446744073709551614", "a"},
		{"WHERE total < 123456789012345678901234567890", "ab-Ga."},
		/* a number without quotes is compared as a number with columns of text too */
		{"WHERE size > 9", "-."},
		{"WHERE size = 9", "a"},
		{"WHERE size = '9'", ""},
		{"WHERE size < 1", "a"},
		{"WHERE size <> 9", "b-Ga."},
		{"WHERE name LIKE 'al%'", "aa"},
		{"WHERE name LIKE 'al\\_ha'", "a"},
		{"WHERE name LIKE 'al_ha'", "aa"},
		{"WHERE name NOT LIKE '%a'", "."},
		{"WHERE name LIKE '%'", "abGa."},
		{"WHERE port LIKE '%0%'", "bGa."},
		{"WHERE at > '1970-01-01 00:50'", "-Ga."},
		{"WHERE port = 10 AND total = 100", "G"},
		{"WHERE port = 10 AND total = 100 AND name = beta", ""},
		{"LIMIT 0", ""},
		{"LIMIT 2", "ab"},
		{"LIMIT 100", "ab-Ga."},
		{"WHERE port > 0 LIMIT 3", "abG"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(selected(cases[i][0]), cases[i][1]) != 0)
			fail_msg("%s: %s", cases[i][0], selected(cases[i][0]));
	}
}

static void test_rows_are_ordered(void **state)
{
	static const char *const cases[][2] = {
		{"ORDER BY name", ".Gaab-"}, /* al_ha before alpha: '_' before 'p' */
		{"ORDER BY name DESC", "-baaG."},
		{"ORDER BY port", "-.abGa"},
		{"ORDER BY port DESC, name", "aGba.-"},
		{"order by port asc , name desc", "-.abGa"},
		{"ORDER BY port, name", "-.aGba"},
		{"ORDER BY total DESC LIMIT 2", "aG"},
		{"ORDER BY total", "-b.aGa"},
		{"ORDER BY size", "ba-a.G"}, /* as texts */
		{"WHERE port > 0 ORDER BY total LIMIT 3", "baG"},
		{"ORDER BY port LIMIT 0", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(selected(cases[i][0]), cases[i][1]) != 0)
			fail_msg("%s: %s", cases[i][0], selected(cases[i][0]));
	}
}

/* --- cells -------------------------------------------------------------------------------- */

static int order_of(const char *a, const char *b)
{
	struct decimal first, second;
	int order;

	assert_true(cells_read_decimal(a, strlen(a), &first));
	assert_true(cells_read_decimal(b, strlen(b), &second));
	order = cells_compare_decimals(&first, &second);
	assert_true((order > 0) == (cells_compare_decimals(&second, &first) < 0));
	return (order > 0) - (order < 0);
}

static void test_decimals_are_exact(void **state)
{
	static const char *const none[] = {"", "-", "+", ".", "1e3", "0x10", "1.2.3", "1 2",
		"--1", "1,5", "NaN", "- 1", "1 "};
	struct decimal number;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(cells_read_decimal(none[i], strlen(none[i]), &number));
	assert_int_equal(order_of("2", "10"), -1);
	assert_int_equal(order_of("-2", "-10"), 1);
	assert_int_equal(order_of("-1", "1"), -1);
	assert_int_equal(order_of("0", "-0.00"), 0);
	assert_int_equal(order_of("+1.50", "001.5"), 0);
	assert_int_equal(order_of("1.5", "1.49"), 1);
	assert_int_equal(order_of("1.", "1"), 0);
	assert_int_equal(order_of(".5", "0.50"), 0);
	assert_int_equal(order_of("18446744073709551616", "18446744073709551615"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults_are_reported),
		cmocka_unit_test(test_number_and_length_of_clauses_are_limited),
		cmocka_unit_test(test_clauses_are_refused_without_columns),
		cmocka_unit_test(test_rows_are_selected),
		cmocka_unit_test(test_rows_are_ordered),
		cmocka_unit_test(test_decimals_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
