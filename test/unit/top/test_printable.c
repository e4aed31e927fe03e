/* SPDX-License-Identifier: ISC */
/* Texts of a console on a terminal: nothing but characters of a known width. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "top/printable.h"

static char out[256];

static const char *written(const char *text, size_t columns)
{
	memset(out, 'X', sizeof(out));
	printable_write(out, sizeof(out), text, columns);
	return out;
}

static int in_utf8(void **state)
{
	(void)state;
	return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

static int in_c(void **state)
{
	(void)state;
	return setlocale(LC_CTYPE, "C") ? 0 : -1;
}

static void test_control_characters_are_spelt_out(void **state)
{
	(void)state;
	assert_string_equal(
		written("a\033[31mb\r\n\t\177", 80), "a\\x1b[31mb\\x0d\\x0a\\x09\\x7f");
	/* CSI as one character, and as one byte, which is no UTF-8. */
	assert_string_equal(written("\xc2\x9b"
				    "31m",
				    80),
		"\\x9b31m");
	assert_string_equal(written("\x9b"
				    "31m\xff",
				    80),
		"\\x9b31m\\xff");
}

static void test_deceptive_characters_are_spelt_out(void **state)
{
	(void)state;
	assert_string_equal(written("\u202egnp\u200b", 80), "\\u202egnp\\u200b");
	assert_string_equal(written("\ufeffx", 80), "\\ufeffx");
}

static void test_texts_are_cut_at_the_width(void **state)
{
	(void)state;
	assert_string_equal(written("abcdef", 6), "abcdef");
	assert_string_equal(written("abcdef", 5), "abcd~");
	assert_string_equal(written("abcdef", 1), "~");
	assert_string_equal(written("abcdef", 0), "");
	assert_string_equal(written("", 0), "");
	/* What is spelt out is not cut in the middle. */
	assert_string_equal(written("ab\033", 5), "ab~");
}

static void test_wide_characters_take_two_columns(void **state)
{
	(void)state;
	assert_string_equal(written("日本語", 6), "日本語");
	assert_string_equal(written("日本語", 5), "日本~");
	assert_string_equal(written("日本語", 4), "日~");
	assert_int_equal(printable_width("日本語", 100), 6);
	assert_int_equal(printable_width("日本語", 5), 5);
}

static void test_combining_characters_need_one_to_combine_with(void **state)
{
	(void)state;
	assert_string_equal(written("e\u0301\u0301\u0301\u0301z", 80), "e\u0301\u0301z");
	assert_string_equal(written("\u0301z", 80), "z");
	assert_int_equal(printable_width("e\u0301z", 100), 2);
}

static void test_other_locales_lack_characters(void **state)
{
	(void)state;
	assert_string_equal(written("äb日", 80), "?b?");
	assert_string_equal(written("\033", 80), "\\x1b");
}

static void test_small_buffers_hold_whole_characters(void **state)
{
	char small[6];

	(void)state;
	assert_int_equal(printable_write(small, sizeof(small), "日本語", 80), 3);
	assert_string_equal(small, "日~");
	assert_int_equal(printable_write(small, 2, "abc", 80), 1);
	assert_string_equal(small, "~");
}

static void test_texts_are_folded_behind_blanks(void **state)
{
	(void)state;
	assert_int_equal(printable_fold("one two three", 20), 13);
	assert_int_equal(printable_fold("one two three", 9), 8);
	assert_int_equal(printable_fold("one two three", 2), 2);
	assert_int_equal(printable_fold("日本語", 1), 3);
	assert_int_equal(printable_fold("", 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_control_characters_are_spelt_out, in_utf8),
		cmocka_unit_test_setup(test_deceptive_characters_are_spelt_out, in_utf8),
		cmocka_unit_test_setup(test_texts_are_cut_at_the_width, in_utf8),
		cmocka_unit_test_setup(test_wide_characters_take_two_columns, in_utf8),
		cmocka_unit_test_setup(
			test_combining_characters_need_one_to_combine_with, in_utf8),
		cmocka_unit_test_setup(test_other_locales_lack_characters, in_c),
		cmocka_unit_test_setup(test_small_buffers_hold_whole_characters, in_utf8),
		cmocka_unit_test_setup(test_texts_are_folded_behind_blanks, in_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
