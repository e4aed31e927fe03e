/* SPDX-License-Identifier: ISC */
/* Numbers, durations and sizes in settings; lists; printable texts. */
#include <limits.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_integers_are_read_as_in_c(void **state)
{
	static const struct {
		const char *text;
		long long number;
	} good[] = {
		{"0", 0},
		{"42", 42},
		{"-1", -1},
		{"+7", 7},
		{"0777", 511},
		{"0x1F", 31},
		{"9223372036854775807", LLONG_MAX},
	};
	static const char *const bad[] = {"", " 1", "1 ", "yes", "1x", "0x", "08", "1.0", "--1",
		"9223372036854775808", "\n1"};
	long long number;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_true(text_to_integer(good[i].text, &number));
		assert_int_equal(number, good[i].number);
	}
	number = 99;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(text_to_integer(bad[i], &number));
	assert_false(text_to_integer(NULL, &number));
	assert_int_equal(number, 99);
}

static void test_durations_are_seconds_unless_a_unit_follows(void **state)
{
	static const struct {
		const char *text;
		usec_t duration;
	} good[] = {
		{"0", 0},
		{"15", 15 * USEC_PER_SEC},
		{"0.2", 200000},
		{".5", 500000},
		{"5.", 5 * USEC_PER_SEC},
		{"1e1", 10 * USEC_PER_SEC},
		{"1.5e1", 15 * USEC_PER_SEC},
		{"1E-3", 1000},
		{"0.000001", 1},
		{"+3", 3 * USEC_PER_SEC},
		{"010", 10 * USEC_PER_SEC},
		{"7us", 7},
		{"250ms", 250000},
		{"5s", 5 * USEC_PER_SEC},
		{"5 s", 5 * USEC_PER_SEC},
		{"1.5min", 90 * USEC_PER_SEC},
		{"2h", 7200 * USEC_PER_SEC},
		{"1d", 86400 * USEC_PER_SEC},
		{"1e1d", 864000 * USEC_PER_SEC},
		{"1e300", INT64_MAX / 4},
		{"1e99999", INT64_MAX / 4},
	};
	static const char *const bad[] = {"", "-1", "-0", "s", "5m", "5S", "5 sec", "0x10",
		"0X1p3", "inf", "nan", "1,5", "1e", ".", "+", "1e1.5", "5 5", " 5", "5ss",
		"+-3"};
	usec_t duration;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_true(text_to_duration(good[i].text, &duration));
		assert_int_equal(duration, good[i].duration);
	}
	duration = 99;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(text_to_duration(bad[i], &duration));
	assert_false(text_to_duration(NULL, &duration));
	assert_int_equal(duration, 99);
}

static void test_decimal_point_does_not_depend_on_the_locale(void **state)
{
	static const char *const with_comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
	const char *found = NULL;
	usec_t duration;

	(void)state;
	for (size_t i = 0; i < COUNT(with_comma) && found == NULL; i++)
		found = setlocale(LC_NUMERIC, with_comma[i]);
	if (found == NULL)
		skip();
	assert_true(text_to_duration("0.5", &duration));
	assert_int_equal(duration, 500000);
	assert_false(text_to_duration("0,5", &duration));
	(void)setlocale(LC_NUMERIC, "C");
}

static void test_sizes_are_bytes_unless_a_unit_follows(void **state)
{
	static const struct {
		const char *text;
		unsigned long long size;
	} good[] = {
		{"0", 0},
		{"2147483647", 2147483647},
		{"0x1000", 4096},
		{"100B", 100},
		{"4kB", 4096},
		{"16 MB", 16ULL << 20},
		{"3GB", 3ULL << 30},
	};
	static const char *const bad[] = {"", "-1", "kB", "4KB", "4k", "1TB", "1.5MB", "4kBB",
		"17179869184GB", "99999999999999999999"};
	unsigned long long size;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_true(text_to_size(good[i].text, &size));
		assert_int_equal(size, good[i].size);
	}
	size = 99;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(text_to_size(bad[i], &size));
	assert_int_equal(size, 99);
}

