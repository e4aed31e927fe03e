/* SPDX-License-Identifier: ISC */
/* Handles find existing objects only, however often slots are reused. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/handles.h"

enum { MANY = 1000 };

struct thing {
	uint64_t handle;
};

static struct handles handles;
static struct thing things[MANY];

static int start(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		things[i].handle = 0;
	handles_init(&handles);
	return 0;
}

static int end(void **state)
{
	(void)state;
	handles_free(&handles);
	return 0;
}

static uint64_t give(struct thing *thing)
{
	const uint64_t handle = handles_give(&handles, &thing->handle, thing);

	assert_true(handle != 0 && handle == thing->handle);
	return handle;
}

static void take_back(struct thing *thing)
{
	handles_take_back(&handles, &thing->handle, thing);
}

static void test_a_handle_finds_its_object(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		give(&things[i]);
	for (unsigned i = 0; i < MANY; i++) {
		assert_ptr_equal(handles_find(&handles, things[i].handle), &things[i]);
		assert_true(give(&things[i]) == things[i].handle); /* already has one */
	}
	assert_int_equal(handles.count, MANY);
	assert_null(handles_find(&handles, 0));
}

static void test_a_handle_taken_back_finds_nothing_though_its_slot_is_reused(void **state)
{
	uint64_t old;

	(void)state;
	old = give(&things[0]);
	take_back(&things[0]);
	assert_null(handles_find(&handles, old));
	take_back(&things[0]); /* already taken back */
	give(&things[1]);
	assert_int_equal(handles.count, 1);
	assert_null(handles_find(&handles, old));
	take_back(&things[0]);
	assert_ptr_equal(handles_find(&handles, things[1].handle), &things[1]);
}

static void test_slots_are_reused_so_that_the_table_does_not_grow(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 100; i++)
			give(&things[i]);
		for (unsigned i = 0; i < 100; i++)
			take_back(&things[i]);
	}
	assert_int_equal(handles.count, 100);
}

/*
 * After handles_clear(), handle fields of objects still hold old handles, which may equal new
 * ones.
 */
static void test_a_cleared_table_finds_nothing(void **state)
{
	uint64_t old;

	(void)state;
	old = give(&things[0]);
	handles_clear(&handles);
	assert_null(handles_find(&handles, old));
	assert_true(give(&things[1]) != old);
	take_back(&things[0]);
	handles.serial = (uint32_t)(old >> 32) - 1; /* after four billion handles */
	handles_clear(&handles);
	assert_true(give(&things[2]) == old);
	take_back(&things[0]);
	assert_ptr_equal(handles_find(&handles, old), &things[2]);
	assert_true(give(&things[0]) != old);
}

/* A thread whose objects come and go, while those of others do. */
static void *use_things(void *argument)
{
	struct thing *own = argument;

	for (unsigned round = 0; round < 2000; round++) {
		struct thing *thing = &own[round % 50];
		const uint64_t handle = handles_give(&handles, &thing->handle, thing);

		if (handle == 0 || handles_find(&handles, handle) != thing)
			return own;
		handles_take_back(&handles, &thing->handle, thing);
		if (handles_find(&handles, handle) != NULL)
			return own;
	}
	return NULL;
}

static void test_threads_may_share_the_table(void **state)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, use_things, &things[50 * i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(handles.vacancies, handles.count);
}

static void test_an_object_without_a_handle_does_not_wait_for_the_lock(void **state)
{
	(void)state;
	alarm(60);
	assert_int_equal(pthread_mutex_lock(&handles.lock), 0);
	take_back(&things[0]);
	assert_int_equal(pthread_mutex_unlock(&handles.lock), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_handle_finds_its_object),
		TEST(test_a_handle_taken_back_finds_nothing_though_its_slot_is_reused),
		TEST(test_slots_are_reused_so_that_the_table_does_not_grow),
		TEST(test_a_cleared_table_finds_nothing),
		TEST(test_threads_may_share_the_table),
		TEST(test_an_object_without_a_handle_does_not_wait_for_the_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
