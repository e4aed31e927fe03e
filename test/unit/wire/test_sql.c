/* SPDX-License-Identifier: ISC */
/* Quoting: a value never ends its own quotes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/sql.h"

static void assert_literal(const char *text, const char *expected)
{
	struct buffer buffer = {0};

	sql_append_literal(&buffer, text);
	assert_int_equal(buffer.length, strlen(expected));
	assert_memory_equal(buffer.data, expected, buffer.length);
	buffer_free(&buffer);
}

static void assert_list(const char *list, const char *expected)
{
	struct buffer buffer = {0};

	assert_true(sql_append_name_list(&buffer, list));
	assert_int_equal(buffer.length, strlen(expected));
	assert_memory_equal(buffer.data, expected, buffer.length);
	buffer_free(&buffer);
}

static void assert_no_list(const char *list)
{
	struct buffer buffer = {0};

	buffer_append(&buffer, "x", 1);
	assert_false(sql_append_name_list(&buffer, list));
	assert_int_equal(buffer.length, 1);
	buffer_free(&buffer);
}

static void test_quotes_of_literals_are_doubled(void **state)
{
	(void)state;
	assert_literal("", "''");
	assert_literal("UTF8", "'UTF8'");
	assert_literal("it's", "'it''s'");
	assert_literal("'", "''''");
	assert_literal("''; DROP TABLE t; --", "'''''; DROP TABLE t; --'");
}

static void test_backslashes_make_an_escape_literal(void **state)
{
	(void)state;
	assert_literal("\\", "E'\\\\'");
	assert_literal("a\\'b", "E'a\\\\''b'");
}

static void test_lists_as_written_by_a_server_are_unchanged(void **state)
{
	(void)state;
	assert_list("\"$user\", public", "\"$user\", public");
	assert_list("public", "public");
	assert_list("\"My Schema\", \"a\"\"b\", x_1", "\"My Schema\", \"a\"\"b\", x_1");
}

static void test_a_backslash_inside_a_multibyte_letter_does_not_escape(void **state)
{
	(void)state;
	assert_literal("\x83\\n", "$q$\x83\\n$q$");
	assert_literal("\x83\\' $q$ $qqq$ qq", "$qqqq$\x83\\' $q$ $qqq$ qq$qqqq$");
	assert_literal("\x83'", "'\x83'''");
}

static void test_an_empty_name_becomes_an_empty_literal(void **state)
{
	(void)state;
	assert_list("\"\"", "''");
	assert_list("a, \"\"", "a, ''");
	assert_list("", "''");
	assert_list(" \t", "''");
}

static void test_bare_names_are_folded_and_quoted_where_needed(void **state)
{
	(void)state;
	assert_list("  Public ,OTHER ", "public, other");
	assert_list("$user,a-b,1st", "\"$user\", \"a-b\", \"1st\"");
	assert_list("a\"b", "\"a\"\"b\"");
	assert_list("x';DROP", "\"x';drop\"");
	assert_list("schön", "\"schön\"");
}

static void test_reserved_words_are_quoted(void **state)
{
	(void)state;
	assert_list("default", "\"default\"");
	assert_list("all, User, WITH", "\"all\", \"user\", \"with\"");
	assert_list("al, use, users, wit, withe", "al, use, users, wit, withe");
}

static void test_malformed_lists_of_names_are_refused(void **state)
{
	(void)state;
	assert_no_list("\"open");
	assert_no_list("\"open\"\"");
	assert_no_list("a b");
	assert_no_list("\"a\"b");
	assert_no_list("a,");
	assert_no_list("a, ,b");
	assert_no_list(",");
	assert_no_list(", a");
}

static bool forgets(const char *text)
{
	return sql_forgets_statements(text, strlen(text) + 1);
}

static void test_deallocate_all_and_discard_all_are_recognized_at_the_front(void **state)
{
	(void)state;
	assert_true(forgets("DISCARD ALL"));
	assert_true(forgets(" discard\t/* all */ All;SELECT 1"));
	assert_true(forgets("/* /* */ */discard/**/all"));
	assert_false(forgets("/* /* */ discard all"));
	assert_false(forgets("discard -- all"));
	assert_true(forgets("-- no\nDeallocate PREPARE all ;"));
	assert_true(forgets("DEALLOCATE ALL"));
	assert_false(forgets("DISCARD PLANS"));
	assert_false(forgets("DISCARD"));
	assert_false(forgets("DEALLOCATE \"all\""));
	assert_false(forgets("DEALLOCATE allow"));
	assert_false(forgets("DISCARDALL"));
	assert_false(forgets(""));
}

