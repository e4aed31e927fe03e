/* SPDX-License-Identifier: ISC */
/* The command line: options in any order, and the errors of invalid ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/options.h"

enum { WORDS_MOST = 8 };

static char error_output[1024]; /* written to stderr by the last read_line() */

/* Parse a command line of the program's name and these words, which end with NULL. */
static enum options_action read_line(struct options *options, const char *const words[])
{
	static char texts[WORDS_MOST + 1][64] = {"pgusher"}; /* the options point to them */
	char *arguments[WORDS_MOST + 2] = {texts[0]};
	FILE *capture = tmpfile();
	const int before = dup(STDERR_FILENO);
	enum options_action action;
	int count = 1;
	size_t length;

	for (; words[count - 1]; count++) {
		assert_true(count <= WORDS_MOST);
		snprintf(texts[count], sizeof(texts[count]), "%s", words[count - 1]);
		arguments[count] = texts[count];
	}
	assert_non_null(capture);
	dup2(fileno(capture), STDERR_FILENO);
	action = options_read(count, arguments, options);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(capture);
	length = fread(error_output, 1, sizeof(error_output) - 1, capture);
	error_output[length] = '\0';
	fclose(capture);
	return action;
}

#define READ(options, ...) read_line(options, (const char *const[]){__VA_ARGS__, NULL})

static void test_file_alone_runs_the_daemon(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "/etc/x.ini"), OPTIONS_RUN);
	assert_string_equal(options.config, "/etc/x.ini");
	assert_string_equal(options.program, "pgusher");
	assert_null(options.user);
	assert_false(options.background || options.quiet || options.reboot);
	assert_int_equal(options.verbose, 0);
	assert_string_equal(error_output, "");
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

static void test_check_needs_a_file(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "--check", "x.ini"), OPTIONS_CHECK);
	assert_string_equal(options.config, "x.ini");
	assert_int_equal(READ(&options, "--check"), OPTIONS_INVALID);
}

static void test_reload_needs_a_process_and_a_file(void **state)
{
	static const char *const wrong[] = {"0", "-1", "x", "", "2147483648", "12x"};
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "--reload=123", "x.ini"), OPTIONS_RELOAD);
	assert_int_equal(options.main_process, 123);
	assert_string_equal(options.config, "x.ini");
	assert_int_equal(READ(&options, "--reload", "2147483647", "x.ini"), OPTIONS_RELOAD);
	assert_int_equal(options.main_process, 2147483647);
	assert_int_equal(READ(&options, "--reload=123"), OPTIONS_INVALID);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(
			READ(&options, "--reload", wrong[i], "x.ini"), OPTIONS_INVALID);
	assert_int_equal(READ(&options, "x.ini"), OPTIONS_RUN);
	assert_int_equal(options.main_process, 0);
}

static void test_conversion_has_options_of_its_own(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "--convert", "a.toml", "--from=pgcat", "--output=b"),
		OPTIONS_CONVERT);
	assert_string_equal(options.convert.path, "a.toml");
	assert_string_equal(options.convert.pooler, "pgcat");
	assert_string_equal(options.convert.output, "b");
	assert_false(options.convert.differences);
	assert_int_equal(READ(&options, "--convert", "--diff", "a"), OPTIONS_CONVERT);
	assert_true(options.convert.differences);
	assert_int_equal(READ(&options, "--convert"), OPTIONS_INVALID);
	assert_int_equal(READ(&options, "--diff", "a"), OPTIONS_INVALID);
	assert_int_equal(READ(&options, "--check", "--from=pgcat", "a"), OPTIONS_INVALID);
	assert_int_equal(READ(&options, "--output=b", "a"), OPTIONS_INVALID);
	assert_int_equal(
		READ(&options, "--convert", "--diff", "--output=b", "a"), OPTIONS_INVALID);
}

static void test_help_and_version_need_no_file(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "-V"), OPTIONS_VERSION);
	assert_null(options.config);
	assert_int_equal(READ(&options, "--version", "a", "b"), OPTIONS_VERSION);
	assert_string_equal(options.config, "a");
	assert_int_equal(READ(&options, "-h"), OPTIONS_HELP);
	assert_int_equal(READ(&options, "-d", "--help"), OPTIONS_HELP);
}

static void test_no_file_or_two_are_refused(void **state)
{
	static const char *const refusal = "pgusher: no configuration file specified\n"
					   "Try \"pgusher --help\" for more information.\n";
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "-d"), OPTIONS_INVALID);
	assert_string_equal(error_output, refusal);
	assert_int_equal(READ(&options, "a.ini", "b.ini"), OPTIONS_INVALID);
	assert_string_equal(error_output, refusal);
}