static void test_copy_is_bounded_and_reports_a_cut(void **state)
{
	char out[5];

	(void)state;
	assert_true(text_copy(out, sizeof(out), "four"));
	assert_string_equal(out, "four");
	assert_false(text_copy(out, sizeof(out), "fives"));
	assert_string_equal(out, "five");
	assert_false(text_copy(out, 1, "x"));
	assert_string_equal(out, "");
}

static void test_list_is_walked_item_by_item(void **state)
{
	const char *cursor = " ,, one\t,two  three_is_long,\n";
	char item[6];
	bool whole;

	(void)state;
	assert_true(text_next_item(&cursor, TEXT_LIST_SEPARATORS, item, sizeof(item), &whole));
	assert_string_equal(item, "one");
	assert_true(whole);
	assert_true(text_next_item(&cursor, TEXT_LIST_SEPARATORS, item, sizeof(item), NULL));
	assert_string_equal(item, "two");
	assert_true(text_next_item(&cursor, TEXT_LIST_SEPARATORS, item, sizeof(item), &whole));
	assert_string_equal(item, "three");
	assert_false(whole);
	assert_false(text_next_item(&cursor, TEXT_LIST_SEPARATORS, item, sizeof(item), &whole));
	assert_false(text_next_item(&cursor, TEXT_LIST_SEPARATORS, item, sizeof(item), &whole));
	assert_string_equal(cursor, "");
}

static void test_list_matches_whole_names_only(void **state)
{
	(void)state;
	assert_true(text_list_has("alice, bob\tcarol\ndave", "alice"));
	assert_true(text_list_has("alice, bob\tcarol\ndave", "carol"));
	assert_true(text_list_has("alice, bob\tcarol\ndave", "dave"));
	assert_false(text_list_has("alice, bob", "ali"));
	assert_false(text_list_has("alice, bob", "Alice"));
	assert_false(text_list_has("alice, bob", "lice"));
	assert_false(text_list_has("alice, bob", "alice, bob"));
	assert_false(text_list_has("alice, bob", ""));
	assert_false(text_list_has("", "alice"));
	assert_false(text_list_has(" , ", ""));
	assert_false(text_list_has(NULL, "alice"));
}

static void test_escaped_text_has_no_control_bytes(void **state)
{
	char out[64];

	(void)state;
	text_escape(out, sizeof(out), "a\nb\x1b[31m\0z\x7f", 11);
	assert_string_equal(out, "a\\x0ab\\x1b[31m\\x00z\\x7f");
	text_escape(out, sizeof(out), "J\xc3\xb6rg \xe2\x82\xac", 9);
	assert_string_equal(out, "J\xc3\xb6rg \xe2\x82\xac");
	text_escape(out, sizeof(out), "\xff\xc3", 2);
	assert_string_equal(out, "\\xff\\xc3");
	text_escape(out, sizeof(out), "", 0);
	assert_string_equal(out, "");
}

static void test_escaping_never_writes_past_the_end(void **state)
{
	char out[8];

	(void)state;
	for (size_t size = 1; size <= sizeof(out); size++) {
		memset(out, '#', sizeof(out));
		text_escape(out, size, "\n\n\n", 3);
		assert_int_equal(strlen(out), (size - 1) / 4 * 4);
		text_escape(out, size, "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6", 8);
		assert_int_equal(strlen(out), (size - 1) / 2 * 2);
		text_hex(out, size, "\xab\xcd\xef\x01", 4);
		assert_int_equal(strlen(out), (size - 1) / 2 * 2);
		for (size_t i = size; i < sizeof(out); i++)
			assert_int_equal(out[i], '#');
	}
}

