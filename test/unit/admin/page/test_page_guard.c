/* SPDX-License-Identifier: ISC */
/* Which Host and Authorization headers are good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admin/page/page_guard.h"

static void test_addresses_localhost_and_the_machine_are_safe(void **state)
{
	static const char *const good[] = {"127.0.0.1", "10.0.0.1:9127", "[::1]",
		"[fd00::1]:80", "localhost", "LOCALHOST:9127", "box-7", "Box-7:9127"};
	static const char *const bad[] = {"", ":9127", "[", "[]", "[box]", "evil.example",
		"evil.example:80", "127.0.0.1.evil.example", "box-7.evil.example", "box-77",
		"localhost.", "1", "0x7f000001", "127.1", "[127.0.0.1.evil]"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(page_guard_host_is_safe(good[i], "box-7"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(page_guard_host_is_safe(bad[i], "box-7"));
}

static void test_a_machine_without_a_name_has_none_to_match(void **state)
{
	(void)state;
	assert_false(page_guard_host_is_safe("", ""));
	assert_false(page_guard_host_is_safe(":9127", ""));
}

static void test_a_long_name_is_refused(void **state)
{
	char name[4000];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_false(page_guard_host_is_safe(name, "box-7"));
}

static void test_the_password_stands_behind_the_first_colon(void **state)
{
	(void)state;
	/* a:sesame, :sesame, a:b:c, a:, sesame */
	assert_true(page_guard_password_is("Basic YTpzZXNhbWU=", "sesame"));
	assert_true(page_guard_password_is("basic   OnNlc2FtZQ==", "sesame"));
	assert_true(page_guard_password_is("Basic YTpiOmM=", "b:c"));
	assert_false(page_guard_password_is("Basic YTpiOmM=", "c"));
	assert_true(page_guard_password_is("Basic YTo=", ""));
	assert_false(page_guard_password_is("Basic c2VzYW1l", "sesame"));
}

static void test_malformed_headers_have_no_password(void **state)
{
	static const char *const bad[] = {"", "Basic", "Basic ", "Basic =", "Basic YTpzZXNhbWU",
		"Basic YTpzZXNhbWU=x", "Basic YTpz ZXNhbWU=", "Bearer YTpzZXNhbWU=",
		"BasicYTpzZXNhbWU=", "Basic \xff\xff\xff\xff"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(page_guard_password_is(bad[i], "sesame"));
}

/* "a:sesame" with a NUL in it, or behind it. */
static void test_a_nul_belongs_to_the_password(void **state)
{
	(void)state;
	assert_false(page_guard_password_is("Basic YTpzZXNhbWUA", "sesame"));
	assert_false(page_guard_password_is("Basic YTpzZXMAYW1l", "ses"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses_localhost_and_the_machine_are_safe),
		cmocka_unit_test(test_a_machine_without_a_name_has_none_to_match),
		cmocka_unit_test(test_a_long_name_is_refused),
		cmocka_unit_test(test_the_password_stands_behind_the_first_colon),
		cmocka_unit_test(test_malformed_headers_have_no_password),
		cmocka_unit_test(test_a_nul_belongs_to_the_password),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
