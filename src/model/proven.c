/* SPDX-License-Identifier: ISC */
#include "model/proven.h"

#include <stdlib.h>

/* The place of an entry, counted from the oldest. */
static unsigned place_of(const struct proven *proven, unsigned index)
{
	return (proven->first + index) % PROVEN_MAX;
}

struct parameters *proven_find(const struct proven *proven, const struct parameters *asked)
{
	for (unsigned i = 0; i < proven->count; i++) {
		const unsigned place = place_of(proven, i);

		if (proven->entries[place].asked == asked)
			return proven->entries[place].spelt;
	}
	return NULL;
}

static size_t size_of(const struct parameters *asked, const struct parameters *spelt)
{
	return parameters_size(asked) + (spelt != asked ? parameters_size(spelt) : 0);
}

static void forget_oldest(struct proven *proven)
{
	struct parameters *asked = proven->entries[proven->first].asked;
	struct parameters *spelt = proven->entries[proven->first].spelt;

	proven->bytes -= size_of(asked, spelt);
	proven->first = (proven->first + 1) % PROVEN_MAX;
	proven->count--;
	parameters_unref(asked);
	parameters_unref(spelt);
}

void proven_add(struct proven *proven, struct parameters *asked, struct parameters *spelt)
{
	const size_t size = size_of(asked, spelt);
	unsigned place;

	if (proven_find(proven, asked) || size > PROVEN_BYTES_MAX)
		return;
	if (!proven->entries)
		proven->entries = calloc(PROVEN_MAX, sizeof(*proven->entries));
	if (!proven->entries)
		return;
	while (proven->count == PROVEN_MAX || proven->bytes + size > PROVEN_BYTES_MAX)
		forget_oldest(proven);
	place = place_of(proven, proven->count++);
	proven->entries[place].asked = parameters_ref(asked);
	proven->entries[place].spelt = parameters_ref(spelt);
	proven->bytes += size;
}

void proven_clear(struct proven *proven)
{
	while (proven->count > 0)
		forget_oldest(proven);
	free(proven->entries);
	*proven = (struct proven){0};
}
