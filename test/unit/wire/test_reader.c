/* SPDX-License-Identifier: ISC */
/* Fields that are present, and fields that are missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/reader.h"

static void test_fields_are_read_in_network_order(void **state)
{
	const uint8_t data[] = {7, 1, 2, 0x81, 2, 3, 4, 'a', 'b', 0, 0, 9, 8};
	struct reader reader;
	const uint8_t *bytes;

	(void)state;
	reader_init(&reader, data, sizeof(data));
	assert_int_equal(reader_byte(&reader), 7);
	assert_int_equal(reader_int16(&reader), 0x0102);
	assert_int_equal(reader_int32(&reader), 0x81020304);
	assert_string_equal(reader_string(&reader), "ab");
	assert_string_equal(reader_string(&reader), "");
	assert_false(reader_done(&reader));
	assert_int_equal(reader_left(&reader), 2);
	bytes = reader_bytes(&reader, 2);
	assert_ptr_equal(bytes, data + 11);
	assert_true(reader_done(&reader));
}

static void test_an_incomplete_number_fails(void **state)
{
	const uint8_t data[] = {1, 2, 3};
	struct reader reader;

	(void)state;
	reader_init(&reader, data, 3);
	assert_int_equal(reader_int32(&reader), 0);
	assert_true(reader.failed);
	reader_init(&reader, data, 1);
	assert_int_equal(reader_int16(&reader), 0);
	assert_true(reader.failed);
	reader_init(&reader, NULL, 0);
	assert_int_equal(reader_byte(&reader), 0);
	assert_true(reader.failed);
}

static void test_after_a_failure_nothing_is_left(void **state)
{
	const uint8_t data[] = {1, 2, 3};
	struct reader reader;

	(void)state;
	reader_init(&reader, data, sizeof(data));
	reader_int32(&reader);
	assert_int_equal(reader_left(&reader), 0);
	assert_int_equal(reader_byte(&reader), 0);
	assert_int_equal(reader_int16(&reader), 0);
	assert_null(reader_string(&reader));
	assert_null(reader_bytes(&reader, 0));
	assert_false(reader_done(&reader));
}

static void test_a_text_must_end_inside_the_message(void **state)
{
	const uint8_t data[] = {'a', 'b', 'c', 0};
	struct reader reader;

	(void)state;
	reader_init(&reader, data, 3);
	assert_null(reader_string(&reader));
	assert_true(reader.failed);
	reader_init(&reader, data, 4);
	assert_string_equal(reader_string(&reader), "abc");
	assert_null(reader_string(&reader));
	assert_true(reader.failed);
	reader_init(&reader, NULL, 0);
	assert_null(reader_string(&reader));
	assert_true(reader.failed);
}

static void test_a_length_beyond_the_end_fails(void **state)
{
	const uint8_t data[] = {0xff, 0xff, 0xff, 0xff, 'x'};
	struct reader reader;

	(void)state;
	reader_init(&reader, data, sizeof(data));
	assert_null(reader_bytes(&reader, reader_int32(&reader)));
	assert_true(reader.failed);
	reader_init(&reader, data, sizeof(data));
	assert_null(reader_bytes(&reader, SIZE_MAX));
	assert_true(reader.failed);
}

static void test_an_empty_message_is_done_at_once(void **state)
{
	struct reader reader;

	(void)state;
	reader_init(&reader, NULL, 0);
	assert_int_equal(reader_left(&reader), 0);
	assert_true(reader_done(&reader));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_are_read_in_network_order),
		cmocka_unit_test(test_an_incomplete_number_fails),
		cmocka_unit_test(test_after_a_failure_nothing_is_left),
		cmocka_unit_test(test_a_text_must_end_inside_the_message),
		cmocka_unit_test(test_a_length_beyond_the_end_fails),
		cmocka_unit_test(test_an_empty_message_is_done_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
