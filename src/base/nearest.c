/* SPDX-License-Identifier: ISC */
#include "base/nearest.h"

#include <string.h>

enum {
	NAME_SIZE = 64, /* longer names are never similar */
	FARTHEST = 2, /* letters that may differ */
};

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
	const unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Levenshtein distance: the number of letters to change, insert or delete, whatever their case. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_SIZE];
	const size_t length = strlen(b);

	for (unsigned j = 0; j <= length; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1] != '\0'; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= length; j++) {
			const unsigned changed =
				diagonal + (lower(a[i - 1]) != lower(b[j - 1]));

			diagonal = row[j];
			row[j] = smallest(row[j] + 1, row[j - 1] + 1, changed);
		}
	}
	return row[length];
}

void nearest_consider(struct nearest *nearest, const char *name)
{
	unsigned far;

	if (strlen(nearest->asked) >= NAME_SIZE || strlen(name) >= NAME_SIZE)
		return;
	far = distance(nearest->asked, name);
	/* A short name differs by most of its length from any other name. */
	if (far > FARTHEST || 2 * far > strlen(name) ||
		(nearest->found && far >= nearest->distance))
		return;
	nearest->found = name;
	nearest->distance = far;
}
