/* SPDX-License-Identifier: ISC */
/* The command line: what is asked for, in any order, and what is refused with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/options.h"

enum { WORDS_MOST = 8 };

static char told[1024]; /* on stderr, by the last read_line() */

/* Read a command line of these words, NULL at the end; the program's name is put before them. */
static enum options_wish read_line(struct options *options, const char *const words[])
{
	static char texts[WORDS_MOST + 1][64] = {"pgusher"}; /* the options point to them */
	char *arguments[WORDS_MOST + 2] = {texts[0]};
	FILE *capture = tmpfile();
	const int before = dup(STDERR_FILENO);
	enum options_wish wish;
	int count = 1;
	size_t length;

	for (; words[count - 1]; count++) {
		assert_true(count <= WORDS_MOST);
		snprintf(texts[count], sizeof(texts[count]), "%s", words[count - 1]);
		arguments[count] = texts[count];
	}
	assert_non_null(capture);
	dup2(fileno(capture), STDERR_FILENO);
	wish = options_read(count, arguments, options);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(capture);
	length = fread(told, 1, sizeof(told) - 1, capture);
	told[length] = '\0';
	fclose(capture);
	return wish;
}

#define READ(options, ...) read_line(options, (const char *const[]){__VA_ARGS__, NULL})

static void test_file_alone_means_run(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "/etc/x.ini"), OPTIONS_RUN);
	assert_string_equal(options.config, "/etc/x.ini");
	assert_string_equal(options.program, "pgusher");
	assert_null(options.user);
	assert_false(options.background || options.quiet || options.reboot);
	assert_int_equal(options.verbose, 0);
	assert_string_equal(told, "");
}

static void test_short_options(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(
		READ(&options, "-dqR", "-vv", "-u", "joe", "-v", "x.ini"), OPTIONS_RUN);
	assert_true(options.background && options.quiet && options.reboot);
	assert_int_equal(options.verbose, 3);
	assert_string_equal(options.user, "joe");
}

static void test_long_options_may_be_abbreviated(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "--daemon", "--qui", "--user=joe", "--verbo", "x.ini"),
		OPTIONS_RUN);
	assert_true(options.background && options.quiet);
	assert_int_equal(options.verbose, 1);
	assert_string_equal(options.user, "joe");
}

static void test_order_is_free(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "x.ini", "-d", "--user", "joe"), OPTIONS_RUN);
	assert_string_equal(options.config, "x.ini");
	assert_string_equal(options.user, "joe");
	assert_true(options.background);
	assert_int_equal(READ(&options, "-d", "--", "-q"), OPTIONS_RUN);
	assert_string_equal(options.config, "-q");
	assert_false(options.quiet);
}

static void test_check_wants_a_file(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "--check", "x.ini"), OPTIONS_CHECK);
	assert_string_equal(options.config, "x.ini");
	assert_int_equal(READ(&options, "--check"), OPTIONS_WRONG);
}

static void test_help_and_version_want_no_file(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "-V"), OPTIONS_VERSION);
	assert_int_equal(READ(&options, "--version", "a", "b"), OPTIONS_VERSION);
	assert_int_equal(READ(&options, "-h"), OPTIONS_HELP);
	assert_int_equal(READ(&options, "-d", "--help"), OPTIONS_HELP);
}

static void test_no_file_or_two_are_refused(void **state)
{
	static const char *const refusal = "pgusher: no configuration file specified\n"
					   "Try \"pgusher --help\" for more information.\n";
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "-d"), OPTIONS_WRONG);
	assert_string_equal(told, refusal);
	assert_int_equal(READ(&options, "a.ini", "b.ini"), OPTIONS_WRONG);
	assert_string_equal(told, refusal);
}

static void test_unknown_option_is_refused_by_name(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "-x", "x.ini"), OPTIONS_WRONG);
	assert_non_null(strstr(told, "'x'"));
	assert_non_null(strstr(told, "Try \"pgusher --help\" for more information.\n"));
	assert_int_equal(READ(&options, "--nonsense", "x.ini"), OPTIONS_WRONG);
	assert_non_null(strstr(told, "nonsense"));
	assert_int_equal(READ(&options, "x.ini", "-u"), OPTIONS_WRONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_alone_means_run),
		cmocka_unit_test(test_short_options),
		cmocka_unit_test(test_long_options_may_be_abbreviated),
		cmocka_unit_test(test_order_is_free),
		cmocka_unit_test(test_check_wants_a_file),
		cmocka_unit_test(test_help_and_version_want_no_file),
		cmocka_unit_test(test_no_file_or_two_are_refused),
		cmocka_unit_test(test_unknown_option_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
