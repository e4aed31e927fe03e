/* SPDX-License-Identifier: ISC */
#include "config/catalog.h"

#include <stdlib.h>
#include <string.h>

struct named {
	const char *name; /* owned by the entry */
	void *entry;
	size_t order; /* position in the file */
};

bool named_list_add(struct named_list *list, const char *name, void *entry)
{
	if (list->count == list->capacity) {
		const size_t capacity = list->capacity ? list->capacity * 2 : 16;
		struct named *at = realloc(list->at, capacity * sizeof(*at));

		if (!at) {
			list->free(entry);
			return false;
		}
		list->at = at;
		list->capacity = capacity;
	}
	list->at[list->count] = (struct named){name, entry, list->count};
	list->count++;
	return true;
}

static int compare_named(const void *a, const void *b)
{
	const struct named *left = a, *right = b;
	const int order = strcmp(left->name, right->name);

	if (order != 0)
		return order;
	return left->order < right->order ? -1 : left->order > right->order;
}

void named_list_sort(struct named_list *list)
{
	size_t kept = 0;

	if (list->count == 0)
		return;
	qsort(list->at, list->count, sizeof(list->at[0]), compare_named);
	for (size_t i = 0; i < list->count; i++) {
		if (kept > 0 && strcmp(list->at[kept - 1].name, list->at[i].name) == 0)
			list->free(list->at[--kept].entry);
		list->at[kept++] = list->at[i];
	}
	list->count = kept;
}

static int compare_name(const void *name, const void *named)
{
	return strcmp(name, ((const struct named *)named)->name);
}

const void *named_list_find(const struct named_list *list, const char *name)
{
	const struct named *found = NULL;

	if (list->count > 0)
		found = bsearch(name, list->at, list->count, sizeof(list->at[0]), compare_name);
	return found ? found->entry : NULL;
}

const void *named_list_entry(const struct named_list *list, size_t index)
{
	return index < list->count ? list->at[index].entry : NULL;
}

static void list_free(struct named_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		list->free(list->at[i].entry);
	free(list->at);
}

/* --- catalogs ----------------------------------------------------------------------------- */

static void free_database(void *entry)
{
	database_config_free(entry);
}

static void free_user(void *entry)
{
	user_config_free(entry);
}

static void free_peer(void *entry)
{
	peer_config_free(entry);
}

struct catalog *catalog_new(void)
{
	struct catalog *catalog = calloc(1, sizeof(*catalog));

	if (!catalog)
		return NULL;
	catalog->references = 1;
	catalog->databases.free = free_database;
	catalog->users.free = free_user;
	catalog->peers.free = free_peer;
	return catalog;
}

struct catalog *catalog_ref(struct catalog *catalog)
{
	reference_take(&catalog->references);
	return catalog;
}

void catalog_unref(struct catalog *catalog)
{
	if (!catalog || !reference_drop(&catalog->references))
		return;
	list_free(&catalog->databases);
	list_free(&catalog->users);
	list_free(&catalog->peers);
	database_config_free(catalog->template);
	free(catalog);
}