static void test_recognition_does_not_read_past_the_text(void **state)
{
	(void)state;
	assert_false(sql_forgets_statements("DISCARD ALL", 8));
	assert_true(sql_forgets_statements("DISCARD ALLOW", 11));
}

static void assert_deallocates(const char *text, const char *expected)
{
	struct buffer name = {0};

	assert_true(sql_deallocated_name(text, strlen(text), &name));
	assert_string_equal((const char *)name.data, expected);
	buffer_free(&name);
}

static void assert_deallocates_none(const char *text)
{
	struct buffer name = {0};

	assert_false(sql_deallocated_name(text, strlen(text), &name));
	buffer_free(&name);
}

static void test_the_name_of_a_deallocate_is_parsed_as_by_the_server(void **state)
{
	(void)state;
	assert_deallocates("DEALLOCATE a", "a");
	assert_deallocates("deallocate Prepare Mine;", "mine");
	assert_deallocates(" \n DEALLOCATE\t_x$1 ; \n", "_x$1");
	assert_deallocates("DEALLOCATE \"Mine\"", "Mine");
	assert_deallocates("DEALLOCATE\"a \"\"b\"\" c\"", "a \"b\" c");
	assert_deallocates("DEALLOCATE PREPARE \"all\"", "all");
	assert_deallocates("DEALLOCATE \"\"", "");
	assert_deallocates("DEALLOCATE allx", "allx");
	assert_deallocates("/* x */ DEALLOCATE /* y */ a -- z", "a");
	assert_deallocates("DEALLOCATE pdo_stmt_00000001", "pdo_stmt_00000001");
	assert_deallocates("DEALLOCATE \xc3\xa4", "\xc3\xa4");
}

static void test_other_texts_are_not_a_deallocate(void **state)
{
	(void)state;
	assert_deallocates_none("");
	assert_deallocates_none("DEALLOCATE");
	assert_deallocates_none("DEALLOCATE ;");
	assert_deallocates_none("DEALLOCATE ALL");
	assert_deallocates_none("DEALLOCATE PREPARE all;");
	assert_deallocates_none("DEALLOCATEa");
	assert_deallocates_none("DEALLOCATE 1a");
	assert_deallocates_none("DEALLOCATE $1");
	assert_deallocates_none("DEALLOCATE \"open");
	assert_deallocates_none("DEALLOCATE a b");
	assert_deallocates_none("DEALLOCATE a; DEALLOCATE b");
	assert_deallocates_none("DEALLOCATE a;;");
	assert_deallocates_none("DEALLOCATE U&\"a\"");
	assert_deallocates_none("SELECT 'DEALLOCATE a'");
}

static void test_a_deallocate_is_not_read_past_its_end(void **state)
{
	struct buffer name = {0};

	(void)state;
	assert_true(sql_deallocated_name("DEALLOCATE abc", 12, &name));
	assert_string_equal((const char *)name.data, "a");
	buffer_clear(&name);
	assert_false(sql_deallocated_name("DEALLOCATE abc", 10, &name));
	buffer_clear(&name);
	assert_true(sql_deallocated_name("DEALLOCATE a\0b", 14, &name));
	assert_string_equal((const char *)name.data, "a");
	buffer_free(&name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quotes_of_literals_are_doubled),
		cmocka_unit_test(test_backslashes_make_an_escape_literal),
		cmocka_unit_test(test_a_backslash_inside_a_multibyte_letter_does_not_escape),
		cmocka_unit_test(test_lists_as_written_by_a_server_are_unchanged),
		cmocka_unit_test(test_an_empty_name_becomes_an_empty_literal),
		cmocka_unit_test(test_bare_names_are_folded_and_quoted_where_needed),
		cmocka_unit_test(test_reserved_words_are_quoted),
		cmocka_unit_test(test_malformed_lists_of_names_are_refused),
		cmocka_unit_test(
			test_deallocate_all_and_discard_all_are_recognized_at_the_front),
		cmocka_unit_test(test_recognition_does_not_read_past_the_text),
		cmocka_unit_test(test_the_name_of_a_deallocate_is_parsed_as_by_the_server),
		cmocka_unit_test(test_other_texts_are_not_a_deallocate),
		cmocka_unit_test(test_a_deallocate_is_not_read_past_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
