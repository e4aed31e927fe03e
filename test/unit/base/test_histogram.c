/* SPDX-License-Identifier: ISC */
/* Histogram buckets: a bound belongs to the bucket below it, and no value is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/histogram.h"

static void test_a_bound_belongs_to_the_bucket_below_it(void **state)
{
	struct histogram histogram = {0};

	(void)state;
	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		histogram_add(&histogram, (usec_t)histogram_bounds[i]);
		assert_int_equal(histogram.counts[i], i == 0 ? 1 : 2);
		histogram_add(&histogram, (usec_t)histogram_bounds[i] + 1);
		assert_int_equal(histogram.counts[i + 1], 1);
	}
	assert_int_equal(histogram_count(&histogram), 2 * HISTOGRAM_BOUNDS);
}

static void test_bounds_are_half_a_millisecond_to_a_minute(void **state)
{
	(void)state;
	assert_int_equal(histogram_bounds[0], 500);
	assert_int_equal(histogram_bounds[HISTOGRAM_BOUNDS - 1], 60 * USEC_PER_SEC);
	for (unsigned i = 1; i < HISTOGRAM_BOUNDS; i++)
		assert_true(histogram_bounds[i] >= 2 * histogram_bounds[i - 1]);
}

static void test_the_sum_is_of_all_values(void **state)
{
	struct histogram histogram = {0}, other = {0};

	(void)state;
	histogram_add(&histogram, 3);
	histogram_add(&histogram, 70 * USEC_PER_SEC);
	histogram_add(&histogram, -5); /* as after a clock was set back */
	assert_int_equal(histogram.sum, 70 * USEC_PER_SEC + 3);
	assert_int_equal(histogram.counts[0], 2);
	assert_int_equal(histogram.counts[HISTOGRAM_BOUNDS], 1);
	histogram_merge(&other, &histogram);
	histogram_merge(&other, &histogram);
	assert_int_equal(other.sum, 2 * histogram.sum);
	assert_int_equal(histogram_count(&other), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_bound_belongs_to_the_bucket_below_it),
		cmocka_unit_test(test_bounds_are_half_a_millisecond_to_a_minute),
		cmocka_unit_test(test_the_sum_is_of_all_values),
	};

	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
