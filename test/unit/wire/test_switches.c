/* SPDX-License-Identifier: ISC */
/* Options as switches of a server's command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/switches.h"

/* Check all settings, each followed by a bar, and how the walk ends. */
static void assert_switches(const char *options, const char *expected, enum startup_step end)
{
	struct switches_walk walk;
	struct buffer seen;
	enum startup_step step;
	const char *name, *value;

	buffer_init(&seen);
	switches_walk_begin(&walk, options);
	while ((step = switches_walk_next(&walk, &name, &value)) == STARTUP_PARAMETER)
		buffer_printf(&seen, "%s=%s|", name, value);
	switches_walk_end(&walk);
	buffer_append(&seen, "", 1);
	assert_string_equal((const char *)seen.data, expected);
	assert_int_equal(step, end);
	buffer_free(&seen);
}

static void assert_good(const char *options, const char *expected)
{
	assert_switches(options, expected, STARTUP_END);
}

static void test_settings_have_three_forms(void **state)
{
	(void)state;
	assert_good("", "");
	assert_good(" \t", "");
	assert_good("-c a=b", "a=b|");
	assert_good("-ca=b", "a=b|");
	assert_good("--a=b", "a=b|");
	assert_good("-c a=1 -cb=2\t--c=3 -c \n d=4 ", "a=1|b=2|c=3|d=4|");
	assert_good("-c a=b=-c", "a=b=-c|");
	assert_good("-c a=", "a=|");
}

static void test_hyphens_in_names_become_underscores(void **state)
{
	(void)state;
	assert_good("--work-mem=1-2 -c a-b.c-d=e", "work_mem=1-2|a_b.c_d=e|");
}

static void test_backslashes_escape_the_next_character(void **state)
{
	(void)state;
	assert_good("-c a=b\\ c", "a=b c|");
	assert_good("-c a=\\\\", "a=\\|");
	assert_good("-c\\ a=b", " a=b|");
	assert_good("-c a=b\\", "a=b|");
	assert_good("\\-c a=b", "a=b|");
}

static void test_letters_stand_for_settings(void **state)
{
	(void)state;
	assert_good("-S 5 -B6 -W 7", "work_mem=5|shared_buffers=6|post_auth_delay=7|");
	assert_good(
		"-e -s -P", "datestyle=euro|log_statement_stats=on|ignore_system_indexes=on|");
	assert_good("-fn -f m", "enable_nestloop=off|enable_mergejoin=off|");
	assert_good("-tpa -t pl -te",
		"log_parser_stats=on|log_planner_stats=on|log_executor_stats=on|");
}

static void test_letters_may_share_a_word(void **state)
{
	(void)state;
	assert_good("-eS5", "datestyle=euro|work_mem=5|");
	assert_good("-njeS 5 -sc a=b", "datestyle=euro|work_mem=5|log_statement_stats=on|a=b|");
	assert_good("-r x -v2 -C -c -D x", "");
}

static void test_an_argument_may_look_like_a_switch(void **state)
{
	(void)state;
	assert_good("-S -e", "work_mem=-e|");
	assert_switches("-c -e", "", STARTUP_BROKEN);
}

static void test_a_debug_level_implies_several_settings(void **state)
{
	(void)state;
	assert_good("-d 0", "log_min_messages=notice|");
	assert_good("-d -7", "log_min_messages=notice|");
	assert_good("-d1 -e", "log_min_messages=debug1|datestyle=euro|");
	assert_good("-d3", "log_min_messages=debug3|debug_print_parse=on|log_statement=all|");
	assert_good("-d 99999999999999999999",
		"log_min_messages=debug5|debug_print_rewritten=on|debug_print_plan=on|"
		"debug_print_parse=on|log_statement=all|");
}

static void test_two_hyphens_end_the_switches(void **state)
{
	(void)state;
	assert_good("--", "");
	assert_good("-c a=b -- ", "a=b|");
	assert_switches("-c a=b -- -c c=d", "a=b|", STARTUP_BROKEN);
	assert_switches("-- --", "", STARTUP_BROKEN);
}

static void test_anything_else_is_broken(void **state)
{
	static const char *const broken[] = {"a=b", "-", "-c", "-c a", "-c =b", "--a", "--=b",
		"-o", "-Z", "-f", "-fx", "-t", "-tp", "-d", "-S", "-\xc3\xa9", "-e-", "\\",
		"- e"};

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
		assert_switches(broken[i],
			strcmp(broken[i], "-e-") == 0 ? "datestyle=euro|" : "", STARTUP_BROKEN);
}

static void test_words_may_be_long(void **state)
{
	char *options = malloc(60001);
	struct switches_walk walk;
	const char *name, *value;

	(void)state;
	assert_non_null(options);
	memset(options, 'x', 60000);
	memcpy(options, "-c a=", 5);
	options[60000] = '\0';
	switches_walk_begin(&walk, options);
	assert_int_equal(switches_walk_next(&walk, &name, &value), STARTUP_PARAMETER);
	assert_int_equal(strlen(value), 60000 - 5);
	assert_int_equal(switches_walk_next(&walk, &name, &value), STARTUP_END);
	switches_walk_end(&walk);
	free(options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings_have_three_forms),
		cmocka_unit_test(test_hyphens_in_names_become_underscores),
		cmocka_unit_test(test_backslashes_escape_the_next_character),
		cmocka_unit_test(test_letters_stand_for_settings),
		cmocka_unit_test(test_letters_may_share_a_word),
		cmocka_unit_test(test_an_argument_may_look_like_a_switch),
		cmocka_unit_test(test_a_debug_level_implies_several_settings),
		cmocka_unit_test(test_two_hyphens_end_the_switches),
		cmocka_unit_test(test_anything_else_is_broken),
		cmocka_unit_test(test_words_may_be_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
