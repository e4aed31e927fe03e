/* SPDX-License-Identifier: ISC */
/* The sort is correct and stable for any numbers and any effort per call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "admin/show/sorting.h"

enum { MOST = 300 };

static unsigned compared;

/* The low digits are the original place of a number and are not compared. */
static int compare(size_t a, size_t b, const void *context)
{
	assert_ptr_equal(context, &compared);
	compared++;
	return (a / 1000 > b / 1000) - (a / 1000 < b / 1000);
}

/* Sort `count` numbers with `kinds` different keys and `piece` comparisons per call. */
static void try(size_t count, size_t kinds, unsigned piece)
{
	size_t numbers[MOST + 1];
	struct sorting sorting;
	unsigned seed = 17, effort;

	for (size_t i = 0; i < count; i++) {
		seed = seed * 1103515245 + 12345;
		numbers[i] = (seed >> 16) % kinds * 1000 + i;
	}
	assert_true(sorting_begin(&sorting, numbers, count));
	do {
		effort = piece;
		compared = 0;
	} while (!sorting_continue(&sorting, compare, &compared, &effort) && compared <= piece);
	assert_true(compared <= piece);
	/* Equal keys keep their order, so the whole numbers ascend. */
	for (size_t i = 1; i < count; i++)
		assert_true(numbers[i - 1] < numbers[i]);
	sorting_end(&sorting);
}

static void test_numbers_are_sorted_with_any_effort_per_call(void **state)
{
	static const unsigned pieces[] = {1, 2, 7, 100, UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		for (size_t count = 0; count <= 70; count++)
			try(count, count / 3 + 1, pieces[i]);
		try(MOST, MOST, pieces[i]);
		try(MOST, 1, pieces[i]);
	}
}

static void test_a_sort_may_end_at_any_time(void **state)
{
	size_t numbers[] = {3000, 1000, 2000};
	struct sorting sorting = {0};
	unsigned effort = 1;

	(void)state;
	sorting_end(&sorting);
	assert_true(sorting_begin(&sorting, numbers, 3));
	assert_false(sorting_continue(&sorting, compare, &compared, &effort));
	sorting_end(&sorting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_are_sorted_with_any_effort_per_call),
		cmocka_unit_test(test_a_sort_may_end_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
