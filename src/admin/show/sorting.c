/* SPDX-License-Identifier: ISC */
/*
 * Merge sort, bottom up: merges runs of 1, 2, 4 and so on. Four numbers are the state of a
 * pause.
 */
#include "admin/show/sorting.h"

#include <stdlib.h>
#include <string.h>

bool sorting_begin(struct sorting *sorting, size_t *numbers, size_t count)
{
	*sorting = (struct sorting){.numbers = numbers, .count = count, .width = 1};
	sorting->spare = malloc((count > 0 ? count : 1) * sizeof(*sorting->spare));
	return sorting->spare != NULL;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Move the smaller of the next numbers of the two runs. Returns false if both are at their end.
 */
static bool merge_one(struct sorting *sorting, sorting_compare *compare, const void *context)
{
	const size_t *from = sorting->is_swapped ? sorting->spare : sorting->numbers;
	size_t *to = sorting->is_swapped ? sorting->numbers : sorting->spare;
	const size_t middle = least(sorting->begin + sorting->width, sorting->count);
	const size_t end = least(middle + sorting->width, sorting->count);
	const size_t left = sorting->begin + sorting->left, right = middle + sorting->right;
	const bool has_left = left < middle, has_right = right < end;

	if (!has_left && !has_right)
		return false;
	if (has_left && (!has_right || compare(from[left], from[right], context) <= 0)) {
		to[left + sorting->right] = from[left];
		sorting->left++;
	} else {
		to[left + sorting->right] = from[right];
		sorting->right++;
	}
	return true;
}

/* Go to the next two runs; after the last ones start over with runs twice as long. */
static void move_on(struct sorting *sorting)
{
	sorting->begin += 2 * sorting->width;
	sorting->left = sorting->right = 0;
	if (sorting->begin < sorting->count)
		return;
	sorting->begin = 0;
	sorting->width *= 2;
	sorting->is_swapped = !sorting->is_swapped;
}

bool sorting_continue(struct sorting *sorting, sorting_compare *compare, const void *context,
	unsigned *effort)
{
	while (sorting->width < sorting->count) {
		if (*effort == 0)
			return false;
		(*effort)--;
		if (!merge_one(sorting, compare, context))
			move_on(sorting);
	}
	if (sorting->is_swapped && sorting->count > 0)
		memcpy(sorting->numbers, sorting->spare, sorting->count * sizeof(size_t));
	sorting->is_swapped = false;
	return true;
}

void sorting_end(struct sorting *sorting)
{
	free(sorting->spare);
	*sorting = (struct sorting){0};
}
