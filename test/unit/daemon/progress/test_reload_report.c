/* SPDX-License-Identifier: ISC */
/* What a reload says of itself; test/integration/test_progress.py has the rest. */
#include "daemon/progress/reload_report.h"
#include "support/fakes/fake_pool.h"

static const char config[] = "[databases]\na = host=/tmp\nb = host=/tmp\n[pgbouncer]\n"
			     "session_functions_refresh = 0\n";

static int start(void **state)
{
	(void)state;
	fake_start(config);
	return 0;
}

static struct snapshot *parse(const char *text)
{
	struct problems problems = {0};
	struct snapshot *made =
		snapshot_parse("test.ini", text, strlen(text), fake_process.config, &problems);

	assert_non_null(made);
	problems_free(&problems);
	return made;
}

/* A reload to this text, which takes so long to read. */
static void reload(struct reload_report *report, const char *text, usec_t time)
{
	struct snapshot *new;
	const struct file_list files = {0};

	reload_report_begin(report);
	new = parse(text);
	fake_advance(time);
	reload_report_read(report, &fake_registry, new, &files);
	reload_report_end(report, &fake_registry);
	snapshot_unref(new);
}

static void test_a_reload_without_a_change_is_not_notable(void **state)
{
	struct reload_report report;

	(void)state;
	reload(&report, config, 0);
	assert_false(report.notable);
	assert_true(fake_logged(
		"RELOAD: read 0 files with 2 databases and 0 users in 0 ms, applied "
		"in 0 ms; nothing has changed"));
}

static void test_a_long_reading_has_a_line_of_its_own(void **state)
{
	struct reload_report report;

	(void)state;
	reload(&report, config, USEC_PER_SEC);
	assert_int_equal(fake_log_count("RELOAD: "), 1);
	reload(&report, config, 2 * USEC_PER_SEC);
	assert_true(report.notable);
	assert_true(fake_logged("RELOAD: read 0 files with 2 databases and 0 users in 2.0 s, "
				"applying it"));
	assert_int_equal(fake_log_count("RELOAD: "), 3);
}

static void test_lists_that_end_early_are_compared_to_the_end(void **state)
{
	struct reload_report report;

	(void)state;
	reload(&report, "[databases]\n0 = host=/tmp\na = host=/tmp port=7\n[pgbouncer]\n", 0);
	assert_true(report.notable);
	assert_non_null(strstr(report.text, "; 1 database added, 1 changed, 1 removed"));
	reload(&report,
		"[databases]\nb = host=/tmp\nc = host=/tmp\nd = host=/tmp\n[pgbouncer]\n", 0);
	assert_non_null(strstr(report.text, "; 2 databases added, 1 removed"));
	reload(&report, "[databases]\n* = host=/tmp\n[pgbouncer]\n", 0);
	assert_non_null(strstr(report.text, "; 1 database added, 2 removed"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_reload_without_a_change_is_not_notable),
		TEST(test_a_long_reading_has_a_line_of_its_own),
		TEST(test_lists_that_end_early_are_compared_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
