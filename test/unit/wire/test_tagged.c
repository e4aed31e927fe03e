/* SPDX-License-Identifier: ISC */
/* Tagged records: fields are read back as written, and broken records are detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/message.h"
#include "wire/tagged.h"

enum { HEADER = 5 };

static struct buffer buffer;

static int start(void **state)
{
	(void)state;
	buffer_init(&buffer);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	buffer_free(&buffer);
	return 0;
}

static void write_record(void)
{
	const size_t mark = tagged_begin(&buffer, 'K');

	tagged_number(&buffer, 7, UINT64_C(0x1122334455667788));
	tagged_number(&buffer, 8, 0);
	tagged_text(&buffer, 9, "text");
	tagged_text(&buffer, 10, NULL);
	tagged_bytes(&buffer, 60000, "\0\1", 2);
	tagged_end(&buffer, mark);
}

static void test_fields_are_read_back_in_order(void **state)
{
	struct tagged_field field;
	struct reader reader;

	(void)state;
	write_record();
	assert_int_equal(buffer.data[0], PQ_COPY_DATA);
	reader_init(&reader, buffer.data + HEADER, buffer.length - HEADER);
	assert_int_equal(reader_byte(&reader), 'K');
	assert_true(tagged_next(&reader, &field));
	assert_int_equal(field.tag, 7);
	assert_true(tagged_to_number(&field) == UINT64_C(0x1122334455667788));
	assert_true(tagged_next(&reader, &field));
	assert_int_equal(field.tag, 9);
	assert_string_equal(tagged_to_text(&field), "text");
	assert_true(tagged_next(&reader, &field));
	assert_int_equal(field.tag, 60000);
	assert_int_equal(field.length, 2);
	assert_null(tagged_to_text(&field));
	assert_int_equal(tagged_to_number(&field), 0);
	assert_false(tagged_next(&reader, &field));
	assert_true(reader_done(&reader));
}

/* Read a copy of exactly that size, so that sanitizers detect a read past its end. */
static bool is_whole(size_t length)
{
	uint8_t *copy = malloc(length);
	struct tagged_field field;
	struct reader reader;
	bool whole;

	assert_non_null(copy);
	memcpy(copy, buffer.data + HEADER + 1, length);
	reader_init(&reader, copy, length);
	while (tagged_next(&reader, &field))
		;
	whole = reader_done(&reader);
	free(copy);
	return whole;
}

static void test_a_record_cut_inside_a_field_is_broken(void **state)
{
	const size_t fields[] = {14, 25, 33}; /* ends of fields */
	const size_t length = 33;

	(void)state;
	write_record();
	assert_int_equal(buffer.length, HEADER + 1 + length);
	for (size_t i = 1; i <= length; i++) {
		const bool at_end = i == fields[0] || i == fields[1] || i == fields[2];

		assert_true(is_whole(i) == at_end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_fields_are_read_back_in_order, start, stop),
		cmocka_unit_test_setup_teardown(
			test_a_record_cut_inside_a_field_is_broken, start, stop),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
