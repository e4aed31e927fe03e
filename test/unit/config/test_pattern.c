/* SPDX-License-Identifier: ISC */
/* Regular expressions: matches, the first group, and the limit on work. */
#include "config/pattern.h"
#include "support/files/config_files.h"

/* The match of the first group; "-": it took no part; NULL: no match. */
static const char *group_of(const char *expression, const char *text)
{
	static char out[256];
	char why[128];
	struct pattern *pattern = pattern_new(expression, why, sizeof(why));
	const char *group;
	size_t length;
	bool matches;

	assert_non_null(pattern);
	matches = pattern_matches(pattern, text, &group, &length);
	if (group)
		snprintf(out, sizeof(out), "%.*s", (int)length, group);
	else
		snprintf(out, sizeof(out), "-");
	pattern_free(pattern);
	return matches ? out : NULL;
}

static void test_an_expression_matches_anywhere_unless_anchored(void **state)
{
	(void)state;
	assert_string_equal(group_of("b", "abc"), "-");
	assert_null(group_of("^b", "abc"));
	assert_null(group_of("^ab$", "abc"));
	assert_null(group_of("B", "abc"));
	assert_string_equal(group_of("", "abc"), "-");
	assert_string_equal(group_of("^\\d+$", "123"), "-");
}

static void test_dollar_is_the_end_of_the_text_and_dot_any_character(void **state)
{
	(void)state;
	assert_null(group_of("^root$", "root\n"));
	assert_string_equal(group_of("^a(.)b$", "a\nb"), "\n");
	assert_string_equal(group_of("^(.)$", "\xc3\xa4"), "\xc3\xa4");
}

static void test_the_first_group_is_returned(void **state)
{
	(void)state;
	assert_string_equal(group_of("^(.*)@example\\.com$", "alice@example.com"), "alice");
	assert_null(group_of("^(.*)@example\\.com$", "alice@exampleXcom"));
	assert_string_equal(group_of("(a)(b)(c)", "abc"), "a");
	assert_string_equal(group_of("(a)|(b)", "b"), "-");
	assert_string_equal(group_of("^(a*)$", ""), "");
}

static void test_groups_are_counted(void **state)
{
	char why[64];
	struct pattern *pattern = pattern_new("(a)(?:b)(c)", why, sizeof(why));

	(void)state;
	assert_int_equal(pattern_groups(pattern), 2);
	pattern_free(pattern);
}

static void test_invalid_expressions_are_refused_with_a_reason(void **state)
{
	char nested[2 * 51 + 2] = "";
	const char *const bad[] = {"(", ")", "[a", "*", "a{2,1}", "\\", "(?<n", "\\C", "\xff",
		nested, "((((a{1,1000}){1,1000}){1,1000}){1,1000})"};
	char *longest = malloc(PATTERN_LENGTH_MAX + 2);

	(void)state;
	memset(nested, '(', 51);
	nested[51] = 'a';
	memset(nested + 52, ')', 51);
	for (size_t i = 0; i < COUNT(bad); i++) {
		char why[128] = "";

		assert_null(pattern_new(bad[i], why, sizeof(why)));
		assert_true(why[0] != '\0');
	}
	memset(longest, 'a', PATTERN_LENGTH_MAX + 1);
	longest[PATTERN_LENGTH_MAX + 1] = '\0';
	assert_null(pattern_new(longest, (char[64]){""}, 64));
	longest[PATTERN_LENGTH_MAX] = '\0';
	pattern_free(pattern_new(longest, (char[64]){""}, 64));
	free(longest);
}

/* Unlimited, this match would practically never end; limited, it does not match. */
static void test_work_is_bounded(void **state)
{
	char text[40 + 1];

	(void)state;
	memset(text, 'a', 40);
	text[40] = '\0';
	assert_null(group_of("^(a+)+\\d$", text));
	assert_null(group_of("^((a|aa|aaa)*)*\\d$", text));
}

static void test_bytes_that_are_not_utf8_match_no_dot(void **state)
{
	(void)state;
	assert_null(group_of("^.$", "\xff"));
	assert_null(group_of("^a.*b$",
		"a\xff\xfe"
		"b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_expression_matches_anywhere_unless_anchored),
		cmocka_unit_test(test_dollar_is_the_end_of_the_text_and_dot_any_character),
		cmocka_unit_test(test_the_first_group_is_returned),
		cmocka_unit_test(test_groups_are_counted),
		cmocka_unit_test(test_invalid_expressions_are_refused_with_a_reason),
		cmocka_unit_test(test_work_is_bounded),
		cmocka_unit_test(test_bytes_that_are_not_utf8_match_no_dot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
