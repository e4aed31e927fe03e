/* SPDX-License-Identifier: ISC */
/* Percentiles and buckets from one set of cells, compared with the times themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/statistics/latency.h"

static struct latency latency;

static int set_up(void **state)
{
	(void)state;
	latency = (struct latency){0};
	return 0;
}

static struct latency_summary queries(void)
{
	return latency_summary(&latency, LATENCY_QUERY, 0);
}

/*
 * Times of all sizes, the same in each run; every second one is at a bound of the histograms.
 */
static uint64_t next_time(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	if (*seed >> 63)
		return histogram_bounds[*seed >> 40 & 15] + (*seed >> 50 & 3) - 1;
	return (*seed >> 20 & UINT32_MAX) >> (*seed >> 58 & 31);
}

static void test_cells_ascend_with_the_times_and_stay_in_bounds(void **state)
{
	unsigned last = 0;

	(void)state;
	for (uint64_t time = 0; time < 70000; time++) {
		const unsigned cell = latency_cell(time);

		assert_true(cell == last || cell > last);
		last = cell;
	}
	for (unsigned bit = 17; bit < 64; bit++) {
		for (unsigned part = 0; part < 16; part++) {
			const uint64_t time = (UINT64_C(1) << bit) / 16 * (16 + part);
			const unsigned cell = latency_cell(time);

			assert_true(cell >= last && cell < LATENCY_CELLS);
			last = cell;
		}
	}
	assert_int_equal(latency_cell(UINT64_MAX), LATENCY_CELLS - 1);
}

static void test_buckets_agree_with_a_plain_histogram(void **state)
{
	struct histogram plain = {0}, told;
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		const uint64_t time = next_time(&seed);

		histogram_add(&plain, (usec_t)time);
		latency_add(&latency, LATENCY_QUERY, time);
		if (i % 7919 == 0)
			latency_rotate(&latency);
	}
	told = latency_histogram(&latency, LATENCY_QUERY);
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		assert_int_equal(told.counts[i], plain.counts[i]);
	assert_int_equal(told.sum, plain.sum);
}

