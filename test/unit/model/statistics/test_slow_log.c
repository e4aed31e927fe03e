/* SPDX-License-Identifier: ISC */
/* The ring of the last slow queries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/statistics/slow_log.h"

static void test_the_ring_has_the_last_ones_latest_first(void **state)
{
	struct slow_log *log = slow_log_new();

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
		cmocka_unit_test(test_the_longest_part_is_the_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
