/* SPDX-License-Identifier: ISC */
/* The traceparent in comments of SQL texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/trace_comment.h"

#define PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define ITEM "traceparent='" PARENT "'"

static void assert_found(const char *text, bool is_end)
{
	char found[TRACE_PARENT_LENGTH + 1] = "";

	if (!trace_comment_find(text, strlen(text), is_end, found))
		fail_msg("not found: %s", text);
	assert_string_equal(found, PARENT);
}

static void assert_none(const char *text)
{
	char found[TRACE_PARENT_LENGTH + 1] = "unchanged";

	if (trace_comment_find(text, strlen(text), false, found))
		fail_msg("found: %s", text);
	assert_string_equal(found, "unchanged");
}

static void test_comments_at_the_end_and_the_beginning_are_read(void **state)
{
	(void)state;
	assert_found("SELECT 1 /*" ITEM "*/", false);
	assert_found("SELECT 1 /*" ITEM "*/ ; \n", false);
	assert_found("SELECT 1 /* action='a', " ITEM " ,tracestate='x' */", false);
	assert_found(" /*" ITEM "*/ SELECT 1", false);
	assert_found("/*" ITEM "*/", false);
	assert_found("/*+ hint */ SELECT /* x */ 1 /*" ITEM "*/", false);
	/* The last comment decides, then the first one. */
	assert_found("/*" ITEM "*/ SELECT 1 /* nothing */", false);
	assert_none("SELECT /*" ITEM "*/ 1");
	assert_none("SELECT 1 -- " ITEM);
	assert_none("SELECT '/*" ITEM "*/'");
	assert_none("");
	assert_none("*/");
	assert_none("/*");
	assert_none("/*/");
}

static void test_items_are_decoded(void **state)
{
	(void)state;
	assert_found("SELECT 1 /*a='it\\'s',b='%2F%27'," ITEM "*/", false);
	assert_found("SELECT 1 /*trace%70arent='0%30-4bf92f3577b34da6a3ce929d0e0e4736-"
		     "00f067aa0ba902b7%2D01'*/",
		false);
	assert_none("SELECT 1 /*traceparent='%'*/");
	assert_none("SELECT 1 /*traceparent='%4'*/");
	assert_none("SELECT 1 /*traceparent='%zz'*/");
	assert_none("SELECT 1 /*xtraceparent='" PARENT "'*/");
	assert_none("SELECT 1 /*Traceparent='" PARENT "'*/");
	assert_none("SELECT 1 /*traceparent=\"" PARENT "\"*/");
	assert_none("SELECT 1 /*traceparent='" PARENT "*/");
	assert_none("SELECT 1 /*traceparent='" PARENT "\\'*/");
	/* The first item of the name decides. */
	assert_none("SELECT 1 /*traceparent='no'," ITEM "*/");
}

static void test_the_end_of_a_text_may_begin_in_the_comment(void **state)
{
	(void)state;
	assert_found("ion='b',c='d'," ITEM "*/", true);
	assert_found("x',y='," ITEM "*/ /*" ITEM "*/", true);
	assert_none("ion='b',c='d'," ITEM "*/");
	assert_found("1 /*" ITEM "*/", true);
}

static void test_only_exact_traceparents_are_taken(void **state)
{
	static const char *const bad[] = {
		"",
		"00",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
		"00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
	};

	(void)state;
	assert_true(trace_comment_is_parent(PARENT, strlen(PARENT)));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(trace_comment_is_parent(bad[i], strlen(bad[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comments_at_the_end_and_the_beginning_are_read),
		cmocka_unit_test(test_items_are_decoded),
		cmocka_unit_test(test_the_end_of_a_text_may_begin_in_the_comment),
		cmocka_unit_test(test_only_exact_traceparents_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
