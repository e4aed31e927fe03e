/* SPDX-License-Identifier: ISC */
/*
 * All databases and pools of the process, by name: what SHOW, RELOAD, PAUSE and the like walk over.
 *
 * Each database, with its pools and their links, belongs to one registry, its home
 * (model/registry), which owns it.
 */
#ifndef PGUSHER_MODEL_SHARED_DIRECTORY_H
#define PGUSHER_MODEL_SHARED_DIRECTORY_H

#include "base/lock.h"
#include "crypt/keyed_hash.h"
#include "model/database.h"

struct process;
struct random;
struct registry;

struct directory {
	struct lock lock; /* taken to look up, add and remove; walks need stopped others */
	struct database *databases; /* uthash, by name */
	struct keyed_hash name_hash; /* keyed, since clients choose the names */
	struct pool_list pools; /* in order by database, then user, after registry_sort() */
	unsigned pool_count;
	uint64_t last_pool; /* the number of the last one that was made */
	uint64_t function_lists; /* versions of the lists in model/state/session_functions */
	bool sorted; /* databases and pools are in order */
};

/* Make an empty directory. Returns false when out of memory. */
bool directory_init(struct directory *directory, struct random *random);

/* Free the directory, which must be empty. */
void directory_free(struct directory *directory);

/*
 * Returns the database of this name, if it is at home in the registry, or NULL. While no other thread
 * runs, the first registry finds all databases.
 */
struct database *directory_find(const struct registry *registry, const char *name);

/*
 * Returns the home of the database of this name, or of the automatic database that would be made;
 * NULL if there is no such database. Any thread may ask. `pgusher` is the console unless a database
 * has that name.
 */
struct registry *directory_home_of(struct process *process, const char *name);

/*
 * Returns the home of a new database of the configuration: the one that it names, else the registry
 * with the fewest databases.
 */
struct registry *directory_choose_home(
	struct process *process, const struct database_config *config);

/* Add a database, which has its name and its home. Returns false when out of memory. */
bool directory_add(struct directory *directory, struct database *database);

/* Remove a database, so that its name is unknown. */
void directory_remove(struct directory *directory, struct database *database);

/* Add a pool and give it its number; remove it. */
void directory_add_pool(struct directory *directory, struct pool *pool);
void directory_remove_pool(struct directory *directory, struct pool *pool);

/* Returns the next version of a list of functions. */
uint64_t directory_next_functions(struct directory *directory);

/* Takes no lock: to be called by the first worker while the others are stopped. */
unsigned directory_count_databases(const struct directory *directory);

#endif
