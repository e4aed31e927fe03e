/* SPDX-License-Identifier: ISC */
/* Ident maps: which lines are valid, and which logins they allow. */
#include "config/ident.h"
#include "support/files/config_files.h"

static struct problems problems;
static struct ident *ident;

static void parse(const char *text)
{
	problems_free(&problems);
	ident_unref(ident);
	ident = ident_parse("ident", text, strlen(text), &problems);
	assert_non_null(ident);
}

static int end(void **state)
{
	(void)state;
	problems_free(&problems);
	ident_unref(ident);
	ident = NULL;
	return 0;
}

static bool allows(const char *map, const char *system_user, const char *database_user)
{
	const struct ident_map found = ident_find_map(ident, map);

	return ident_map_allows(&found, system_user, database_user);
}

/* The only line is skipped with this text. */
static void assert_bad(const char *line, const char *text)
{
	const struct problem *problem;

	parse(line);
	assert_int_equal(problems.count, 1);
	problem = problem_at(&problems, 0);
	assert_int_equal(problem->severity, PROBLEM_SKIPPED);
	assert_int_equal(problem->line, 1);
	assert_contains(problem->log[0], text);
	assert_string_equal(problem->log[1], "could not parse ident config line 1");
	assert_int_equal(ident_find_map(ident, "m").count, 0);
	assert_int_equal(problems_errors(&problems), 0);
}

static void test_a_map_allows_its_pairs_only(void **state)
{
	(void)state;
	parse("# comment\n\nm root alice\nn root bob\nm\troot\tcarol # x\nm www www");
	assert_int_equal(problems.count, 0);
	assert_int_equal(ident_find_map(ident, "m").count, 3);
	assert_int_equal(ident_find_map(ident, "n").count, 1);
	assert_int_equal(ident_find_map(ident, "o").count, 0);
	assert_int_equal(ident_find_map(NULL, "m").count, 0);
	assert_true(allows("m", "root", "alice"));
	assert_true(allows("m", "root", "carol"));
	assert_true(allows("m", "www", "www"));
	assert_false(allows("m", "root", "bob"));
	assert_false(allows("m", "www", "alice"));
	assert_false(allows("m", "Root", "alice"));
	assert_true(allows("n", "root", "bob"));
	assert_false(allows("o", "root", "bob"));
}

static void test_lines_of_a_map_need_not_be_adjacent(void **state)
{
	struct ident_map map;

	(void)state;
	parse("z a 1\nb a 2\nm a 3\nb a 4\nz a 5\na a 6\n");
	map = ident_find_map(ident, "b");
	assert_int_equal(map.count, 2);
	assert_string_equal(ident_map_name(&map), "b");
	assert_true(allows("z", "a", "5"));
	assert_true(allows("a", "a", "6"));
	assert_false(allows("a", "a", "1"));
}

static void test_a_bare_all_is_any_user_a_quoted_one_is_a_name(void **state)
{
	(void)state;
	parse("m root all\nn root \"all\"\no all root\n");
	assert_true(allows("m", "root", "any user"));
	assert_false(allows("m", "other", "any user"));
	assert_false(allows("n", "root", "any user"));
	assert_true(allows("n", "root", "all"));
	assert_false(allows("o", "other", "root")); /* a system user, not the placeholder */
	assert_true(allows("o", "all", "root"));
}

static void test_names_may_be_quoted(void **state)
{
	(void)state;
	parse("m \"a b\" \"x,\"\"y\"\"\"\n");
	assert_true(allows("m", "a b", "x,\"y\""));
}

static void test_a_slash_starts_a_regular_expression(void **state)
{
	(void)state;
	parse("m /^(.*)@one\\.org$ \\1\n"
	      "m /^(.*)@two\\.org$ guest\n"
	      "n /^adm all\n"
	      "o \"/^a, (b|c)$\" pre\\1post\n"
	      "p /^(x)|y$ \\1\n"
	      "q plain /^x$\n");
	assert_int_equal(problems.count, 0);
	assert_true(allows("m", "alice@one.org", "alice"));
	assert_false(allows("m", "alice@one.org", "bob"));
	assert_false(allows("m", "alice@one.org", "\\1"));
	assert_false(allows("m", "alice@one.org.evil", "alice"));
	assert_true(allows("m", "alice@two.org", "guest"));
	assert_false(allows("m", "alice@two.org", "alice"));
	assert_true(allows("n", "admin", "any user"));
	assert_false(allows("n", "badmin", "any user"));
	assert_true(allows("o", "a, b", "prebpost"));
	assert_true(allows("o", "a, c", "precpost"));
	assert_false(allows("o", "a, c", "prebpost"));
	assert_false(allows("o", "a, c", "prec"));
	assert_false(allows("o", "a, c", "pre"));
	assert_true(allows("p", "x", "x"));
	assert_false(allows("p", "y", "")); /* the group took no part in the match */
	assert_false(allows("p", "y", "\\1"));
	assert_true(allows("q", "plain", "/^x$")); /* only system users may be expressions */
	assert_false(allows("q", "plain", "x"));
}

