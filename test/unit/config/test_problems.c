/* SPDX-License-Identifier: ISC */
/* Problems are kept in order, with their places and log lines. */
#include "support/files/config_files.h"

static void test_problems_are_listed_in_order(void **state)
{
	struct problems problems = {0};
	const struct problem *problem;

	(void)state;
	assert_null(problems_next(&problems, NULL));
	problems_add(&problems, PROBLEM_ERROR, "a.ini", 3, "no %s", "such thing");
	problems_add(&problems, PROBLEM_WARNING, "b.ini", 0, "odd");
	assert_int_equal(problems_errors(&problems), 1);

	problem = problems_next(&problems, NULL);
	assert_string_equal(problem->file, "a.ini");
	assert_int_equal(problem->line, 3);
	assert_string_equal(problem->text, "no such thing");
	assert_string_equal(problem->log[0], "no such thing (a.ini:3)");
	assert_null(problem->log[1]);
	problem = problems_next(&problems, problem);
	assert_int_equal(problem->severity, PROBLEM_WARNING);
	assert_string_equal(problem->log[0], "odd");
	assert_null(problems_next(&problems, problem));
	problems_free(&problems);
	assert_int_equal(problems.count, 0);
}

static void test_log_lines_can_differ_from_the_text(void **state)
{
	struct problems problems = {0};

	(void)state;
	problems_log_as(&problems, "of nothing");
	problems_add(&problems, PROBLEM_ERROR, "a", 1, "text");
	problems_log_as(&problems, "first %d", 1);
	problems_log_as(&problems, "second %d", 2);
	assert_string_equal(problem_at(&problems, 0)->text, "text");
	assert_string_equal(problem_at(&problems, 0)->log[0], "first 1");
	assert_string_equal(problem_at(&problems, 0)->log[1], "second 2");
	problems_free(&problems);
}

static void test_skipped_parts_are_counted_separately(void **state)
{
	struct problems problems = {0};

	(void)state;
	problems_add(&problems, PROBLEM_SKIPPED, "a", 1, "text");
	assert_int_equal(problems.skipped, 1);
	assert_int_equal(problems.warnings, 0);
	assert_int_equal(problems_errors(&problems), 0);
	problems_free(&problems);
}

static void test_too_many_problems_are_only_counted(void **state)
{
	struct problems problems = {0};

	(void)state;
	for (unsigned i = 0; i < PROBLEMS_KEPT + 5; i++)
		problems_add(&problems, PROBLEM_ERROR, "a", i + 1, "wrong");
	problems_log_as(&problems, "of one that was not kept");
	assert_int_equal(problems.count, PROBLEMS_KEPT);
	assert_int_equal(problems_errors(&problems), PROBLEMS_KEPT + 5);
	assert_string_equal(problem_at(&problems, PROBLEMS_KEPT - 1)->log[0], "wrong (a:1000)");
	problems_free(&problems);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_problems_are_listed_in_order),
		cmocka_unit_test(test_log_lines_can_differ_from_the_text),
		cmocka_unit_test(test_skipped_parts_are_counted_separately),
		cmocka_unit_test(test_too_many_problems_are_only_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
