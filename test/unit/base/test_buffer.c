/* SPDX-License-Identifier: ISC */
/* Buffers grow, shrink from the front, and keep the out-of-memory flag. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"

static void test_appended_bytes_keep_their_order(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	for (int i = 0; i < 10000; i++) {
		uint8_t byte = (uint8_t)i;

		assert_true(buffer_append(&buffer, &byte, 1));
	}
	assert_int_equal(buffer.length, 10000);
	assert_true(buffer.capacity >= buffer.length);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(buffer.data[i], (uint8_t)i);
	buffer_free(&buffer);
	assert_null(buffer.data);
	assert_int_equal(buffer.capacity, 0);
}

static void test_nothing_can_be_appended(void **state)
{
	struct buffer buffer = {0};

	(void)state;
	assert_true(buffer_append(&buffer, NULL, 0));
	assert_int_equal(buffer.length, 0);
	assert_non_null(buffer_extend(&buffer, 0));
	assert_int_equal(buffer.length, 0);
	buffer_free(&buffer);
}

static void test_extend_returns_room_after_the_content(void **state)
{
	struct buffer buffer = {0};
	uint8_t *room;

	(void)state;
	assert_true(buffer_append(&buffer, "ab", 2));
	room = buffer_extend(&buffer, 1000);
	assert_ptr_equal(room, buffer.data + 2);
	memset(room, 'x', 1000);
	assert_int_equal(buffer.length, 1002);
	assert_memory_equal(buffer.data, "abx", 3);
	buffer_free(&buffer);
}

static void test_consume_drops_from_the_front(void **state)
{
	struct buffer buffer = {0};

	(void)state;
	buffer_append(&buffer, "0123456789", 10);
	buffer_consume(&buffer, 0);
	assert_int_equal(buffer.length, 10);
	buffer_consume(&buffer, 4);
	assert_int_equal(buffer.length, 6);
	assert_memory_equal(buffer.data, "456789", 6);
	buffer_consume(&buffer, 100);
	assert_int_equal(buffer.length, 0);
	buffer_free(&buffer);
}

static void test_shorten_drops_and_wipes_the_end(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	assert_true(buffer_append(&buffer, "abcdef", 6));
	buffer_shorten(&buffer, 7);
	assert_int_equal(buffer.length, 6);
	buffer_shorten(&buffer, 2);
	assert_int_equal(buffer.length, 2);
	assert_memory_equal(buffer.data, "ab\0\0\0\0", 6);
	buffer_free(&buffer);
}

static void test_clear_keeps_the_memory(void **state)
{
	struct buffer buffer = {0};
	size_t capacity;

	(void)state;
	buffer_printf(&buffer, "%0200d", 1);
	capacity = buffer.capacity;
	buffer_clear(&buffer);
	assert_int_equal(buffer.length, 0);
	assert_int_equal(buffer.capacity, capacity);
	buffer_free(&buffer);
}

static void test_printf_appends_text_without_nul(void **state)
{
	struct buffer buffer = {0};

	(void)state;
	assert_true(buffer_printf(&buffer, "r=%s,", "abc"));
	assert_true(buffer_printf(&buffer, "i=%d", 4096));
	assert_int_equal(buffer.length, strlen("r=abc,i=4096"));
	assert_memory_equal(buffer.data, "r=abc,i=4096", buffer.length);
	buffer_free(&buffer);
}

static void test_failure_is_kept_and_content_too(void **state)
{
	struct buffer buffer = {0};

	(void)state;
	buffer_append(&buffer, "kept", 4);
	assert_null(buffer_extend(&buffer, SIZE_MAX));
	assert_true(buffer.failed);
	assert_false(buffer_append(&buffer, "x", 1));
	assert_false(buffer_printf(&buffer, "x"));
	assert_null(buffer_extend(&buffer, 1));
	assert_int_equal(buffer.length, 4);
	assert_memory_equal(buffer.data, "kept", 4);
	buffer_free(&buffer);
	assert_false(buffer.failed);
	assert_true(buffer_append(&buffer, "new", 3));
	buffer_free(&buffer);
}

static void test_sizes_that_overflow_are_refused(void **state)
{
	struct buffer buffer = {0};

	(void)state;
	buffer_append(&buffer, "x", 1);
	assert_null(buffer_extend(&buffer, SIZE_MAX - 1));
	buffer_free(&buffer);
	buffer_append(&buffer, "x", 1);
	assert_null(buffer_extend(&buffer, SIZE_MAX / 2));
	buffer_free(&buffer);
}

/*
 * CVE-2026-6668: capacities that double in 32 bits never reach such a length. The memory is not
 * touched; a system without that much fails at once.
 */
static void test_growth_beyond_two_gigabytes_ends(void **state)
{
	struct buffer buffer = {0};

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* it would write the shadow of all that memory */
#endif
	alarm(20);
	assert_true(
		buffer_extend(&buffer, (size_t)UINT32_MAX / 2 + 2) != NULL || buffer.failed);
	assert_true(buffer.failed || buffer.capacity > UINT32_MAX / 2 + 1);
	alarm(0);
	buffer_free(&buffer);
}

static void test_secret_buffer_keeps_its_content_while_growing(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init_secret(&buffer);
	buffer_append(&buffer, "password", 8);
	for (int i = 0; i < 1000; i++)
		buffer_append(&buffer, "0123456789", 10);
	assert_int_equal(buffer.length, 10008);
	assert_memory_equal(buffer.data, "password0123", 12);
	buffer_clear(&buffer);
	for (size_t i = 0; i < 10008; i++)
		assert_int_equal(buffer.data[i], 0);
	buffer_wipe(&buffer);
	assert_null(buffer.data);
	assert_true(buffer.secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_appended_bytes_keep_their_order),
		cmocka_unit_test(test_nothing_can_be_appended),
		cmocka_unit_test(test_extend_returns_room_after_the_content),
		cmocka_unit_test(test_consume_drops_from_the_front),
		cmocka_unit_test(test_shorten_drops_and_wipes_the_end),
		cmocka_unit_test(test_clear_keeps_the_memory),
		cmocka_unit_test(test_printf_appends_text_without_nul),
		cmocka_unit_test(test_failure_is_kept_and_content_too),
		cmocka_unit_test(test_sizes_that_overflow_are_refused),
		cmocka_unit_test(test_growth_beyond_two_gigabytes_ends),
		cmocka_unit_test(test_secret_buffer_keeps_its_content_while_growing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
