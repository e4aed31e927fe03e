/* SPDX-License-Identifier: ISC */
/* The auth_file is parsed as in PgBouncer, and its users are found. */
#include <sys/stat.h>

#include "config/userlist.h"
#include "support/files/config_files.h"

struct parsed {
	struct userlist *list;
	struct problems problems;
	bool broken;
};

static struct parsed parse_bytes(const char *text, size_t length)
{
	struct parsed parsed = {0};

	parsed.list = userlist_parse("users", text, length, &parsed.broken, &parsed.problems);
	assert_non_null(parsed.list);
	return parsed;
}

static struct parsed parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

static void end(struct parsed *parsed)
{
	userlist_unref(parsed->list);
	problems_free(&parsed->problems);
}

static void test_lines_give_names_and_secrets(void **state)
{
	static const struct {
		const char *text, *name, *secret;
	} cases[] = {
		{"\"a\" \"x\"", "a", "x"},
		{"\"a\" \"x\"\r\n", "a", "x"},
		{"\n \t\"a\" \"x\" \"third\" anything ; else\n", "a", "x"},
		{"; note\n;\"a\" \"n\"\n\"a\" \"x\"\n", "a", "x"},
		{"\"a\"\"b\" \"x\"\"y\"\"\"\n", "a\"b", "x\"y\""},
		{"\"do\\main\" \"x\\\\y\"", "do\\main", "x\\\\y"},
		{"\"a\" skipped\n \"x\"", "a", "x"},
		{"\"a\"\"\" \"x\"", "a\"", "x"},
		{"\"a\"x\"y\"", "a", "y"},
		{"\"a\" \"\"\n", "a", ""},
		{"\"\" \"x\"\n", "", "x"},
		{"\"a b,c\" \"x y\"", "a b,c", "x y"},
		{"\"a\nb\" \"x\ny\"", "a\nb", "x\ny"},
		{"\"a\" \"md5d0f1a3\"", "a", "md5d0f1a3"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct parsed parsed = parse(cases[i].text);
		const char *name, *secret;

		assert_false(parsed.broken);
		assert_int_equal(parsed.problems.count, 0);
		assert_int_equal(userlist_count(parsed.list), 1);
		assert_true(userlist_entry(parsed.list, 0, &name, &secret));
		assert_string_equal(name, cases[i].name);
		assert_string_equal(secret, cases[i].secret);
		assert_ptr_equal(userlist_find(parsed.list, cases[i].name), secret);
		end(&parsed);
	}
}

static void test_scram_secret_with_too_many_iterations_is_reported(void **state)
{
	static const char keys[] =
		":W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbs"
		"T4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=\"\n";
	char text[400];
	struct parsed parsed;

	(void)state;
	snprintf(text, sizeof(text),
		"\"a\" \"SCRAM-SHA-256$1000000%s\"b\" \"SCRAM-SHA-256$1000001%s\"c\" \"x\"\n",
		keys, keys);
	parsed = parse(text);
	assert_false(parsed.broken);
	assert_int_equal(userlist_count(parsed.list), 3);
	assert_int_equal(parsed.problems.count, 1);
	assert_string_equal(parsed.problems.list[0].log[0],
		"SCRAM secret in auth file with 1000001 iterations; "
		"more than 1000000 are not allowed (users:2)");
	end(&parsed);
}

static void test_reading_stops_at_a_broken_line(void **state)
{
	static const struct {
		const char *line, *log;
	} cases[] = {
		{"# note", "broken auth file"},
		{"b \"x\"", "broken auth file"},
		{"\"b", "broken auth file"},
		{"\"b\"", "broken auth file"},
		{"\"b\" none", "broken auth file"},
		{"\"b\" \"x", "broken auth file"},
		{"\xef\xbb\xbf\"b\" \"x\"", "broken auth file"},
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct parsed parsed;

		snprintf(text, sizeof(text), "\"a\"\n\"1\"\n%s", cases[i].line);
		parsed = parse(text);
		assert_true(parsed.broken);
		assert_int_equal(parsed.problems.count, 1);
		assert_int_equal(problem_at(&parsed.problems, 0)->severity, PROBLEM_WARNING);
		assert_int_equal(problem_at(&parsed.problems, 0)->line, 3);
		assert_contains(problem_at(&parsed.problems, 0)->log[0], cases[i].log);
		assert_string_equal(userlist_find(parsed.list, "a"), "1");
		assert_int_equal(userlist_count(parsed.list), 1);
		end(&parsed);
	}
}

static void test_users_after_a_broken_line_are_not_loaded(void **state)
{
	struct parsed parsed = parse("\"a\" \"1\"\nbroken\n\"c\" \"3\"\n");

	(void)state;
	assert_true(parsed.broken);
	assert_non_null(userlist_find(parsed.list, "a"));
	assert_null(userlist_find(parsed.list, "c"));
	end(&parsed);
}

static void test_nul_byte_stops_reading(void **state)
{
	static const char text[] = "\"a\" \"1\"\n\"b\" \"2\" \0\n\"c\" \"3\"\n";
	struct parsed parsed = parse_bytes(text, sizeof(text) - 1);

	(void)state;
	assert_true(parsed.broken);
	assert_int_equal(problem_at(&parsed.problems, 0)->line, 2);
	assert_string_equal(userlist_find(parsed.list, "b"), "2");
	assert_null(userlist_find(parsed.list, "c"));
	end(&parsed);
}

/* `"NAME" "SECRET"` of these lengths after one valid line. */
static struct parsed parse_lengths(size_t name, size_t secret)
{
	char *text = malloc(name + secret + 20);
	char *at = text + sprintf(text, "\"a\" \"1\"\n\"");
	struct parsed parsed;

	memset(at, 'n', name);
	at += name;
	at += sprintf(at, "\" \"");
	memset(at, 's', secret);
	at += secret;
	sprintf(at, "\"\n");
	parsed = parse(text);
	free(text);
	return parsed;
}

static void test_too_long_names_and_secrets_stop_reading(void **state)
{
	struct parsed parsed = parse_lengths(USERLIST_NAME_LIMIT, USERLIST_SECRET_LIMIT);

	(void)state;
	assert_int_equal(userlist_count(parsed.list), 2);
	end(&parsed);

	parsed = parse_lengths(USERLIST_NAME_LIMIT + 1, 5);
	assert_true(parsed.broken);
	assert_int_equal(userlist_count(parsed.list), 1);
	assert_contains(
		problem_at(&parsed.problems, 0)->log[0], "username too long in auth file");
	end(&parsed);

	parsed = parse_lengths(5, USERLIST_SECRET_LIMIT + 1);
	assert_true(parsed.broken);
	assert_int_equal(userlist_count(parsed.list), 1);
	assert_contains(
		problem_at(&parsed.problems, 0)->log[0], "password too long in auth file");
	end(&parsed);
}

static void test_the_last_of_equal_names_counts(void **state)
{
	struct parsed parsed =
		parse("\"b\" \"1\"\n\"a\" \"2\"\n\"b\" \"3\"\n\"a\" \"4\"\n\"b\" \"5\"\n");
	const char *name, *secret;

	(void)state;
	assert_int_equal(userlist_count(parsed.list), 2);
	assert_string_equal(userlist_find(parsed.list, "a"), "4");
	assert_string_equal(userlist_find(parsed.list, "b"), "5");
	assert_true(userlist_entry(parsed.list, 1, &name, &secret));
	assert_string_equal(name, "b");
	assert_false(userlist_entry(parsed.list, 2, &name, &secret));
	end(&parsed);
}

static void test_users_are_in_byte_order_and_all_found(void **state)
{
	enum { USERS = 5000 };
	struct parsed parsed;
	char *text = malloc(USERS * 40);
	char *at = text;
	const char *before = "", *name, *secret;
	char wanted[20];

	(void)state;
	for (unsigned i = 0; i < USERS; i++)
		at += sprintf(at, "\"u%u\" \"s%u\"\n", i * 7919 % USERS, i * 7919 % USERS);
	parsed = parse(text);
	free(text);
	assert_int_equal(userlist_count(parsed.list), USERS);
	for (size_t i = 0; userlist_entry(parsed.list, i, &name, &secret); i++) {
		assert_true(strcmp(before, name) < 0);
		before = name;
	}
	for (unsigned i = 0; i < USERS; i++) {
		snprintf(wanted, sizeof(wanted), "u%u", i);
		secret = userlist_find(parsed.list, wanted);
		assert_non_null(secret);
		assert_string_equal(secret + 1, wanted + 1);
	}
	assert_null(userlist_find(parsed.list, "u"));
	assert_null(userlist_find(parsed.list, "u5000"));
	end(&parsed);
}

static void test_a_missing_or_empty_list_has_no_users(void **state)
{
	struct parsed parsed = parse(" \n; comment\n");

	(void)state;
	assert_false(parsed.broken);
	assert_int_equal(userlist_count(parsed.list), 0);
	assert_null(userlist_find(parsed.list, "a"));
	end(&parsed);
	assert_int_equal(userlist_count(NULL), 0);
	assert_null(userlist_find(NULL, "a"));
	assert_null(userlist_ref(NULL));
	userlist_unref(NULL);
}

static void test_unchanged_file_is_not_read_again(void **state)
{
	struct problems problems = {0};
	struct userlist *first, *second;

	(void)state;
	write_file("users", "\"a\" \"1\"\n");
	first = userlist_load("users", NULL, &problems);
	second = userlist_load("users", first, &problems);
	assert_ptr_equal(first, second);
	userlist_unref(first);
	assert_string_equal(userlist_find(second, "a"), "1");

	write_file("users", "\"a\" \"1\"\n\"b\" \"2\"\n");
	first = userlist_load("users", second, &problems);
	assert_ptr_not_equal(first, second);
	assert_string_equal(userlist_find(first, "b"), "2");
	assert_null(userlist_find(second, "b"));
	assert_int_equal(problems.count, 0);
	userlist_unref(first);
	userlist_unref(second);
}

static void test_missing_file_is_a_warning_and_keeps_the_old_users(void **state)
{
	struct problems problems = {0};
	struct userlist *list, *kept;

	(void)state;
	assert_null(userlist_load("users", NULL, &problems));
	assert_int_equal(problems.count, 1);
	assert_int_equal(problem_at(&problems, 0)->severity, PROBLEM_WARNING);
	assert_string_equal(problem_at(&problems, 0)->log[0],
		"could not open auth_file users: No such file or directory");

	write_file("users", "\"a\" \"1\"\n");
	list = userlist_load("users", NULL, &problems);
	assert_int_equal(unlink("users"), 0);
	kept = userlist_load("users", list, &problems);
	assert_ptr_equal(kept, list);
	assert_int_equal(problems.count, 2);
	userlist_unref(kept);
	userlist_unref(list);
	problems_free(&problems);
}

static void test_broken_file_keeps_the_old_users_but_is_used_at_start(void **state)
{
	struct problems problems = {0};
	struct userlist *list, *kept;

	(void)state;
	write_file("users", "\"a\" \"1\"\n\"b\" \"2\"\n");
	list = userlist_load("users", NULL, &problems);
	write_file("users", "\"a\" \"9\"\n\"b\n");
	kept = userlist_load("users", list, &problems);
	assert_ptr_equal(kept, list);
	assert_int_equal(problems.count, 1);
	assert_contains(problem_at(&problems, 0)->log[0], "broken auth file");
	assert_contains(problem_at(&problems, 0)->log[0], "(users:2)");
	userlist_unref(kept);
	userlist_unref(list);

	list = userlist_load("users", NULL, &problems);
	assert_string_equal(userlist_find(list, "a"), "9");
	assert_null(userlist_find(list, "b"));
	userlist_unref(list);
	problems_free(&problems);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_give_names_and_secrets),
		cmocka_unit_test(test_scram_secret_with_too_many_iterations_is_reported),
		cmocka_unit_test(test_reading_stops_at_a_broken_line),
		cmocka_unit_test(test_users_after_a_broken_line_are_not_loaded),
		cmocka_unit_test(test_nul_byte_stops_reading),
		cmocka_unit_test(test_too_long_names_and_secrets_stop_reading),
		cmocka_unit_test(test_the_last_of_equal_names_counts),
		cmocka_unit_test(test_users_are_in_byte_order_and_all_found),
		cmocka_unit_test(test_a_missing_or_empty_list_has_no_users),
		IN_FOLDER(test_unchanged_file_is_not_read_again),
		IN_FOLDER(test_missing_file_is_a_warning_and_keeps_the_old_users),
		IN_FOLDER(test_broken_file_keeps_the_old_users_but_is_used_at_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