/*
 * As in PostgreSQL, the match of a group is never a keyword, and only the first \1 is
 * replaced.
 */
static void test_the_match_of_a_group_is_a_name(void **state)
{
	(void)state;
	parse("m /^(.*)$ \\1\nn /^(.*)$ \\1\\1\n");
	assert_true(allows("m", "all", "all"));
	assert_false(allows("m", "all", "root"));
	assert_true(allows("n", "a", "a\\1"));
	assert_false(allows("n", "a", "aa"));
}

static void test_a_placeholder_without_an_expression_is_a_name(void **state)
{
	(void)state;
	parse("m root \\1\n");
	assert_true(allows("m", "root", "\\1"));
	assert_false(allows("m", "root", "root"));
}

static void test_bad_lines_are_skipped_and_reported(void **state)
{
	(void)state;
	assert_bad("m", "ident line 1: a line is MAP SYSTEM-USER DATABASE-USER");
	assert_bad("m a", "ident line 1: ");
	assert_bad("m a b c", "ident line 1: unsupported parameters");
	assert_bad("m a b,c", "ident line 1: unsupported parameters");
	assert_bad("m a,b c", "ident line 1: ");
	assert_bad("\"m\" a b", "ident line 1: ");
	assert_bad(", a b", "ident line 1: ");
	assert_bad("m a \"b", "ident line 1: ");
	assert_bad("m a b \"", "ident line 1: unsupported parameters");
	assert_bad("m /( b", "ident line 1: bad regular expression: missing closing");
	assert_bad("m /^a$ \\1", "ident line 1: \\1 needs a group");
}

static void test_lines_around_a_bad_one_are_used(void **state)
{
	(void)state;
	parse("m a b\nm a\nm c d\nm / e\nm f g h\n");
	assert_int_equal(problems.skipped, 2);
	assert_int_equal(problem_at(&problems, 0)->line, 2);
	assert_int_equal(problem_at(&problems, 1)->line, 5);
	assert_true(allows("m", "a", "b"));
	assert_true(allows("m", "c", "d"));
	assert_true(allows("m", "anyone", "e"));
}

static void test_a_missing_file_leaves_no_maps(void **state)
{
	(void)state;
	problems_free(&problems);
	ident_unref(ident);
	ident = ident_load("missing", &problems);
	assert_non_null(ident);
	assert_int_equal(problems.skipped, 1);
	assert_string_equal(problem_at(&problems, 0)->log[0],
		"could not open ident config file missing: No such file or directory");
	assert_int_equal(ident_find_map(ident, "m").count, 0);
	write_file("ident", "m a b\n");
	ident_unref(ident);
	ident = ident_load("ident", &problems);
	assert_true(allows("m", "a", "b"));
	assert_int_equal(problems.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_map_allows_its_pairs_only, end),
		cmocka_unit_test_teardown(test_lines_of_a_map_need_not_be_adjacent, end),
		cmocka_unit_test_teardown(
			test_a_bare_all_is_any_user_a_quoted_one_is_a_name, end),
		cmocka_unit_test_teardown(test_names_may_be_quoted, end),
		cmocka_unit_test_teardown(test_a_slash_starts_a_regular_expression, end),
		cmocka_unit_test_teardown(test_the_match_of_a_group_is_a_name, end),
		cmocka_unit_test_teardown(
			test_a_placeholder_without_an_expression_is_a_name, end),
		cmocka_unit_test_teardown(test_bad_lines_are_skipped_and_reported, end),
		cmocka_unit_test_teardown(test_lines_around_a_bad_one_are_used, end),
		cmocka_unit_test_teardown(test_a_missing_file_leaves_no_maps, end),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
