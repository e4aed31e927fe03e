/* SPDX-License-Identifier: ISC */
/* Handles find what lives and nothing else, however often slots are used again. */
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

static void test_a_handle_finds_its_thing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		give(&things[i]);
	for (unsigned i = 0; i < MANY; i++) {
		assert_ptr_equal(handles_find(&handles, things[i].handle), &things[i]);
		assert_true(give(&things[i]) == things[i].handle); /* it has one */
	}
	assert_int_equal(handles.count, MANY);
	assert_null(handles_find(&handles, 0));
}

static void test_what_has_gone_is_not_found_though_its_slot_is_used_again(void **state)
{
	uint64_t old;

	(void)state;
	old = give(&things[0]);
	take_back(&things[0]);
	assert_null(handles_find(&handles, old));
	take_back(&things[0]); /* nothing is left to take */
	give(&things[1]);
	assert_int_equal(handles.count, 1);
	assert_null(handles_find(&handles, old));
	take_back(&things[0]);
	assert_ptr_equal(handles_find(&handles, things[1].handle), &things[1]);
}

static void test_slots_of_those_who_come_and_go_do_not_grow(void **state)
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

/* What they keep is of a table that is no more, and may look like one of this. */
static void test_a_table_that_was_cleared_knows_nobody(void **state)
{
	uint64_t old;

	(void)state;
	old = give(&things[0]);
	handles_clear(&handles);
	assert_null(handles_find(&handles, old));
	assert_true(give(&things[1]) != old);
	take_back(&things[0]);
	handles.serial = (uint32_t)(old >> 32) - 1; /* after four billion of them */
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
		TEST(test_a_handle_finds_its_thing),
		TEST(test_what_has_gone_is_not_found_though_its_slot_is_used_again),
		TEST(test_slots_of_those_who_come_and_go_do_not_grow),
		TEST(test_a_table_that_was_cleared_knows_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
