/* SPDX-License-Identifier: ISC */
/* Handles find existing objects only, however often slots are reused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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
	return 0;
}

static int end(void **state)
{
	(void)state;
	handles_clear(&handles);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_handle_finds_its_object),
		TEST(test_a_handle_taken_back_finds_nothing_though_its_slot_is_reused),
		TEST(test_slots_are_reused_so_that_the_table_does_not_grow),
		TEST(test_a_cleared_table_finds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
