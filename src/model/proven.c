/* SPDX-License-Identifier: ISC */
#include "model/proven.h"

#include <stdlib.h>

struct parameters *proven_find(const struct proven *proven, const struct parameters *asked)
{
	for (unsigned i = 0; i < proven->count; i++) {
		if (proven->entries[i].asked == asked)
			return proven->entries[i].spelt;
	}
	return NULL;
}

/* The place of a new one; what stood there is forgotten. */
static unsigned make_place(struct proven *proven)
{
	const unsigned place = proven->oldest;

	if (proven->count < PROVEN_MAX)
		return proven->count++;
	parameters_unref(proven->entries[place].asked);
	parameters_unref(proven->entries[place].spelt);
	proven->oldest = (place + 1) % PROVEN_MAX;
	return place;
}

void proven_add(struct proven *proven, struct parameters *asked, struct parameters *spelt)
{
	unsigned place;

	if (proven_find(proven, asked))
		return;
	if (!proven->entries)
		proven->entries = calloc(PROVEN_MAX, sizeof(*proven->entries));
	if (!proven->entries)
		return;
	place = make_place(proven);
	proven->entries[place].asked = parameters_ref(asked);
	proven->entries[place].spelt = parameters_ref(spelt);
}

void proven_clear(struct proven *proven)
{
	for (unsigned i = 0; i < proven->count; i++) {
		parameters_unref(proven->entries[i].asked);
		parameters_unref(proven->entries[i].spelt);
	}
	free(proven->entries);
	*proven = (struct proven){0};
}
