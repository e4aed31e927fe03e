/* SPDX-License-Identifier: ISC */
#include "top/lookup.h"

#include <stdlib.h>
#include <string.h>

struct lookup_entry {
	const char *first, *second; /* `second` is NULL without such a column */
	size_t row;
};

static int compare(const void *left, const void *right)
{
	const struct lookup_entry *entries[] = {left, right};
	const int order = strcmp(entries[0]->first, entries[1]->first);

	if (order != 0 || !entries[0]->second || !entries[1]->second)
		return order;
	return strcmp(entries[0]->second, entries[1]->second);
}

void lookup_begin(struct lookup *lookup, const struct table *table, size_t first, size_t second)
{
	*lookup = (struct lookup){calloc(table->row_count + 1, sizeof(*lookup->list)), 0};
	if (!lookup->list)
		return;
	for (size_t row = 0; row < table->row_count; row++) {
		const struct lookup_entry entry = {
			table_text(table, row, first), table_text(table, row, second), row};

		if (entry.first && (entry.second || second == TABLE_NO_COLUMN))
			lookup->list[lookup->count++] = entry;
	}
	qsort(lookup->list, lookup->count, sizeof(*lookup->list), compare);
}

void lookup_free(struct lookup *lookup)
{
	free(lookup->list);
	*lookup = (struct lookup){0};
}

size_t lookup_find(const struct lookup *lookup, const char *first, const char *second)
{
	const struct lookup_entry wanted = {first, second, 0}, *found;

	if (!first || lookup->count == 0)
		return LOOKUP_NONE;
	found = bsearch(&wanted, lookup->list, lookup->count, sizeof(wanted), compare);
	return found ? found->row : LOOKUP_NONE;
}
