/* SPDX-License-Identifier: ISC */
#include "model/shared/directory.h"

#include <string.h>

#include "base/random.h"
#include "model/registry.h"

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

/* The lock is held. */
static struct database *look_up(struct directory *directory, const char *name, unsigned hash)
{
	struct database *found = NULL;

	HASH_FIND_BYHASHVALUE(by_name, directory->databases, name, strlen(name), hash, found);
	return found;
}

/* The first worker sees all databases while it has stopped the others. */
static bool may_use(const struct registry *registry, const struct database *database)
{
	const struct crew *crew = &registry->process->crew;

	return database->registry == registry ||
		(registry->number == 0 && (!crew->running || crew_is_still(crew)));
}

struct database *directory_find(const struct registry *registry, const char *name)
{
	struct directory *directory = &registry->process->directory;
	struct database *found;

	lock_take(&directory->lock);
	found = look_up(directory, name, hash_of(directory, name));
	if (found && !may_use(registry, found))
		found = NULL;
	lock_give(&directory->lock);
	return found;
}

bool directory_add(struct directory *directory, struct database *database)
{
	unsigned hash;

	lock_take(&directory->lock);
	hash = hash_of(directory, database->name);
	if (look_up(directory, database->name, hash)) {
		lock_give(&directory->lock);
		return false;
	}
	HASH_ADD_KEYPTR_BYHASHVALUE(by_name, directory->databases, database->name,
		strlen(database->name), hash, database);
	directory->sorted = false;
	if (database->by_name.tbl)
		database->registry->database_count += !database->console;
	lock_give(&directory->lock);
	return database->by_name.tbl != NULL; /* else uthash was out of memory */
}

/*
 * All workers choose the same home, so that two of them do not make one database. After a RELOAD it may
 * be another one: directory_add() then refuses the second one.
 */
static struct registry *home_of_automatic(const struct process *process, unsigned hash)
{
	const struct database_config *template = snapshot_template(process->config);
	unsigned number;

	if (!template)
		return NULL;
	number = template->worker >= 0 ? (unsigned)template->worker : hash;
	return process->registries[number % process->workers];
}

struct registry *directory_home_of(struct process *process, const char *name)
{
	struct directory *directory = &process->directory;
	const struct database *found;
	struct registry *home;
	unsigned hash;

	lock_take(&directory->lock);
	hash = hash_of(directory, name);
	found = look_up(directory, name, hash);
	home = found ? found->registry : NULL;
	lock_give(&directory->lock);
	if (home)
		return home;
	/* A name of the console, which never becomes an automatic database. */
	if (strcmp(name, "pgusher") == 0)
		return process->registries[0];
	return home_of_automatic(process, hash);
}

/* Of two workers with as many databases the later one: the first worker also accepts all clients. */
struct registry *directory_choose_home(
	struct process *process, const struct database_config *config)
{
	struct registry *home = process->registries[0];

	if (config->worker >= 0)
		return process->registries[(unsigned)config->worker % process->workers];
	lock_take(&process->directory.lock);
	for (unsigned i = 1; i < process->workers; i++) {
		if (process->registries[i]->database_count <= home->database_count)
			home = process->registries[i];
	}
	lock_give(&process->directory.lock);
	return home;
}

void directory_remove(struct directory *directory, struct database *database)
{
	lock_take(&directory->lock);
	HASH_DELETE(by_name, directory->databases, database);
	database->registry->database_count -= !database->console;
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
