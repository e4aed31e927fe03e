/* SPDX-License-Identifier: ISC */
/* Message boundaries: every split of a message, and every impossible length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/frame.h"

/* A limit that no message of these tests reaches. */
enum { ROOMY = INT32_MAX };

static enum frame_result peek_length(uint32_t length, uint32_t max, struct frame *out)
{
	const uint8_t header[FRAME_HEADER_SIZE] = {'Q', (uint8_t)(length >> 24),
		(uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length};

	return frame_peek(header, sizeof(header), max, out);
}

static void test_fewer_than_five_bytes_are_an_incomplete_header(void **state)
{
	const uint8_t data[] = {'Z', 0, 0, 0};
	struct frame frame;
	size_t available;

	(void)state;
	for (available = 0; available <= sizeof(data); available++)
		assert_int_equal(frame_peek(data, available, ROOMY, &frame), FRAME_SHORT);
	assert_int_equal(frame_peek(NULL, 0, ROOMY, &frame), FRAME_SHORT);
}

static void test_a_message_is_partial_until_its_last_byte(void **state)
{
	const uint8_t data[] = {'Z', 0, 0, 0, 5, 'I', 'E'};
	struct frame frame;

	(void)state;
	assert_int_equal(frame_peek(data, 5, ROOMY, &frame), FRAME_PARTIAL);
	assert_int_equal(frame.type, 'Z');
	assert_int_equal(frame.total, 6);
	assert_int_equal(frame_peek(data, 6, ROOMY, &frame), FRAME_WHOLE);
	assert_int_equal(frame_peek(data, 7, ROOMY, &frame), FRAME_WHOLE);
	assert_int_equal(frame.total, 6);
	assert_int_equal(frame_body_size(&frame), 1);
	assert_int_equal(frame_body(data)[0], 'I');
}

static void test_a_message_without_body_is_complete(void **state)
{
	const uint8_t data[] = {'S', 0, 0, 0, 4};
	struct frame frame;

	(void)state;
	assert_int_equal(frame_peek(data, sizeof(data), ROOMY, &frame), FRAME_WHOLE);
	assert_int_equal(frame.total, 5);
	assert_int_equal(frame_body_size(&frame), 0);
}

static void test_a_length_below_its_own_size_is_malformed(void **state)
{
	struct frame frame;
	uint32_t length;

	(void)state;
	for (length = 0; length < 4; length++)
		assert_int_equal(peek_length(length, ROOMY, &frame), FRAME_MALFORMED);
}

static void test_the_limit_counts_the_letter(void **state)
{
	struct frame frame;

	(void)state;
	assert_int_equal(peek_length(99, 100, &frame), FRAME_PARTIAL);
	assert_int_equal(frame.total, 100);
	assert_int_equal(peek_length(100, 100, &frame), FRAME_MALFORMED);
}

static void test_huge_lengths_do_not_wrap(void **state)
{
	struct frame frame;

	(void)state;
	assert_int_equal(peek_length(0x7ffffffe, ROOMY, &frame), FRAME_PARTIAL);
	assert_int_equal(frame.total, 0x7fffffff);
	assert_int_equal(peek_length(0x7fffffff, ROOMY, &frame), FRAME_MALFORMED);
	assert_int_equal(peek_length(0x80000000, ROOMY, &frame), FRAME_MALFORMED);
	assert_int_equal(peek_length(0xffffffff, ROOMY, &frame), FRAME_MALFORMED);
	assert_int_equal(peek_length(0xffffffff, UINT32_MAX, &frame), FRAME_MALFORMED);
	assert_int_equal(peek_length(4, FRAME_MAX_LEAST, &frame), FRAME_MALFORMED);
	assert_int_equal(peek_length(0xffffffff, FRAME_MAX_LEAST, &frame), FRAME_MALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fewer_than_five_bytes_are_an_incomplete_header),
		cmocka_unit_test(test_a_message_is_partial_until_its_last_byte),
		cmocka_unit_test(test_a_message_without_body_is_complete),
		cmocka_unit_test(test_a_length_below_its_own_size_is_malformed),
		cmocka_unit_test(test_the_limit_counts_the_letter),
		cmocka_unit_test(test_huge_lengths_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
