/* SPDX-License-Identifier: ISC */
/* Libraries that are loaded while the program runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/library.h"

/* Of a library that is there wherever a program can run, and in which nothing happens. */
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

static void test_what_is_missing_is_named_and_nothing_is_changed(void **state)
{
	const struct library_symbol bad[] = {good[0], {"nobody_has_this", good[1].offset}};
	struct functions functions = {0};
	char why[200] = "";

	(void)state;
	assert_false(library_load("libnobodyhas.so.9", good, 2, &functions, why, sizeof(why)));
	assert_non_null(strstr(why, "libnobodyhas.so.9"));
	assert_false(library_load(PRESENT, bad, 2, &functions, why, sizeof(why)));
	assert_non_null(strstr(why, "nobody_has_this"));
	assert_null(functions.length);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_of_a_library_are_found),
		cmocka_unit_test(test_what_is_missing_is_named_and_nothing_is_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
