/* SPDX-License-Identifier: ISC */
/* Samples of events that come at any rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sampling.h"

/* A second with so many events. Returns how many were taken; sets the first and last one taken. */
static unsigned run_second(
	struct sampling *sampling, usec_t begin, unsigned events, unsigned most, unsigned *last)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < events; i++) {
		const usec_t now = begin + (usec_t)i * (USEC_PER_SEC - 1) / events;

		assert_int_equal(sampling_left_out(sampling, now), 0);
		if (sampling_take(sampling, most, now)) {
			taken++;
			*last = i;
		}
	}
	return taken;
}

static void test_few_events_are_all_taken(void **state)
{
	struct sampling sampling = {0};
	unsigned last;

	(void)state;
	for (usec_t second = 1; second < 5; second++) {
		assert_int_equal(
			run_second(&sampling, second * USEC_PER_SEC, 10, 10, &last), 10);
		assert_int_equal(sampling_left_out(&sampling, (second + 1) * USEC_PER_SEC), 0);
	}
}

static void test_of_many_a_sample_is_spread_over_the_second(void **state)
{
	struct sampling sampling = {0};
	unsigned last = 0;

	(void)state;
	assert_int_equal(run_second(&sampling, USEC_PER_SEC, 1000, 10, &last), 10);
	assert_int_equal(last, 9);
	assert_int_equal(sampling_left_out(&sampling, 2 * USEC_PER_SEC), 990);
	assert_int_equal(run_second(&sampling, 2 * USEC_PER_SEC, 1000, 10, &last), 10);
	assert_int_equal(last, 900);
	assert_int_equal(sampling_left_out(&sampling, 3 * USEC_PER_SEC), 990);
	/* After a second with few of them all are taken again. */
	run_second(&sampling, 3 * USEC_PER_SEC, 5, 10, &last);
	assert_int_equal(sampling_left_out(&sampling, 4 * USEC_PER_SEC), 4);
	assert_int_equal(run_second(&sampling, 4 * USEC_PER_SEC, 5, 10, &last), 5);
}

static void test_a_pause_forgets_the_rate(void **state)
{
	struct sampling sampling = {0};
	unsigned last;

	(void)state;
	run_second(&sampling, USEC_PER_SEC, 1000, 10, &last);
	assert_int_equal(sampling_left_out(&sampling, 60 * USEC_PER_SEC), 990);
	assert_int_equal(run_second(&sampling, 60 * USEC_PER_SEC, 5, 10, &last), 5);
}

static void test_without_a_limit_all_are_taken(void **state)
{
	struct sampling sampling = {0};
	unsigned last;

	(void)state;
	run_second(&sampling, USEC_PER_SEC, 1000, 10, &last);
	sampling_left_out(&sampling, 2 * USEC_PER_SEC);
	assert_int_equal(run_second(&sampling, 2 * USEC_PER_SEC, 1000, 0, &last), 1000);
	assert_int_equal(sampling_left_out(&sampling, 3 * USEC_PER_SEC), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_events_are_all_taken),
		cmocka_unit_test(test_of_many_a_sample_is_spread_over_the_second),
		cmocka_unit_test(test_a_pause_forgets_the_rate),
		cmocka_unit_test(test_without_a_limit_all_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
