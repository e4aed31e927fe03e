/* SPDX-License-Identifier: ISC */
/* Databases that several workers make, look for and forget at the same time. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/registry.h"

enum { WORKERS = 4, EACH = 400, ROUNDS = 20 };

static struct process process;
static struct registry registries[WORKERS];
static struct database *databases[WORKERS][EACH];
static struct pool pools[WORKERS][EACH];
static unsigned mistakes; /* of all threads */

static struct database *new_database(struct registry *home, const char *name)
{
	struct database *database = calloc(1, sizeof(*database) + strlen(name) + 1);

	assert_non_null(database);
	strcpy(database->name, name);
	database->registry = home;
	return database;
}

static int set_up(void **state)
{
	struct random random;
	char name[32];

	(void)state;
	process = (struct process){.workers = WORKERS};
	random_init(&random);
	assert_true(directory_init(&process.directory, &random));
	lock_share(&process.directory.lock);
	/* Threads run: each worker sees its own databases only. */
	process.crew.running = true;
	for (unsigned i = 0; i < WORKERS; i++) {
		registries[i] = (struct registry){.process = &process, .number = i};
		process.registries[i] = &registries[i];
		for (unsigned j = 0; j < EACH; j++) {
			snprintf(name, sizeof(name), "db%u_%u", i, j);
			databases[i][j] = new_database(&registries[i], name);
		}
	}
	mistakes = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	directory_free(&process.directory);
	for (unsigned i = 0; i < WORKERS; i++) {
		for (unsigned j = 0; j < EACH; j++)
			free(databases[i][j]);
	}
	return 0;
}

static void expect(bool holds)
{
	if (!holds)
		SHARED_ADD(mistakes, 1);
}

/* One worker: makes its databases and pools, finds them, and forgets them. */
static void *work(void *argument)
{
	const struct registry *own = argument;
	struct directory *directory = &process.directory;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned j = 0; j < EACH; j++) {
			expect(directory_add(directory, databases[own->number][j]));
			directory_add_pool(directory, &pools[own->number][j]);
		}
		for (unsigned j = 0; j < EACH; j++) {
			struct database *database = databases[own->number][j];

			expect(directory_find(own, database->name) == database);
			expect(directory_home_of(&process, database->name) == own);
		}
		for (unsigned j = 0; j < EACH; j++) {
			directory_remove(directory, databases[own->number][j]);
			directory_remove_pool(directory, &pools[own->number][j]);
		}
	}
	return NULL;
}

static void test_workers_use_it_at_the_same_time(void **state)
{
	pthread_t threads[WORKERS];

	(void)state;
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &registries[i]), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(mistakes, 0);
	assert_int_equal(directory_count_databases(&process.directory), 0);
	assert_int_equal(process.directory.pool_count, 0);
	assert_true(TAILQ_EMPTY(&process.directory.pools));
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(registries[i].database_count, 0);
}

static void test_a_worker_finds_its_own_databases_only(void **state)
{
	struct directory *directory = &process.directory;
	struct database *database = databases[1][0];

	(void)state;
	assert_true(directory_add(directory, database));
	assert_ptr_equal(directory_find(&registries[1], database->name), database);
	assert_null(directory_find(&registries[2], database->name));
	/* The first worker, unless the others stand still. */
	assert_null(directory_find(&registries[0], database->name));
	process.crew.still = true;
	assert_ptr_equal(directory_find(&registries[0], database->name), database);
	process.crew.still = false;
	assert_ptr_equal(directory_home_of(&process, database->name), &registries[1]);
	assert_ptr_equal(directory_home_of(&process, "pgusher"), &registries[0]);
	directory_remove(directory, database);
	assert_null(directory_find(&registries[1], database->name));
}

/* A RELOAD has made the database at its home, while a client of an automatic one logged in elsewhere. */
static void test_a_name_has_one_database(void **state)
{
	struct directory *directory = &process.directory;
	struct database *second = new_database(&registries[2], databases[1][0]->name);

	(void)state;
	assert_true(directory_add(directory, databases[1][0]));
	assert_false(directory_add(directory, second));
	assert_int_equal(registries[2].database_count, 0);
	assert_ptr_equal(directory_home_of(&process, second->name), &registries[1]);
	directory_remove(directory, databases[1][0]);
	assert_true(directory_add(directory, second));
	directory_remove(directory, second);
	free(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_workers_use_it_at_the_same_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_worker_finds_its_own_databases_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_name_has_one_database, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