static void test_digits_are_grouped_by_three(void **state)
{
	char out[TEXT_GROUPED_SIZE];

	(void)state;
	assert_string_equal(text_grouped(0, out), "0");
	assert_string_equal(text_grouped(999, out), "999");
	assert_string_equal(text_grouped(1000, out), "1,000");
	assert_string_equal(text_grouped(1234567, out), "1,234,567");
	assert_string_equal(text_grouped(UINT64_MAX, out), "18,446,744,073,709,551,615");
}

static void test_hex_is_lower_case(void **state)
{
	char out[17];

	(void)state;
	text_hex(out, sizeof(out), "\x00\x09\xaf\xFF\x10", 5);
	assert_string_equal(out, "0009afff10");
	text_hex(out, sizeof(out), "", 0);
	assert_string_equal(out, "");
}

static void test_utf8_characters_have_their_length(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
	} cases[] = {
		{"a", 1},
		{"\xc3\xa9", 2},
		{"\xe2\x82\xac", 3},
		{"\xf0\x9f\x98\x80", 4},
		{"\xf4\x8f\xbf\xbf", 4},
		{"\x80", 0},
		{"\xc3", 0},
		{"\xc3z", 0},
		{"\xc0\xaf", 0}, /* overlong */
		{"\xe0\x80\xaf", 0}, /* overlong */
		{"\xed\xa0\x80", 0}, /* surrogate */
		{"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
		{"\xf8\x88\x80\x80\x80", 0},
		{"\xe2\x82", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(text_utf8_length(cases[i].bytes, strlen(cases[i].bytes)),
			cases[i].length);
	assert_int_equal(text_utf8_length("\xe2\x82\xac", 2), 0);
	assert_int_equal(text_utf8_length("", 0), 0);
}

static void test_bytes_above_0x7f_are_not_ascii(void **state)
{
	(void)state;
	assert_true(text_is_ascii("", 0));
	assert_true(text_is_ascii("a\0\x7f", 3));
	assert_false(text_is_ascii("a\x80", 2));
	assert_false(text_is_ascii("\xff", 1));
	assert_true(text_is_ascii("a\x80", 1));
}

static void test_cut_falls_between_characters(void **state)
{
	static const char euros[] = "\xe2\x82\xac\xe2\x82\xac";
	static const char grins[] = "x\xf0\x9f\x98\x80";
	static const char junk[] = "\x80\x80\x80\x80\x80\x80";

	(void)state;
	assert_int_equal(text_utf8_cut(euros, 6, 6), 6);
	assert_int_equal(text_utf8_cut(euros, 6, 5), 3);
	assert_int_equal(text_utf8_cut(euros, 6, 4), 3);
	assert_int_equal(text_utf8_cut(euros, 6, 3), 3);
	assert_int_equal(text_utf8_cut(euros, 6, 2), 0);
	assert_int_equal(text_utf8_cut(euros, 6, 0), 0);
	assert_int_equal(text_utf8_cut(grins, 5, 4), 1);
	assert_int_equal(text_utf8_cut(grins, 5, 100), 5);
	assert_int_equal(text_utf8_cut(junk, 6, 5), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers_are_read_as_in_c),
		cmocka_unit_test(test_durations_are_seconds_unless_a_unit_follows),
		cmocka_unit_test(test_decimal_point_does_not_depend_on_the_locale),
		cmocka_unit_test(test_sizes_are_bytes_unless_a_unit_follows),
		cmocka_unit_test(test_copy_is_bounded_and_reports_a_cut),
		cmocka_unit_test(test_list_is_walked_item_by_item),
		cmocka_unit_test(test_list_matches_whole_names_only),
		cmocka_unit_test(test_escaped_text_has_no_control_bytes),
		cmocka_unit_test(test_escaping_never_writes_past_the_end),
		cmocka_unit_test(test_digits_are_grouped_by_three),
		cmocka_unit_test(test_hex_is_lower_case),
		cmocka_unit_test(test_utf8_characters_have_their_length),
		cmocka_unit_test(test_bytes_above_0x7f_are_not_ascii),
		cmocka_unit_test(test_cut_falls_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
