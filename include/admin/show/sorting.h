/* SPDX-License-Identifier: ISC */
/*
 * Sorts an array of numbers with a limited number of comparisons per call. Pure, stable.
 */
#ifndef PGUSHER_ADMIN_SHOW_SORTING_H
#define PGUSHER_ADMIN_SHOW_SORTING_H

#include <stdbool.h>
#include <stddef.h>

/* Less than, equal to, or more than 0. */
typedef int sorting_compare(size_t a, size_t b, const void *context);

struct sorting {
	size_t *numbers; /* the caller's */
	size_t *spare; /* owned: an array of the same size */
	size_t count;
	size_t width; /* of the sorted runs; two neighbours are merged into one */
	size_t begin; /* of the two runs being merged */
	size_t left, right; /* numbers taken from each run */
	bool is_swapped; /* `spare` holds the current state, not `numbers` */
};

/*
 * Begin to sort the numbers, which the caller does not touch until sorting_end(). Returns false
 * when out of memory.
 */
bool sorting_begin(struct sorting *sorting, size_t *numbers, size_t count);

/*
 * Continue with at most `effort` comparisons, which are subtracted from it. Returns true when
 * the numbers are sorted.
 */
bool sorting_continue(struct sorting *sorting, sorting_compare *compare, const void *context,
	unsigned *effort);

/* Free the memory, at any time; a struct that is all zero is allowed. */
void sorting_end(struct sorting *sorting);

#endif