static void test_a_server_stands_in_for_the_file(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(
		READ(&options, "--to=host=db", "--listen", "1", "--listen=2"), OPTIONS_RUN);
	assert_null(options.config);
	assert_string_equal(options.to, "host=db");
	assert_string_equal(options.listen[0], "1");
	assert_string_equal(options.listen[1], "2");
	assert_null(options.listen[2]);
	assert_int_equal(READ(&options, "--check", "--to=host=db"), OPTIONS_CHECK);
	assert_int_equal(READ(&options, "--to=host=db", "x.ini"), OPTIONS_INVALID);
	assert_int_equal(READ(&options, "--listen=1", "x.ini"), OPTIONS_INVALID);
	assert_int_equal(READ(&options, "--listen=1"), OPTIONS_INVALID);
	assert_int_equal(READ(&options, "--reload=5", "--to=host=db"), OPTIONS_INVALID);
	assert_int_equal(READ(&options, "--container", "--reload=5"), OPTIONS_INVALID);
}

static void test_health_takes_a_file_a_place_or_the_environment(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "--health", "x.ini"), OPTIONS_HEALTH);
	assert_string_equal(options.config, "x.ini");
	assert_int_equal(READ(&options, "--health", "--listen=1"), OPTIONS_HEALTH);
	assert_int_equal(READ(&options, "-v", "--health"), OPTIONS_HEALTH);
	assert_null(options.config);
	assert_int_equal(options.own_count, 2);
	assert_string_equal(options.own[1], "--health");
	assert_null(options.command[0]);
	assert_int_equal(READ(&options, "--health", "a.ini", "b.ini"), OPTIONS_INVALID);
}

static void test_options_of_a_containers_command_are_its_own(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "--container", "-v", "-u", "joe", "cat", "-v", "x.ini"),
		OPTIONS_RUN);
	assert_true(options.container);
	assert_int_equal(options.verbose, 1);
	assert_int_equal(options.own_count, 3);
	assert_string_equal(options.own[2], "joe");
	assert_string_equal(options.command[0], "cat");
	assert_string_equal(options.command[1], "-v");
	assert_null(options.command[3]);
	assert_null(options.config);
	assert_int_equal(READ(&options, "--container", "-v", "x.ini"), OPTIONS_RUN);
	assert_string_equal(options.config, "x.ini");
	assert_null(options.command[0]);
	assert_int_equal(READ(&options, "--container"), OPTIONS_RUN);
	assert_null(options.command[0]);
	assert_int_equal(READ(&options, "--container", "--health"), OPTIONS_HEALTH);
	assert_int_equal(READ(&options, "-v", "--container"), OPTIONS_INVALID);
}

static void test_unknown_option_is_refused_by_name(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(READ(&options, "-x", "x.ini"), OPTIONS_INVALID);
	assert_non_null(strstr(error_output, "'x'"));
	assert_non_null(strstr(error_output, "Try \"pgusher --help\" for more information.\n"));
	assert_int_equal(READ(&options, "--nonsense", "x.ini"), OPTIONS_INVALID);
	assert_non_null(strstr(error_output, "nonsense"));
	assert_int_equal(READ(&options, "x.ini", "-u"), OPTIONS_INVALID);
}

static void test_presets_of_the_environment_come_first(void **state)
{
	struct options options;
	char many[5000];

	(void)state;
	assert_int_equal(setenv("PGUSHER_PRESETS", " a=1\n b=2 ", 1), 0);
	assert_int_equal(READ(&options, "--preset=c=3", "x.ini"), OPTIONS_RUN);
	assert_int_equal(options.preset_count, 3);
	assert_string_equal(options.presets[0], "a=1");
	assert_string_equal(options.presets[1], "b=2");
	assert_string_equal(options.presets[2], "c=3");
	assert_null(options.presets[3]);
	for (size_t i = 0; i < sizeof(many) - 1; i++)
		many[i] = i % 2 ? ' ' : 'a';
	many[sizeof(many) - 1] = '\0';
	assert_int_equal(setenv("PGUSHER_PRESETS", many, 1), 0);
	assert_int_equal(READ(&options, "x.ini"), OPTIONS_INVALID);
	assert_non_null(strstr(error_output, "PGUSHER_PRESETS is longer than 4095 bytes"));
	many[70] = '\0';
	assert_int_equal(setenv("PGUSHER_PRESETS", many, 1), 0);
	assert_int_equal(READ(&options, "x.ini"), OPTIONS_INVALID);
	assert_non_null(strstr(error_output, "more than 32 presets"));
	assert_int_equal(unsetenv("PGUSHER_PRESETS"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_alone_runs_the_daemon),
		cmocka_unit_test(test_short_options),
		cmocka_unit_test(test_long_options_may_be_abbreviated),
		cmocka_unit_test(test_order_is_free),
		cmocka_unit_test(test_check_needs_a_file),
		cmocka_unit_test(test_reload_needs_a_process_and_a_file),
		cmocka_unit_test(test_conversion_has_options_of_its_own),
		cmocka_unit_test(test_help_and_version_need_no_file),
		cmocka_unit_test(test_no_file_or_two_are_refused),
		cmocka_unit_test(test_a_server_stands_in_for_the_file),
		cmocka_unit_test(test_health_takes_a_file_a_place_or_the_environment),
		cmocka_unit_test(test_options_of_a_containers_command_are_its_own),
		cmocka_unit_test(test_unknown_option_is_refused_by_name),
		cmocka_unit_test(test_presets_of_the_environment_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
