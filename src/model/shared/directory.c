/* SPDX-License-Identifier: ISC */
#include "model/shared/directory.h"

#include <string.h>

#include "base/random.h"
#include "model/pool.h"

bool directory_init(struct directory *directory, struct random *random)
{
	uint8_t key[KEYED_HASH_KEY_SIZE];

	TAILQ_INIT(&directory->pools);
	random_fill(random, key, sizeof(key));
	return keyed_hash_init(&directory->name_hash, key);
}

void directory_free(struct directory *directory)
{
	lock_end(&directory->lock);
	keyed_hash_free(&directory->name_hash);
}

static unsigned hash_of(struct directory *directory, const char *name)
{
	return (unsigned)keyed_hash_of(&directory->name_hash, name, strlen(name));
}

struct database *directory_find(struct directory *directory, const char *name)
{
	struct database *found = NULL;
	unsigned hash;

	lock_take(&directory->lock);
	hash = hash_of(directory, name);
	HASH_FIND_BYHASHVALUE(by_name, directory->databases, name, strlen(name), hash, found);
	lock_give(&directory->lock);
	return found;
}

bool directory_add(struct directory *directory, struct database *database)
{
	unsigned hash;

	lock_take(&directory->lock);
	hash = hash_of(directory, database->name);
	HASH_ADD_KEYPTR_BYHASHVALUE(by_name, directory->databases, database->name,
		strlen(database->name), hash, database);
	directory->sorted = false;
	lock_give(&directory->lock);
	return database->by_name.tbl != NULL; /* else uthash was out of memory */
}

void directory_remove(struct directory *directory, struct database *database)
{
	lock_take(&directory->lock);
	HASH_DELETE(by_name, directory->databases, database);
	lock_give(&directory->lock);
}

void directory_add_pool(struct directory *directory, struct pool *pool)
{
	lock_take(&directory->lock);
	TAILQ_INSERT_TAIL(&directory->pools, pool, in_directory);
	pool->order = directory->pool_count++;
	directory->sorted = false;
	lock_give(&directory->lock);
}

void directory_remove_pool(struct directory *directory, struct pool *pool)
{
	lock_take(&directory->lock);
	TAILQ_REMOVE(&directory->pools, pool, in_directory);
	directory->pool_count--;
	lock_give(&directory->lock);
}

uint64_t directory_next_functions(struct directory *directory)
{
	return SHARED_NEXT(directory->function_lists);
}

unsigned directory_count_databases(const struct directory *directory)
{
	return HASH_CNT(by_name, directory->databases);
}
