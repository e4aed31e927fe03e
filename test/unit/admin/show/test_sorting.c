/* SPDX-License-Identifier: ISC */
/* Numbers in order, whatever they are and in how many pieces it is done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "admin/show/sorting.h"

enum { MOST = 300 };

static unsigned compared;

/* The low digits are the place where it stood, and do not count. */
static int compare(size_t a, size_t b, const void *context)
{
	assert_ptr_equal(context, &compared);
	compared++;
	return (a / 1000 > b / 1000) - (a / 1000 < b / 1000);
}

/* Sort so many numbers of so many kinds, doing so much at a time. */
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
	} while (!sorting_go_on(&sorting, compare, &compared, &effort) && compared <= piece);
	assert_true(compared <= piece);
	/* Those of one kind as they came, which makes the places ascend too. */
	for (size_t i = 1; i < count; i++)
		assert_true(numbers[i - 1] < numbers[i]);
	sorting_end(&sorting);
}

static void test_any_number_of_numbers_in_any_pieces(void **state)
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

static void test_it_may_end_at_any_time(void **state)
{
	size_t numbers[] = {3000, 1000, 2000};
	struct sorting sorting = {0};
	unsigned effort = 1;

	(void)state;
	sorting_end(&sorting);
	assert_true(sorting_begin(&sorting, numbers, 3));
	assert_false(sorting_go_on(&sorting, compare, &compared, &effort));
	sorting_end(&sorting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_number_of_numbers_in_any_pieces),
		cmocka_unit_test(test_it_may_end_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
