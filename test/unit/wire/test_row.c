/* SPDX-License-Identifier: ISC */
/* Rows of servers: complete, with NULLs, with inconsistent lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/row.h"

static struct row_value values[2];

/* Read a copy of exactly that size, so that sanitizers detect a read past its end. */
static int read_copy(const char *bytes, size_t length, bool description)
{
	uint8_t *copy = malloc(length > 0 ? length : 1);
	int columns;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	columns = description ? row_description_columns(copy, length)
			      : row_read(copy, length, values, 2);
	free(copy);
	return columns;
}

#define ROW(bytes) read_copy(bytes, sizeof(bytes) - 1, false)
#define DESCRIPTION(bytes) read_copy(bytes, sizeof(bytes) - 1, true)

#define COLUMN(name) name "\0tablnutypeszmodifm"

static void test_columns_are_counted(void **state)
{
	(void)state;
	assert_int_equal(DESCRIPTION("\0\0"), 0);
	assert_int_equal(DESCRIPTION("\0\1" COLUMN("a")), 1);
	assert_int_equal(DESCRIPTION("\0\2" COLUMN("a") COLUMN("")), 2);
}

static void test_a_description_with_wrong_lengths_is_malformed(void **state)
{
	static const char whole[] = "\0\2" COLUMN("a") COLUMN("b");

	(void)state;
	for (size_t length = 0; length < sizeof(whole) - 1; length++)
		assert_int_equal(read_copy(whole, length, true), ROW_MALFORMED);
	assert_int_equal(DESCRIPTION("\0\1" COLUMN("a") "x"), ROW_MALFORMED);
	assert_int_equal(DESCRIPTION("\xff\xff" COLUMN("a")), ROW_MALFORMED);
	assert_int_equal(DESCRIPTION("\0\1no end"), ROW_MALFORMED);
}

static void test_values_are_found(void **state)
{
	static const uint8_t row[] = "\0\2\0\0\0\5alice\0\0\0\0";

	(void)state;
	assert_int_equal(row_read(row, sizeof(row) - 1, values, 2), 2);
	assert_ptr_equal(values[0].data, row + 6);
	assert_int_equal(values[0].length, 5);
	assert_non_null(values[1].data);
	assert_int_equal(values[1].length, 0);
}

static void test_null_differs_from_an_empty_text(void **state)
{
	(void)state;
	assert_int_equal(ROW("\0\2\0\0\0\1a\xff\xff\xff\xff"), 2);
	assert_null(values[1].data);
	assert_int_equal(values[1].length, 0);
}

static void test_values_beyond_the_requested_ones_are_counted(void **state)
{
	(void)state;
	values[1] = (struct row_value){(const uint8_t *)"x", 1};
	assert_int_equal(ROW("\0\1\0\0\0\1a"), 1);
	assert_int_equal(values[1].length, 1);
	assert_int_equal(ROW("\0\3\0\0\0\1a\0\0\0\1b\0\0\0\1c"), 3);
	assert_int_equal(ROW("\0\0"), 0);
}

static void test_a_row_with_wrong_lengths_is_malformed(void **state)
{
	static const char whole[] = "\0\2\0\0\0\5alice\0\0\0\6secret";

	(void)state;
	for (size_t length = 0; length < sizeof(whole) - 1; length++)
		assert_int_equal(read_copy(whole, length, false), ROW_MALFORMED);
	assert_int_equal(ROW("\0\1\0\0\0\1ab"), ROW_MALFORMED);
	assert_int_equal(ROW("\0\1\x7f\xff\xff\xff"
			     "a"),
		ROW_MALFORMED);
	assert_int_equal(ROW("\0\1\xff\xff\xff\xfe"
			     "a"),
		ROW_MALFORMED);
	assert_int_equal(ROW("\xff\xff\0\0\0\1a"), ROW_MALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns_are_counted),
		cmocka_unit_test(test_a_description_with_wrong_lengths_is_malformed),
		cmocka_unit_test(test_values_are_found),
		cmocka_unit_test(test_null_differs_from_an_empty_text),
		cmocka_unit_test(test_values_beyond_the_requested_ones_are_counted),
		cmocka_unit_test(test_a_row_with_wrong_lengths_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
