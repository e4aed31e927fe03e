/* SPDX-License-Identifier: ISC */
/* The builder of result sets. Every byte of a result set is an interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admin/show/result.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/reader.h"

static struct buffer out;
static struct result result;

static int start(void **state)
{
	(void)state;
	buffer_init(&out);
	return 0;
}

static int end(void **state)
{
	(void)state;
	buffer_free(&out);
	return 0;
}

/* Read the message at this offset and move the offset behind it. */
static struct reader open_message(size_t *at, uint8_t type)
{
	struct frame frame = {0};
	struct reader reader;

	assert_int_equal(
		frame_peek(out.data + *at, out.length - *at, 1 << 20, &frame), FRAME_WHOLE);
	assert_int_equal(frame.type, type);
	reader_init(&reader, frame_body(out.data + *at), frame_body_size(&frame));
	*at += frame.total;
	return reader;
}

static void assert_column(struct reader *reader, const char *name, uint32_t oid, uint16_t size)
{
	assert_string_equal(reader_string(reader), name);
	assert_int_equal(reader_int32(reader), 0);
	assert_int_equal(reader_int16(reader), 0);
	assert_int_equal(reader_int32(reader), oid);
	assert_int_equal(reader_int16(reader), size);
	assert_int_equal(reader_int32(reader), UINT32_MAX);
	assert_int_equal(reader_int16(reader), 0);
}

static void assert_cell(struct reader *reader, const char *text)
{
	const uint32_t length = reader_int32(reader);

	if (!text) {
		assert_int_equal(length, UINT32_MAX);
		return;
	}
	assert_int_equal(length, strlen(text));
	if (length > 0)
		assert_memory_equal(reader_bytes(reader, length), text, length);
}

static void test_columns_are_described_by_type(void **state)
{
	static const struct column columns[] = {
		{"t", COLUMN_TEXT},
		{"i", COLUMN_INT4},
		{"b", COLUMN_INT8},
		{"n", COLUMN_NUMERIC},
		{"x", COLUMN_BYTEA},
		{"at", COLUMN_TIME},
	};
	struct reader reader;
	size_t at = 0;

	(void)state;
	result_begin(&result, &out, columns, 6, NULL);
	reader = open_message(&at, PQ_ROW_DESCRIPTION);
	assert_int_equal(reader_int16(&reader), 6);
	assert_column(&reader, "t", 25, UINT16_MAX);
	assert_column(&reader, "i", 23, 4);
	assert_column(&reader, "b", 20, 8);
	assert_column(&reader, "n", 1700, UINT16_MAX);
	assert_column(&reader, "x", 17, UINT16_MAX);
	assert_column(&reader, "at", 25, UINT16_MAX);
	assert_true(reader_done(&reader));
	assert_int_equal(at, out.length);
}

static void test_cells_are_rendered_as_text(void **state)
{
	static const struct column columns[] = {
		{"text", COLUMN_TEXT},
		{"null", COLUMN_TEXT},
		{"empty", COLUMN_TEXT},
		{"count", COLUMN_NUMERIC},
		{"bytes", COLUMN_BYTEA},
		{"none", COLUMN_BYTEA},
		{"big", COLUMN_INT8},
	};
	struct reader reader;
	size_t at = 0;

	(void)state;
	result_begin(&result, &out, columns, 7, NULL);
	result_begin_row(&result);
	result_text(&result, "a'b");
	result_text(&result, NULL);
	result_text(&result, "");
	result_count(&result, UINT64_MAX);
	result_bytes(&result, "\x00\xabz", 3);
	result_bytes(&result, NULL, 0);
	result_number(&result, 1LL << 40);
	result_end_row(&result);
	assert_false(out.failed);
	open_message(&at, PQ_ROW_DESCRIPTION);
	reader = open_message(&at, PQ_DATA_ROW);
	assert_int_equal(reader_int16(&reader), 7);
	assert_cell(&reader, "a'b");
	assert_cell(&reader, NULL);
	assert_cell(&reader, "");
	assert_cell(&reader, "18446744073709551615");
	assert_cell(&reader, "\\x00ab7a");
	assert_cell(&reader, NULL);
	assert_cell(&reader, "1099511627776");
	assert_true(reader_done(&reader));
	assert_int_equal(at, out.length);
}

static void assert_bytes(struct reader *reader, const void *bytes, size_t length)
{
	assert_int_equal(reader_int32(reader), length);
	assert_memory_equal(reader_bytes(reader, length), bytes, length);
}

static void add_numeric(uint64_t count)
{
	result_begin_row(&result);
	result_text(&result, NULL);
	result_number(&result, -2);
	result_number(&result, 1LL << 40);
	result_count(&result, count);
	result_bytes(&result, "\x00\xfez", 3);
	result_time(&result, 0);
	result_end_row(&result);
}

