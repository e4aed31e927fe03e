/* SPDX-License-Identifier: ISC */
/* Every class is found by each of its codes; everything else is XX. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/sqlstate.h"

static void test_each_class_is_found(void **state)
{
	char code[6];

	(void)state;
	for (unsigned i = 0; i < SQLSTATE_CLASSES; i++) {
		snprintf(code, sizeof(code), "%s000", sqlstate_classes[i]);
		assert_int_equal(sqlstate_class(code), i);
		if (i > 0)
			assert_true(strcmp(sqlstate_classes[i - 1], sqlstate_classes[i]) < 0);
	}
	assert_string_equal(sqlstate_classes[sqlstate_class("23505")], "23");
	assert_string_equal(sqlstate_classes[sqlstate_class("42P01")], "42");
}

static void test_unknown_classes_count_as_internal_error(void **state)
{
	static const char *const codes[] = {
		NULL, "", "2", "23", "2350", "235055", "99999", "T0000", "zz000", "XX000"};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		assert_string_equal(sqlstate_classes[sqlstate_class(codes[i])], "XX");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_class_is_found),
		cmocka_unit_test(test_unknown_classes_count_as_internal_error),
	};

	return cmocka_run_group_tests_name("sqlstate", tests, NULL, NULL);
}
