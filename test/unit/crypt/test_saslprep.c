/* SPDX-License-Identifier: ISC */
/*
 * Passwords are prepared as in RFC 4013, or unchanged where PostgreSQL leaves them unchanged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "crypt/saslprep.h"

static void assert_prepared(const char *password, const char *expected)
{
	char *prepared = saslprep(password);

	assert_non_null(prepared);
	assert_string_equal(prepared, expected);
	free(prepared);
}

/* RFC 4013 section 3 */
static void test_examples_of_the_standard(void **state)
{
	(void)state;
	assert_prepared("I\xc2\xadX", "IX"); /* soft hyphen mapped to nothing */
	assert_prepared("user", "user");
	assert_prepared("USER", "USER");
	assert_prepared("\xc2\xaa", "a"); /* feminine ordinal, by NFKC */
	assert_prepared("\xe2\x85\xa8", "IX"); /* roman nine, by NFKC */
	assert_prepared("\x07", "\x07"); /* prohibited */
	assert_prepared("\xd8\xa7\x31", "\xd8\xa7\x31"); /* fails the bidirectional check */
}

static void test_other_spaces_become_a_space(void **state)
{
	(void)state;
	assert_prepared("a\xc2\xa0\x62", "a b"); /* no-break space */
	assert_prepared("a\xe3\x80\x80\x62", "a b"); /* ideographic space */
}

static void test_equivalent_characters_become_equal(void **state)
{
	(void)state;
	/* The letter e with a combining accent, or as one character. */
	assert_prepared("re\xcc\x81sume\xcc\x81", "r\xc3\xa9sum\xc3\xa9");
	assert_prepared("r\xc3\xa9sum\xc3\xa9", "r\xc3\xa9sum\xc3\xa9");
}

static void test_bytes_that_are_not_utf8_are_unchanged(void **state)
{
	(void)state;
	assert_prepared("p\xe9\xe8", "p\xe9\xe8"); /* Latin-1 */
	assert_prepared("\xc3", "\xc3");
	assert_prepared("\xc0\xaf", "\xc0\xaf"); /* overlong */
	assert_prepared("\xed\xa0\x80", "\xed\xa0\x80"); /* surrogate */
}

static void test_prohibited_and_unassigned_characters_keep_the_password_unchanged(void **state)
{
	(void)state;
	/* The ordinal at the start would be mapped if the rest were allowed. */
	assert_prepared("\xc2\xaa\xc2\x80", "\xc2\xaa\xc2\x80"); /* control character */
	assert_prepared("\xc2\xaa\xee\x80\x80", "\xc2\xaa\xee\x80\x80"); /* private use */
	assert_prepared("\xc2\xaa\xef\xbf\xbd", "\xc2\xaa\xef\xbf\xbd"); /* replacement */
	assert_prepared("\xc2\xaa\xc8\xa1", "\xc2\xaa\xc8\xa1"); /* unassigned in Unicode 3.2 */
}

static void test_password_is_unchanged_if_the_result_would_be_empty(void **state)
{
	(void)state;
	assert_prepared("\xc2\xad", "\xc2\xad");
	assert_prepared("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples_of_the_standard),
		cmocka_unit_test(test_other_spaces_become_a_space),
		cmocka_unit_test(test_equivalent_characters_become_equal),
		cmocka_unit_test(test_bytes_that_are_not_utf8_are_unchanged),
		cmocka_unit_test(
			test_prohibited_and_unassigned_characters_keep_the_password_unchanged),
		cmocka_unit_test(test_password_is_unchanged_if_the_result_would_be_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
