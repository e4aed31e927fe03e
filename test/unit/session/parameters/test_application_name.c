/* SPDX-License-Identifier: ISC */
/* application_name is cleaned as PostgreSQL does it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/parameters/application_name.h"

#define TEN "xxxxxxxxxx"
#define SIXTY TEN TEN TEN TEN TEN TEN

static void assert_clean(
	const char *name, const char *version, const char *encoding, const char *expected)
{
	char out[APPLICATION_NAME_CLEAN_SIZE];

	application_name_clean(name, version, encoding, out);
	assert_string_equal(out, expected);
}

static void test_printable_ascii_is_unchanged(void **state)
{
	(void)state;
	assert_true(application_name_is_clean(""));
	assert_true(application_name_is_clean(" it's mine ~"));
	assert_false(application_name_is_clean("a\tb"));
	assert_false(application_name_is_clean("a\x7f"));
	assert_false(application_name_is_clean("na\xc3\xafve"));
	assert_true(application_name_is_clean(SIXTY "xxx"));
	assert_false(application_name_is_clean(SIXTY "xxxx"));
}

static void test_each_other_byte_is_replaced(void **state)
{
	(void)state;
	assert_clean("na\xc3\xafve", "15.8 (Debian)", "UTF8", "na??ve");
	assert_clean("a\xe4\tb", "9.6", "UTF8", "a??b");
	assert_clean("a\xe4", NULL, NULL, "a?");
	assert_clean("a\xe4\x7f\\", "16beta1", "UTF8", "a\\xe4\\x7f\\");
	assert_clean("\xff", "18.0", "LATIN1", "\\xff");
}

/* The name is truncated first, between characters: the first byte of each tells its length. */
static void test_long_name_is_truncated_before_bytes_are_replaced(void **state)
{
	(void)state;
	assert_clean(SIXTY "xxxx", NULL, NULL, SIXTY "xxx");
	assert_clean(SIXTY "xxx\xe4", "15", "UTF8", SIXTY "xxx");
	assert_clean(SIXTY "xx\xc3\xa9", "15", "UTF8", SIXTY "xx");
	assert_clean(SIXTY "x\xc3\xa9", "15", "UTF8", SIXTY "x??");
	assert_clean(SIXTY "xx\xc3\xa9", "15", "LATIN1", SIXTY "xx?");
	assert_clean(SIXTY "x\xe4\xff\xff", "15", "UTF8", SIXTY "x");
	assert_clean(SIXTY "\xe4\xff\xff", "15", "UTF8", SIXTY "???");
	assert_clean(SIXTY "\xf0\x9f\x98\x80", "15", "UTF8", SIXTY);
	assert_clean(SIXTY "\xff\xff\xff\xff\xff", "18", "UTF8", SIXTY);
	assert_clean(SIXTY "\xff", "18", "UTF8", SIXTY);
	assert_clean("123456789\xff" TEN TEN TEN TEN "\xe4\xf6\xfc", "18", "UTF8",
		"123456789\\xff" TEN TEN TEN TEN "\\xe4\\xf6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_printable_ascii_is_unchanged),
		cmocka_unit_test(test_each_other_byte_is_replaced),
		cmocka_unit_test(test_long_name_is_truncated_before_bytes_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
