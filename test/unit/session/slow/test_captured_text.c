/* SPDX-License-Identifier: ISC */
/* Parameters of a Bind, rows of command tags, and where texts with secrets end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/slow/captured_text.h"
#include "session/slow/secret_words.h"
#include "session/slow/slow_queries.h"

/* Are the parameters in these bytes shown so? The last size of a literal has a NUL too many. */
#define assert_shown(bytes, expected) check_shown(bytes, sizeof(bytes) - 1, expected)

static void check_shown(const char *bytes, size_t length, const char *expected)
{
	char out[200];

	captured_text_parameters(out, sizeof(out), (const uint8_t *)bytes, length);
	assert_string_equal(out, expected);
}

static void test_parameters_are_shown_by_their_format(void **state)
{
	(void)state;
	assert_shown("\0\0\0\0", "");
	assert_shown("\0\0\0\2\0\0\0\1a\377\377\377\377", "$1 = 'a', $2 = NULL");
	assert_shown("\0\1\0\1\0\2\0\0\0\1a\0\0\0\2\0\377", "$1 = \\x61, $2 = \\x00ff");
	assert_shown("\0\2\0\0\0\1\0\2\0\0\0\2\n'\0\0\0\1b", "$1 = '\\x0a'', $2 = \\x62");
	assert_shown("\0\0\0\1\0\0\0\2\377\376", "$1 = '\\xff\\xfe'");
}

static void test_malformed_parameters_end_the_list(void **state)
{
	(void)state;
	assert_shown("", "");
	assert_shown("\0", "");
	assert_shown("\377\377", "");
	assert_shown("\0\2\0\0\0\1\0\3\0\0\0\1a", "");
	assert_shown("\0\0\377\377\0\0\0\1a", "$1 = 'a'");
	assert_shown("\0\0\0\2\0\0\0\1a\0\0\0\5b", "$1 = 'a'");
	assert_shown("\0\0\0\1\377\377\377\376", "");
}

static void test_long_parameters_are_cut(void **state)
{
	uint8_t values[2 + 2 + 3 * (4 + 100)] = {0, 0, 0, 3};
	char out[100], expected[100] = "$1 = '";

	(void)state;
	memset(values + 4, 'x', sizeof(values) - 4);
	for (unsigned i = 0; i < 3; i++)
		memcpy(values + 4 + i * 104, "\0\0\0\144", 4);
	captured_text_parameters(out, sizeof(out), values, sizeof(values));
	memset(expected + 6, 'x', 64);
	strcat(expected, "'...");
	assert_string_equal(out, expected);
}

static void test_tags_tell_the_number_of_rows(void **state)
{
	static const struct {
		const char *tag;
		uint64_t rows;
	} cases[] = {
		{"SELECT 5", 5},
		{"INSERT 0 12", 12},
		{"COPY 1000000007", 1000000007},
		{"UPDATE 0", 0},
		{"BEGIN", 0},
		{"CREATE TABLE", 0},
		{"", 0},
		{"7", 0},
		{"SELECT 99999999999999999999999999", 0},
		{"SELECT x1", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(slow_queries_rows_of((const uint8_t *)cases[i].tag,
					 strlen(cases[i].tag) + 1),
			cases[i].rows);
	assert_int_equal(slow_queries_rows_of((const uint8_t *)"", 0), 0);
}

static void test_texts_end_behind_the_word_for_a_secret(void **state)
{
	static const struct {
		const char *text, *safe;
	} cases[] = {
		{"ALTER ROLE a PASSWORD 'b'", "ALTER ROLE a PASSWORD"},
		{"alter role a Password'b'", "alter role a Password"},
		{"SELECT * FROM dblink('host=x password=y')",
			"SELECT * FROM dblink('host=x password"},
		{"SELECT passwd FROM pg_shadow", "SELECT passwd"},
		{"SET my.secret_key = 'x'", "SET my.secret_key"},
		{"SELECT pass FROM tests", "SELECT pass FROM tests"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(secret_words_safe_length(cases[i].text, strlen(cases[i].text)),
			strlen(cases[i].safe));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters_are_shown_by_their_format),
		cmocka_unit_test(test_malformed_parameters_end_the_list),
		cmocka_unit_test(test_long_parameters_are_cut),
		cmocka_unit_test(test_tags_tell_the_number_of_rows),
		cmocka_unit_test(test_texts_end_behind_the_word_for_a_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
