/* SPDX-License-Identifier: ISC */
/* Passwords are prepared as RFC 4013 says, or stay as they are where PostgreSQL leaves them so. */
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

static void test_same_characters_written_differently_become_equal(void **state)
{
	(void)state;
	/* e and a combining accent, or one character. */
	assert_prepared("re\xcc\x81sume\xcc\x81", "r\xc3\xa9sum\xc3\xa9");
	assert_prepared("r\xc3\xa9sum\xc3\xa9", "r\xc3\xa9sum\xc3\xa9");
}

static void test_what_is_not_utf8_stays(void **state)
{
	(void)state;
	assert_prepared("p\xe9\xe8", "p\xe9\xe8"); /* Latin-1 */
	assert_prepared("\xc3", "\xc3");
	assert_prepared("\xc0\xaf", "\xc0\xaf"); /* overlong */
	assert_prepared("\xed\xa0\x80", "\xed\xa0\x80"); /* surrogate */
}

static void test_prohibited_and_unassigned_characters_leave_all_unchanged(void **state)
{
	(void)state;
	/* The ordinal in front would be mapped if the rest were allowed. */
	assert_prepared("\xc2\xaa\xc2\x80", "\xc2\xaa\xc2\x80"); /* control character */
	assert_prepared("\xc2\xaa\xee\x80\x80", "\xc2\xaa\xee\x80\x80"); /* private use */
	assert_prepared("\xc2\xaa\xef\xbf\xbd", "\xc2\xaa\xef\xbf\xbd"); /* replacement */
	assert_prepared("\xc2\xaa\xc8\xa1", "\xc2\xaa\xc8\xa1"); /* unassigned in Unicode 3.2 */
}

static void test_what_would_leave_nothing_stays(void **state)
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
		cmocka_unit_test(test_same_characters_written_differently_become_equal),
		cmocka_unit_test(test_what_is_not_utf8_stays),
		cmocka_unit_test(test_prohibited_and_unassigned_characters_leave_all_unchanged),
		cmocka_unit_test(test_what_would_leave_nothing_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
