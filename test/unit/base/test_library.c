/* SPDX-License-Identifier: ISC */
/* Libraries loaded at run time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/library.h"

/* A library that exists on every system, with functions that have no side effect here. */
#define PRESENT "libc.so.6"

struct functions {
	size_t (*length)(const char *text);
	int (*absolute)(int number);
};

static const struct library_symbol good[] = {
	{"strlen", offsetof(struct functions, length)},
	{"abs", offsetof(struct functions, absolute)},
};

static void test_functions_of_a_library_are_found(void **state)
{
	struct functions functions = {0};
	char why[200] = "";

	(void)state;
	assert_true(library_load(PRESENT, good, 2, &functions, why, sizeof(why)));
	assert_int_equal(functions.length("four"), 4);
	assert_int_equal(functions.absolute(-5), 5);
	assert_string_equal(why, "");
}

static void test_a_missing_library_or_symbol_is_named_and_the_table_unchanged(void **state)
{
	const struct library_symbol bad[] = {good[0], {"missing_symbol", good[1].offset}};
	struct functions functions = {0};
	char why[200] = "";

	(void)state;
	assert_false(library_load("libmissing.so.9", good, 2, &functions, why, sizeof(why)));
	assert_non_null(strstr(why, "libmissing.so.9"));
	assert_false(library_load(PRESENT, bad, 2, &functions, why, sizeof(why)));
	assert_non_null(strstr(why, "missing_symbol"));
	assert_null(functions.length);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_of_a_library_are_found),
		cmocka_unit_test(
			test_a_missing_library_or_symbol_is_named_and_the_table_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
