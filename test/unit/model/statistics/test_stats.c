/* SPDX-License-Identifier: ISC */
/* Sums, snapshots and averages of a pool's counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/statistics/stats.h"

static const struct totals some = {
	.assignments = 1,
	.transactions = 2,
	.queries = 3,
	.received = 4,
	.sent = 5,
	.transaction_time = 6,
	.query_time = 7,
	.wait_time = 8,
	.client_parses = 9,
	.server_parses = 10,
	.binds = 11,
	.client_logins = 12,
};

static const struct totals none;

static void test_every_counter_is_added(void **state)
{
	struct totals sum = some;
	const uint64_t *counters = (const uint64_t *)&sum;

	(void)state;
	totals_add(&sum, &some);
	for (size_t i = 0; i < sizeof(sum) / sizeof(*counters); i++)
		assert_int_equal(counters[i], 2 * (i + 1));
}

static void test_snapshots_are_added_separately(void **state)
{
	struct stats sum = {0};
	const struct stats part = {
		.current = {.queries = 30}, .newer = {.queries = 20}, .older = {.queries = 10}};

	(void)state;
	stats_add(&sum, &part);
	stats_add(&sum, &part);
	assert_int_equal(sum.current.queries, 60);
	assert_int_equal(sum.newer.queries, 40);
	assert_int_equal(sum.older.queries, 20);
}

static void test_new_period_moves_the_snapshots(void **state)
{
	struct stats stats = {
		.current = {.queries = 3}, .newer = {.queries = 2}, .older = {.queries = 1}};

	(void)state;
	stats_rotate(&stats);
	assert_int_equal(stats.current.queries, 3);
	assert_int_equal(stats.newer.queries, 3);
	assert_int_equal(stats.older.queries, 2);
}

static void test_counts_are_averaged_per_second(void **state)
{
	const struct totals now = {.assignments = 10,
		.transactions = 20,
		.queries = 30,
		.received = 4000,
		.sent = 5000,
		.client_parses = 60,
		.server_parses = 70,
		.binds = 80,
		.client_logins = 90};
	const struct totals average = stats_average(&now, &none, 10 * USEC_PER_SEC);

	(void)state;
	assert_int_equal(average.assignments, 1);
	assert_int_equal(average.transactions, 2);
	assert_int_equal(average.queries, 3);
	assert_int_equal(average.received, 400);
	assert_int_equal(average.sent, 500);
	assert_int_equal(average.client_parses, 6);
	assert_int_equal(average.server_parses, 7);
	assert_int_equal(average.binds, 8);
	assert_int_equal(average.client_logins, 9);
}

static void test_times_are_averaged_per_event(void **state)
{
	const struct totals then = {.assignments = 1,
		.transactions = 1,
		.queries = 1,
		.transaction_time = 100,
		.query_time = 100,
		.wait_time = 100};
	const struct totals now = {.assignments = 3,
		.transactions = 5,
		.queries = 9,
		.transaction_time = 900,
		.query_time = 900,
		.wait_time = 900};
	const struct totals average = stats_average(&now, &then, USEC_PER_SEC);

	(void)state;
	assert_int_equal(average.wait_time, 400);
	assert_int_equal(average.transaction_time, 200);
	assert_int_equal(average.query_time, 100);
}

static void test_no_events_give_no_average(void **state)
{
	const struct totals average = stats_average(&some, &some, USEC_PER_SEC);
	const uint64_t *counters = (const uint64_t *)&average;

	(void)state;
	for (size_t i = 0; i < sizeof(average) / sizeof(*counters); i++)
		assert_int_equal(counters[i], 0);
}

static void test_no_time_gives_no_average(void **state)
{
	(void)state;
	assert_int_equal(stats_average(&some, &none, 0).queries, 0);
	assert_int_equal(stats_average(&some, &none, -1).queries, 0);
}

/* The counts of a pool that was freed are missing from the later sum. */
static void test_decreased_sum_counts_as_zero(void **state)
{
	const struct totals average = stats_average(&none, &some, USEC_PER_SEC);
	const uint64_t *counters = (const uint64_t *)&average;

	(void)state;
	for (size_t i = 0; i < sizeof(average) / sizeof(*counters); i++)
		assert_int_equal(counters[i], 0);
}

static void test_many_bytes_do_not_overflow(void **state)
{
	const struct totals now = {.sent = UINT64_MAX};

	(void)state;
	assert_true(stats_average(&now, &none, USEC_PER_SEC).sent == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_counter_is_added),
		cmocka_unit_test(test_snapshots_are_added_separately),
		cmocka_unit_test(test_new_period_moves_the_snapshots),
		cmocka_unit_test(test_counts_are_averaged_per_second),
		cmocka_unit_test(test_times_are_averaged_per_event),
		cmocka_unit_test(test_no_events_give_no_average),
		cmocka_unit_test(test_no_time_gives_no_average),
		cmocka_unit_test(test_decreased_sum_counts_as_zero),
		cmocka_unit_test(test_many_bytes_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