/* As PostgreSQL sends a numeric: number of groups of four digits, weight of the first, sign, scale. */
static void test_binary_cells_are_those_of_postgresql(void **state)
{
	static const struct column columns[] = {
		{"t", COLUMN_TEXT},
		{"i", COLUMN_INT4},
		{"b", COLUMN_INT8},
		{"n", COLUMN_NUMERIC},
		{"x", COLUMN_BYTEA},
		{"at", COLUMN_TIME},
	};
	static const struct {
		uint64_t count;
		const char *bytes;
		size_t length;
	} numerics[] = {
		{0, "\0\0\0\0\0\0\0\0", 8},
		{7, "\0\1\0\0\0\0\0\0\0\7", 10},
		{10000, "\0\1\0\1\0\0\0\0\0\1", 10},
		{120000003, "\0\3\0\2\0\0\0\0\0\1\x07\xd0\0\3", 14},
		{UINT64_MAX, "\0\5\0\4\0\0\0\0\x07\x34\x1a\x58\x02\xe1\x03\xbb\x06\x4f", 18},
	};
	const struct result_options options = {.binary = 0x3e};
	struct reader reader;
	size_t at = 0;

	(void)state;
	result_begin(&result, &out, columns, 6, &options);
	for (size_t i = 0; i < sizeof(numerics) / sizeof(numerics[0]); i++)
		add_numeric(numerics[i].count);
	result_end(&result);
	assert_false(out.failed);
	reader = open_message(&at, PQ_ROW_DESCRIPTION);
	assert_int_equal(reader_int16(&reader), 6);
	for (unsigned i = 0; i < 6; i++) {
		assert_string_equal(reader_string(&reader), columns[i].name);
		reader_bytes(&reader, 16);
		assert_int_equal(reader_int16(&reader), i > 0);
	}
	for (size_t i = 0; i < sizeof(numerics) / sizeof(numerics[0]); i++) {
		reader = open_message(&at, PQ_DATA_ROW);
		assert_int_equal(reader_int16(&reader), 6);
		assert_cell(&reader, NULL);
		assert_bytes(&reader, "\xff\xff\xff\xfe", 4);
		assert_bytes(&reader, "\0\0\1\0\0\0\0\0", 8);
		assert_bytes(&reader, numerics[i].bytes, numerics[i].length);
		assert_bytes(&reader, "\0\xfez", 3);
		assert_int_equal(reader_int32(&reader), strlen(result.moment));
	}
	assert_int_equal(at, out.length);
}

static void test_int4_never_overflows(void **state)
{
	static const struct column columns[] = {{"a", COLUMN_INT4}, {"b", COLUMN_INT4}};
	struct reader reader;
	size_t at = 0;

	(void)state;
	result_begin(&result, &out, columns, 2, NULL);
	result_begin_row(&result);
	result_number(&result, 1LL << 40);
	result_number(&result, -(1LL << 40));
	result_end_row(&result);
	result_begin_row(&result);
	result_number(&result, 0);
	result_number(&result, -10);
	result_end_row(&result);
	open_message(&at, PQ_ROW_DESCRIPTION);
	reader = open_message(&at, PQ_DATA_ROW);
	reader_int16(&reader);
	assert_cell(&reader, "2147483647");
	assert_cell(&reader, "-2147483648");
	assert_true(reader_done(&reader));
	reader = open_message(&at, PQ_DATA_ROW);
	reader_int16(&reader);
	assert_cell(&reader, "0");
	assert_cell(&reader, "-10");
}

static void test_times_are_local_and_without_fraction(void **state)
{
	static const struct column columns[] = {{"a", COLUMN_TIME}, {"b", COLUMN_TIME}};
	struct reader reader;
	size_t at = 0;

	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	result_begin(&result, &out, columns, 2, NULL);
	result_begin_row(&result);
	result_time(&result, 1700000000 * USEC_PER_SEC + 999999);
	result_time(&result, 1720000000 * USEC_PER_SEC);
	result_end_row(&result);
	open_message(&at, PQ_ROW_DESCRIPTION);
	reader = open_message(&at, PQ_DATA_ROW);
	reader_int16(&reader);
	assert_cell(&reader, "2023-11-14 23:13:20 CET");
	assert_cell(&reader, "2024-07-03 11:46:40 CEST");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_columns_are_described_by_type, start, end),
		cmocka_unit_test_setup_teardown(test_cells_are_rendered_as_text, start, end),
		cmocka_unit_test_setup_teardown(
			test_binary_cells_are_those_of_postgresql, start, end),
		cmocka_unit_test_setup_teardown(test_int4_never_overflows, start, end),
		cmocka_unit_test_setup_teardown(
			test_times_are_local_and_without_fraction, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
