/* SPDX-License-Identifier: ISC */
/*
 * Sorts databases, users and pools by name. Reading names from scattered memory takes most of
 * the time, so the beginning of each name is first copied into one array.
 */
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"

enum { BEGINNING_SIZE = 24 };

struct named {
	char beginning[BEGINNING_SIZE]; /* of the name; a shorter name is padded with zeros */
	const char *name, *more; /* more: compared when names are equal, or NULL */
	void *object;
};

static struct named named_as(const char *name, const char *more, void *object)
{
	struct named named = {.name = name, .more = more, .object = object};

	memcpy(named.beginning, name, strnlen(name, BEGINNING_SIZE));
	return named;
}

static int compare(const void *a, const void *b)
{
	const struct named *left = a, *right = b;
	int order = strncmp(left->beginning, right->beginning, BEGINNING_SIZE);

	if (order == 0)
		order = strcmp(left->name, right->name);
	return order == 0 && left->more ? strcmp(left->more, right->more) : order;
}

/* Check first whether they are in order already. */
static void sort(struct named *all, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (compare(&all[i - 1], &all[i]) > 0) {
			qsort(all, count, sizeof(*all), compare);
			return;
		}
	}
}

/* Set the order of the items and the tail of the hash table, as HASH_SRT does. */
#define RELINK(type, head, all, count)                                                         \
	do {                                                                                   \
		for (size_t i = 0; i < (count); i++) {                                         \
			type *item = (all)[i].object;                                          \
                                                                                               \
			item->by_name.prev = i > 0 ? (all)[i - 1].object : NULL;               \
			item->by_name.next = i + 1 < (count) ? (all)[i + 1].object : NULL;     \
		}                                                                              \
		(head) = (all)[0].object;                                                      \
		(head)->by_name.tbl->tail = &((type *)(all)[(count)-1].object)->by_name;       \
	} while (0)

static bool sort_databases(struct directory *directory)
{
	struct named *all = calloc(directory_count_databases(directory) + 1, sizeof(*all));
	struct database *database, *next;
	size_t count = 0;

	if (!all)
		return false;
	HASH_ITER (by_name, directory->databases, database, next)
		all[count++] = named_as(database->name, NULL, database);
	sort(all, count);
	if (count > 0)
		RELINK(struct database, directory->databases, all, count);
	free(all);
	return true;
}

static bool sort_users(struct registry *registry)
{
	struct named *all = calloc(registry_count_users(registry) + 1, sizeof(*all));
	struct user *user, *next;
	size_t count = 0;

	if (!all)
		return false;
	HASH_ITER (by_name, registry->users, user, next)
		all[count++] = named_as(user->name, NULL, user);
	sort(all, count);
	if (count > 0)
		RELINK(struct user, registry->users, all, count);
	free(all);
	return true;
}

static bool sort_pools(struct directory *directory)
{
	struct named *all = calloc(directory->pool_count + 1, sizeof(*all));
	struct pool *pool;
	size_t count = 0;

	if (!all)
		return false;
	TAILQ_FOREACH (pool, &directory->pools, in_directory)
		all[count++] = named_as(pool->database->name, pool->user->name, pool);
	sort(all, count);
	TAILQ_INIT(&directory->pools);
	for (size_t i = 0; i < count; i++) {
		pool = all[i].object;
		pool->order = (unsigned)i;
		TAILQ_INSERT_TAIL(&directory->pools, pool, in_directory);
	}
	free(all);
	return true;
}

void registry_sort_users(struct registry *registry)
{
	if (!registry->users_sorted)
		registry->users_sorted = sort_users(registry);
}

/* When out of memory, leave the old order. */
void registry_sort(struct registry *registry)
{
	struct directory *directory = &registry->process->directory;

	if (!directory->sorted)
		directory->sorted = sort_databases(directory) && sort_pools(directory);
	registry_sort_users(registry);
}
