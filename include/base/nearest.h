/* SPDX-License-Identifier: ISC */
/*
 * Finds the existing name that is most similar to a misspelt one, for a hint in an error text.
 */
#ifndef PGUSHER_BASE_NEAREST_H
#define PGUSHER_BASE_NEAREST_H

/* Start with the misspelt name as `asked` and zero otherwise; pass each existing name. */
struct nearest {
	const char *asked;
	const char *found; /* NULL: no similar name so far */
	unsigned
		distance; /* number of letters in which it differs, upper and lower case alike */
};

void nearest_consider(struct nearest *nearest, const char *name);

#endif
