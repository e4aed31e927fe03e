/* SPDX-License-Identifier: ISC */
/* Clocks never step back, and a test can replace the monotonic one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

static usec_t set_time;

static usec_t read_set_time(void)
{
	return set_time;
}

static void test_monotonic_clock_never_steps_back(void **state)
{
	usec_t before = clock_monotonic();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		usec_t now = clock_monotonic();

		assert_true(now >= before);
		before = now;
	}
}

static void test_wall_clock_agrees_with_the_system(void **state)
{
	time_t before = time(NULL);
	usec_t now = clock_wall();

	(void)state;
	/* time() may use a coarser clock that is up to a tick behind. */
	assert_in_range(now / USEC_PER_SEC, (uintmax_t)before, (uintmax_t)time(NULL) + 1);
}

static void test_source_replaces_monotonic_clock_until_restored(void **state)
{
	(void)state;
	set_time = 42 * USEC_PER_SEC;
	clock_set_source(read_set_time);
	assert_int_equal(clock_monotonic(), 42 * USEC_PER_SEC);
	set_time += 7;
	assert_int_equal(clock_monotonic(), 42 * USEC_PER_SEC + 7);
	clock_set_source(NULL);
	assert_true(clock_monotonic() != set_time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_monotonic_clock_never_steps_back),
		cmocka_unit_test(test_wall_clock_agrees_with_the_system),
		cmocka_unit_test(test_source_replaces_monotonic_clock_until_restored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
