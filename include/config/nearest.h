/* SPDX-License-Identifier: ISC */
/*
 * Finds the name that a misspelt one was meant to be: the one that is most like it, if it is
 * like it at all.
 */
#ifndef PGUSHER_CONFIG_NEAREST_H
#define PGUSHER_CONFIG_NEAREST_H

/* Begin with the misspelt name as `asked`, the rest zero; show it each name that exists. */
struct nearest {
	const char *asked;
	const char *found; /* NULL: none so far is like it */
	unsigned distance; /* letters by which that one differs */
};

void nearest_consider(struct nearest *nearest, const char *name);

#endif
