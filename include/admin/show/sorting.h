/* SPDX-License-Identifier: ISC */
/*
 * Puts numbers in order a few comparisons at a time, however many they are. Pure; those that are
 * equal stay as they came.
 */
#ifndef PGUSHER_ADMIN_SHOW_SORTING_H
#define PGUSHER_ADMIN_SHOW_SORTING_H

#include <stdbool.h>
#include <stddef.h>

/* Less than, equal to, or more than 0. */
typedef int sorting_compare(size_t a, size_t b, const void *context);

struct sorting {
	size_t *numbers; /* the caller's */
	size_t *spare; /* owned: as many */
	size_t count;
	size_t width; /* of the runs that are in order in themselves; each two become one */
	size_t begin; /* of the two runs being merged */
	size_t left, right; /* taken from each of them */
	bool is_swapped; /* what is in order by now stands in `spare` */
};

/* Begin; the numbers are the sorting's until it ends. False: no memory. */
bool sorting_begin(struct sorting *sorting, size_t *numbers, size_t count);

/*
 * Go on for about so many comparisons, which are taken off `effort`. True: the numbers are in
 * order.
 */
bool sorting_go_on(struct sorting *sorting, sorting_compare *compare, const void *context,
	unsigned *effort);

/* At any time; of a sorting that is all zero, too. */
void sorting_end(struct sorting *sorting);

#endif