static int compare(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static void assert_near(uint64_t told, uint64_t exact)
{
	const uint64_t off = told > exact ? told - exact : exact - told;

	if (8 * off > exact)
		fail_msg("%llu told for %llu", (unsigned long long)told,
			(unsigned long long)exact);
}

static void test_percentiles_are_off_by_an_eighth_at_most(void **state)
{
	enum { TIMES = 5000 };
	static uint64_t times[TIMES];
	uint64_t seed = 2;

	(void)state;
	for (unsigned count = 1; count <= TIMES; count++) {
		struct latency_summary told;

		times[count - 1] = next_time(&seed);
		latency_add(&latency, LATENCY_QUERY, times[count - 1]);
		if (count > 100 && count % 617 != 0)
			continue;
		told = queries();
		qsort(times, count, sizeof(times[0]), compare);
		assert_int_equal(told.count, count);
		assert_int_equal(told.max, times[count - 1]);
		assert_near(told.p50, times[(count * 50 + 99) / 100 - 1]);
		assert_near(told.p90, times[(count * 90 + 99) / 100 - 1]);
		assert_near(told.p99, times[(count * 99 + 99) / 100 - 1]);
	}
}

static void test_no_samples_give_zeros(void **state)
{
	const struct latency_summary told = queries(), zero = {0};

	(void)state;
	assert_memory_equal(&told, &zero, sizeof(zero));
}

static void test_single_sample_is_every_percentile(void **state)
{
	struct latency_summary told;

	(void)state;
	latency_add(&latency, LATENCY_QUERY, 3);
	told = queries();
	assert_int_equal(told.p50, 3);
	assert_int_equal(told.p99, 3);
	assert_int_equal(told.max, 3);
}

static void test_no_percentile_exceeds_the_maximum(void **state)
{
	(void)state;
	latency_add(&latency, LATENCY_QUERY, 1048576);
	assert_int_equal(queries().p99, 1048576);
	latency_add(&latency, LATENCY_QUERY, UINT64_C(1) << 40);
	assert_int_equal(queries().max, UINT64_C(1) << 40);
}

static void test_samples_without_a_wait_count_as_zero(void **state)
{
	struct latency_summary told;

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		latency_add(&latency, LATENCY_WAIT, 100);
	told = latency_summary(&latency, LATENCY_WAIT, 95);
	assert_int_equal(told.count, 100);
	assert_int_equal(told.p50, 0);
	assert_int_equal(told.p90, 0);
	assert_near(told.p99, 100);
	assert_int_equal(told.max, 100);
}

static void test_kinds_are_counted_separately(void **state)
{
	(void)state;
	latency_add(&latency, LATENCY_TRANSACTION, 7);
	assert_int_equal(queries().count, 0);
	assert_int_equal(latency_summary(&latency, LATENCY_TRANSACTION, 0).count, 1);
	assert_int_equal(latency_summary(&latency, LATENCY_WAIT, 0).count, 0);
}

static void test_sample_leaves_the_percentiles_after_two_periods_but_not_the_metrics(
	void **state)
{
	struct histogram all;

	(void)state;
	latency_add(&latency, LATENCY_QUERY, 900);
	assert_int_equal(queries().max, 900);
	latency_rotate(&latency);
	latency_add(&latency, LATENCY_QUERY, 300);
	assert_int_equal(queries().count, 2);
	assert_int_equal(queries().max, 900);
	latency_rotate(&latency);
	assert_int_equal(queries().count, 1);
	assert_int_equal(queries().max, 300);
	latency_rotate(&latency);
	assert_int_equal(queries().count, 0);
	assert_int_equal(queries().max, 0);
	all = latency_histogram(&latency, LATENCY_QUERY);
	assert_int_equal(histogram_count(&all), 2);
	assert_int_equal(all.sum, 1200);
	assert_int_equal(all.counts[0], 1);
	assert_int_equal(all.counts[1], 1);
}

static void test_counts_of_pools_can_be_merged(void **state)
{
	static struct latency sum;
	struct histogram all;

	(void)state;
	sum = (struct latency){0};
	latency_add(&latency, LATENCY_QUERY, 100);
	latency_rotate(&latency);
	latency_add(&latency, LATENCY_QUERY, 200);
	latency_add(&sum, LATENCY_QUERY, 50);
	latency_merge(&sum, &latency);
	assert_int_equal(latency_summary(&sum, LATENCY_QUERY, 0).count, 3);
	assert_int_equal(latency_summary(&sum, LATENCY_QUERY, 0).max, 200);
	all = latency_histogram(&sum, LATENCY_QUERY);
	assert_int_equal(histogram_count(&all), 3);
	assert_int_equal(all.sum, 350);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			test_cells_ascend_with_the_times_and_stay_in_bounds, set_up),
		cmocka_unit_test_setup(test_buckets_agree_with_a_plain_histogram, set_up),
		cmocka_unit_test_setup(test_percentiles_are_off_by_an_eighth_at_most, set_up),
		cmocka_unit_test_setup(test_no_samples_give_zeros, set_up),
		cmocka_unit_test_setup(test_single_sample_is_every_percentile, set_up),
		cmocka_unit_test_setup(test_no_percentile_exceeds_the_maximum, set_up),
		cmocka_unit_test_setup(test_samples_without_a_wait_count_as_zero, set_up),
		cmocka_unit_test_setup(test_kinds_are_counted_separately, set_up),
		cmocka_unit_test_setup(
			test_sample_leaves_the_percentiles_after_two_periods_but_not_the_metrics,
			set_up),
		cmocka_unit_test_setup(test_counts_of_pools_can_be_merged, set_up),
	};

	return cmocka_run_group_tests_name("latency", tests, NULL, NULL);
}
