/* SPDX-License-Identifier: ISC */
/* No reference is lost though several threads take and drop them. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/references.h"

enum { THREADS = 4, ROUNDS = 300 * 1000 };

/* An object that is freed with its last reference. */
struct thing {
	reference_count references;
	int written[THREADS]; /* by each thread, before it drops its reference */
};

static void test_last_drop_is_reported(void **state)
{
	reference_count count = 1;

	(void)state;
	reference_take(&count);
	assert_false(reference_drop(&count));
	assert_true(reference_drop(&count));
}

static void *take_and_drop(void *argument)
{
	reference_count *count = argument;

	for (int i = 0; i < ROUNDS; i++) {
		reference_take(count);
		if (reference_drop(count))
			return argument; /* it cannot be the last */
	}
	return NULL;
}

static void test_threads_lose_no_reference(void **state)
{
	reference_count count = 1;
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_drop, &count), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(count, 1);
	assert_true(reference_drop(&count));
}

static struct thing *shared;

static void *write_and_drop(void *argument)
{
	struct thing *thing = shared;
	int *sum = argument;

	thing->written[sum[0]] = 1;
	sum[0] = 0;
	if (!reference_drop(&thing->references))
		return NULL;
	for (int i = 0; i < THREADS; i++)
		sum[0] += thing->written[i];
	free(thing);
	return NULL;
}

static void test_one_thread_drops_the_last_reference_and_sees_what_all_wrote(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		pthread_t threads[THREADS];
		int sums[THREADS], sum = 0;

		shared = calloc(1, sizeof(*shared));
		assert_non_null(shared);
		shared->references = THREADS;
		for (int i = 0; i < THREADS; i++) {
			sums[i] = i;
			assert_int_equal(
				pthread_create(&threads[i], NULL, write_and_drop, &sums[i]), 0);
		}
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(threads[i], NULL), 0);
			sum += sums[i];
		}
		assert_int_equal(sum, THREADS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_drop_is_reported),
		cmocka_unit_test(test_threads_lose_no_reference),
		cmocka_unit_test(
			test_one_thread_drops_the_last_reference_and_sees_what_all_wrote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
