/* SPDX-License-Identifier: ISC */
/* The ring of the last slow queries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/registry.h"

static void test_the_ring_has_the_last_ones_latest_first(void **state)
{
	struct slow_shared shared = {0};
	struct slow_log *log = slow_log_new(&shared);

	(void)state;
	assert_non_null(log);
	assert_null(slow_log_get(NULL, 0));
	assert_null(slow_log_get(log, 0));
	for (uint64_t i = 1; i <= SLOW_LOG_SIZE + 3; i++) {
		struct slow_query *query = slow_log_add(log);

		assert_int_equal(query->number, i);
		assert_int_equal(query->rows, 0);
		query->rows = i;
		for (unsigned age = 0; age < SLOW_LOG_SIZE && age < i; age++)
			assert_int_equal(slow_log_get(log, age)->rows, i - age);
		if (i < SLOW_LOG_SIZE)
			assert_null(slow_log_get(log, (unsigned)i));
		assert_null(slow_log_get(log, SLOW_LOG_SIZE));
	}
	slow_log_free(log);
}

/* Three workers with a ring each. */
static struct process process;
static struct registry registries[3];

static void make_rings(void)
{
	process = (struct process){.workers = 3};
	for (unsigned i = 0; i < 3; i++) {
		registries[i] = (struct registry){.process = &process, .number = i};
		registries[i].slow_log = slow_log_new(&process.slow);
		assert_non_null(registries[i].slow_log);
		process.registries[i] = &registries[i];
	}
}

static void free_rings(void)
{
	for (unsigned i = 0; i < 3; i++)
		slow_log_free(registries[i].slow_log);
}

static void test_queries_of_all_workers_have_one_order(void **state)
{
	struct slow_walk walk = {0};
	const struct slow_query *query;

	(void)state;
	make_rings();
	assert_null(slow_walk_next(&walk, &process));
	/* More than one ring has, by turns and in a row. */
	for (unsigned i = 1; i <= SLOW_LOG_SIZE + 50; i++)
		slow_log_add(registries[i <= 60 ? i % 3 : 1].slow_log)->rows = i;
	walk = (struct slow_walk){0};
	for (unsigned i = SLOW_LOG_SIZE + 50; i > 50; i--) {
		query = slow_walk_next(&walk, &process);
		assert_non_null(query);
		assert_int_equal(query->number, i);
		assert_int_equal(query->rows, i);
	}
	assert_null(slow_walk_next(&walk, &process));
	free_rings();
}

static void test_a_worker_without_a_ring_has_no_queries(void **state)
{
	struct slow_walk walk = {0};

	(void)state;
	make_rings();
	slow_log_free(registries[0].slow_log);
	registries[0].slow_log = NULL;
	slow_log_add(registries[2].slow_log);
	assert_int_equal(slow_walk_next(&walk, &process)->number, 1);
	assert_null(slow_walk_next(&walk, &process));
	free_rings();
}

static void test_the_rate_of_logged_queries_is_that_of_all_workers(void **state)
{
	unsigned taken = 0;

	(void)state;
	make_rings();
	for (unsigned i = 0; i < 12; i++)
		taken += slow_log_samples(registries[i % 3].slow_log, 4, USEC_PER_SEC);
	assert_int_equal(taken, 4);
	assert_int_equal(slow_log_left_out(registries[1].slow_log, USEC_PER_SEC + 1), 0);
	assert_int_equal(slow_log_left_out(registries[1].slow_log, 3 * USEC_PER_SEC), 8);
	assert_int_equal(slow_log_left_out(registries[2].slow_log, 3 * USEC_PER_SEC), 0);
	free_rings();
}

static void test_the_longest_part_is_the_cause(void **state)
{
	(void)state;
	assert_int_equal(slow_log_cause((usec_t[]){1, 2, 3}), SLOW_CLIENT);
	assert_int_equal(slow_log_cause((usec_t[]){1, 3, 3}), SLOW_SERVER);
	assert_int_equal(slow_log_cause((usec_t[]){0, 0, 0}), SLOW_QUEUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_ring_has_the_last_ones_latest_first),
		cmocka_unit_test(test_queries_of_all_workers_have_one_order),
		cmocka_unit_test(test_a_worker_without_a_ring_has_no_queries),
		cmocka_unit_test(test_the_rate_of_logged_queries_is_that_of_all_workers),
		cmocka_unit_test(test_the_longest_part_is_the_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
