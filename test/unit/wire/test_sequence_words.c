/* SPDX-License-Identifier: ISC */
/* Texts that may draw values from sequences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/sequence_words.h"
#include "wire/suspicion.h"

static bool is_found(const char *text)
{
	/* A copy of exactly this length: a sanitizer tells of what is read behind it. */
	const size_t length = strlen(text);
	char *copy = malloc(length ? length : 1);
	bool found;

	memcpy(copy, text, length);
	found = sequence_words_in(copy, length);
	free(copy);
	return found;
}

static void test_words_are_found_in_any_letter_case(void **state)
{
	static const char *const texts[] = {"SELECT nextval('s')",
		"SELECT pg_catalog.CurrVal('s')", "SELECT LASTVAL()", "select setval('s', 1)",
		"SELECT \"nextval\"('s')", "insert into t values (1)", "INSERT",
		"WITH a AS (INSERT INTO t DEFAULT VALUES RETURNING *) SELECT",
		"COPY t FROM STDIN", "DO $$ BEGIN PERFORM nextval('s'); END $$",
		"SELECT 1;INSERT", "(insert)", "SELECT U&\"next\\0076al\"('s')", "SELECT u&\"",
		"/**/copy"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!is_found(texts[i]))
			fail_msg("%s", texts[i]);
	}
}

static void test_parts_of_other_words_are_not_found(void **state)
{
	static const char *const texts[] = {"", "SELECT 1",
		"SELECT nextvalue, _nextval, inserts",
		"SELECT reinsert, copy_of, copy$, lastval2 FROM t",
		"SELECT u & \"a\", tu&\"a\"", "SELECT insert\xc3\xa4, \xc3\xa4insert", "nextva",
		"U&", "u", "UPDATE t SET a = 1"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (is_found(texts[i]))
			fail_msg("%s", texts[i]);
	}
}

static void test_text_ends_at_its_first_nul(void **state)
{
	(void)state;
	assert_false(sequence_words_in("SELECT\0insert", sizeof("SELECT\0insert")));
	assert_true(sequence_words_in("insert\0x", sizeof("insert\0x")));
}

static void test_a_text_that_is_too_long_counts(void **state)
{
	char *text = calloc(1, SUSPICION_TEXT_MAX + 1);

	(void)state;
	assert_false(sequence_words_in(text, SUSPICION_TEXT_MAX));
	assert_true(sequence_words_in(text, SUSPICION_TEXT_MAX + 1));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_are_found_in_any_letter_case),
		cmocka_unit_test(test_parts_of_other_words_are_not_found),
		cmocka_unit_test(test_text_ends_at_its_first_nul),
		cmocka_unit_test(test_a_text_that_is_too_long_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
