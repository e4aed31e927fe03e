/* SPDX-License-Identifier: ISC */
/* The startup parameters that servers have accepted: look-up, and limits of number and size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/checked_parameters.h"

static struct parameter_table *table;
static struct checked_parameters checked;

static int set_up(void **state)
{
	(void)state;
	table = parameter_table_new(NULL);
	checked = (struct checked_parameters){0};
	return table ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	checked_parameters_clear(&checked);
	parameter_table_free(table);
	return 0;
}

/* Make a set with a value of `length` characters that begins with the number. */
static struct parameters *make(unsigned number, unsigned length)
{
	struct parameters *none = parameters_empty(table), *set;
	char *value = malloc(length + 1);

	assert_non_null(value);
	memset(value, 'x', length);
	value[length] = '\0';
	snprintf(value, length, "%08u", number);
	value[8] = ' ';
	set = parameters_with(table, none, 0, value);
	assert_non_null(set);
	parameters_unref(none);
	free(value);
	return set;
}

static void add(unsigned number, unsigned length)
{
	struct parameters *asked = make(number, length);

	checked_parameters_add(&checked, asked, asked);
	parameters_unref(asked);
}

static bool has(unsigned number, unsigned length)
{
	struct parameters *asked = make(number, length);
	const bool found = checked_parameters_find(&checked, asked) == asked;

	parameters_unref(asked);
	return found;
}

static void test_values_of_the_server_are_found_by_those_of_the_client(void **state)
{
	struct parameters *asked = make(1, 20), *spelt = make(2, 20);

	(void)state;
	assert_null(checked_parameters_find(&checked, asked));
	checked_parameters_add(&checked, asked, spelt);
	assert_ptr_equal(checked_parameters_find(&checked, asked), spelt);
	assert_null(checked_parameters_find(&checked, spelt));
	parameters_unref(asked);
	parameters_unref(spelt);
}

static void test_of_too_many_sets_the_oldest_are_dropped(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CHECKED_PARAMETERS_MAX + 10; i++)
		add(i, 20);
	assert_int_equal(checked.count, CHECKED_PARAMETERS_MAX);
	assert_false(has(9, 20));
	assert_true(has(10, 20));
	assert_true(has(CHECKED_PARAMETERS_MAX + 9, 20));
}

static void test_fewer_large_sets_are_kept(void **state)
{
	enum { LARGE = 60 * 1024 };

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		add(i, LARGE);
		assert_true(checked.bytes <= CHECKED_PARAMETERS_BYTES_MAX);
		assert_true(has(i, LARGE));
	}
	assert_true(checked.count < CHECKED_PARAMETERS_BYTES_MAX / LARGE + 1);
	assert_true(has(98, LARGE));
	assert_false(has(90, LARGE));
	add(100, 20);
	assert_true(has(100, 20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_values_of_the_server_are_found_by_those_of_the_client, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_of_too_many_sets_the_oldest_are_dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_fewer_large_sets_are_kept, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
