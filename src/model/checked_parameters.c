/* SPDX-License-Identifier: ISC */
#include "model/checked_parameters.h"

#include <stdlib.h>

/* Returns the place in the ring of the entry with this index; the oldest one has index 0. */
static unsigned place_of(const struct checked_parameters *checked, unsigned index)
{
	return (checked->first + index) % CHECKED_PARAMETERS_MAX;
}

struct parameters *checked_parameters_find(
	const struct checked_parameters *checked, const struct parameters *asked)
{
	for (unsigned i = 0; i < checked->count; i++) {
		const unsigned place = place_of(checked, i);

		if (checked->entries[place].asked == asked)
			return checked->entries[place].spelt;
	}
	return NULL;
}

static size_t size_of(const struct parameters *asked, const struct parameters *spelt)
{
	return parameters_size(asked) + (spelt != asked ? parameters_size(spelt) : 0);
}

static void forget_oldest(struct checked_parameters *checked)
{
	struct parameters *asked = checked->entries[checked->first].asked;
	struct parameters *spelt = checked->entries[checked->first].spelt;

	checked->bytes -= size_of(asked, spelt);
	checked->first = (checked->first + 1) % CHECKED_PARAMETERS_MAX;
	checked->count--;
	parameters_unref(asked);
	parameters_unref(spelt);
}

void checked_parameters_add(
	struct checked_parameters *checked, struct parameters *asked, struct parameters *spelt)
{
	const size_t size = size_of(asked, spelt);
	unsigned place;

	if (checked_parameters_find(checked, asked) || size > CHECKED_PARAMETERS_BYTES_MAX)
		return;
	if (!checked->entries)
		checked->entries = calloc(CHECKED_PARAMETERS_MAX, sizeof(*checked->entries));
	if (!checked->entries)
		return;
	while (checked->count == CHECKED_PARAMETERS_MAX ||
		checked->bytes + size > CHECKED_PARAMETERS_BYTES_MAX)
		forget_oldest(checked);
	place = place_of(checked, checked->count++);
	checked->entries[place].asked = parameters_ref(asked);
	checked->entries[place].spelt = parameters_ref(spelt);
	checked->bytes += size;
}

void checked_parameters_clear(struct checked_parameters *checked)
{
	while (checked->count > 0)
		forget_oldest(checked);
	free(checked->entries);
	*checked = (struct checked_parameters){0};
}
