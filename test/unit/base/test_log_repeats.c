/* SPDX-License-Identifier: ISC */
/* Similar lines: a few are written per second, the rest are counted, and memory is fixed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log_repeats.h"

enum { ALLOWED = 3 };

/* What was reported so far. */
static unsigned reports, reported_lines;
static struct log_left_out last;

/* Each test starts long after the one before, when old counts no longer apply. */
static usec_t now = USEC_PER_SEC;

static void on_report(const struct log_left_out *left_out, void *context)
{
	assert_ptr_equal(context, &reports);
	reports++;
	reported_lines += left_out->count;
	last = *left_out;
}

static int begin(void **state)
{
	(void)state;
	now += 3600 * USEC_PER_SEC;
	log_repeats_flush(now, on_report, &reports);
	now += 3600 * USEC_PER_SEC;
	reports = reported_lines = 0;
	return 0;
}

static bool allow(const char *kind, const char *about, const char *text)
{
	const struct log_likeness likeness = {.kind = kind, .about = about};

	return log_repeats_allow(
		&likeness, LEVEL_WARNING, text, ALLOWED, now, on_report, &reports);
}

static void flush(void)
{
	log_repeats_flush(now, on_report, &reports);
}

static void test_the_first_lines_of_a_second_are_written(void **state)
{
	(void)state;
	for (int i = 0; i < ALLOWED; i++)
		assert_true(allow("failed", "10.0.0.1", "text"));
	for (int i = 0; i < 100; i++)
		assert_false(allow("failed", "10.0.0.1", "text"));
	assert_int_equal(reports, 0);
}

static void test_suppressed_lines_are_reported_when_the_second_is_over(void **state)
{
	(void)state;
	for (int i = 0; i < ALLOWED + 7; i++)
		(void)allow("failed", "10.0.0.1", i < ALLOWED + 6 ? "one" : "the last");
	now += USEC_PER_SEC - 1;
	flush();
	assert_int_equal(reports, 0);
	now++;
	flush();
	assert_int_equal(reports, 1);
	assert_int_equal(last.count, 7);
	assert_int_equal(last.level, LEVEL_WARNING);
	assert_string_equal(last.about, "10.0.0.1");
	assert_string_equal(last.text, "the last");
	/* Reported once only. */
	now += USEC_PER_SEC;
	flush();
	assert_int_equal(reports, 1);
}

static void test_suppressed_lines_are_reported_before_the_next_line(void **state)
{
	(void)state;
	for (int i = 0; i < ALLOWED + 2; i++)
		(void)allow("failed", "10.0.0.1", "text");
	now += USEC_PER_SEC;
	assert_true(allow("failed", "10.0.0.1", "text"));
	assert_int_equal(reports, 1);
	assert_int_equal(last.count, 2);
	/* The report counted as one line of the new second. */
	for (int i = 2; i < ALLOWED; i++)
		assert_true(allow("failed", "10.0.0.1", "text"));
	assert_false(allow("failed", "10.0.0.1", "text"));
}

static void test_kinds_and_peers_are_counted_separately(void **state)
{
	(void)state;
	for (int i = 0; i < ALLOWED; i++) {
		assert_true(allow("failed", "10.0.0.1", "text"));
		assert_true(allow("failed", "10.0.0.2", "text"));
		assert_true(allow("odd", "10.0.0.1", "text"));
	}
	assert_false(allow("failed", "10.0.0.1", "text"));
	assert_false(allow("failed", "10.0.0.2", "text"));
	assert_false(allow("odd", "10.0.0.1", "text"));
}

static void test_lines_without_a_subject_are_counted_too(void **state)
{
	(void)state;
	for (int i = 0; i < ALLOWED; i++)
		assert_true(allow("whole", "", "text"));
	assert_false(allow("whole", "", "text"));
}

static void test_long_names_are_compared_as_far_as_they_are_kept(void **state)
{
	char about[1000];

	(void)state;
	memset(about, 'x', sizeof(about) - 1);
	about[sizeof(about) - 1] = '\0';
	for (int i = 0; i < ALLOWED; i++)
		assert_true(allow("failed", about, "text"));
	assert_false(allow("failed", about, "text"));
}

static void test_many_peers_together_are_limited_too(void **state)
{
	unsigned written = 0, left_out = 0;
	char about[32];

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		(void)snprintf(
			about, sizeof(about), "10.%u.%u.%u", i >> 16, (i >> 8) & 255, i & 255);
		if (allow("flood", about, "text"))
			written++;
		else
			left_out++;
	}
	/*
	 * However many peers there are; the rest is counted, and reported when a slot is
	 * reused.
	 */
	assert_in_range(written, 1, 100);
	now += USEC_PER_SEC;
	flush();
	assert_int_equal(reported_lines, left_out);
}

static void test_a_long_text_is_cut_between_characters(void **state)
{
	char text[1000];

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xb6", 3);
	for (int i = 0; i <= ALLOWED; i++)
		(void)allow("failed", "10.0.0.1", text);
	now += USEC_PER_SEC;
	flush();
	assert_in_range(strlen(last.text), 100, LOG_REPEATS_TEXT_SIZE - 1);
	assert_int_equal(strlen(last.text) % 2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_first_lines_of_a_second_are_written, begin),
		cmocka_unit_test_setup(
			test_suppressed_lines_are_reported_when_the_second_is_over, begin),
		cmocka_unit_test_setup(
			test_suppressed_lines_are_reported_before_the_next_line, begin),
		cmocka_unit_test_setup(test_kinds_and_peers_are_counted_separately, begin),
		cmocka_unit_test_setup(test_lines_without_a_subject_are_counted_too, begin),
		cmocka_unit_test_setup(
			test_long_names_are_compared_as_far_as_they_are_kept, begin),
		cmocka_unit_test_setup(test_many_peers_together_are_limited_too, begin),
		cmocka_unit_test_setup(test_a_long_text_is_cut_between_characters, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
