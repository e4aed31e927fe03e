/* SPDX-License-Identifier: ISC */
/* Names of services: dns:NAME and dns:NAME:PORT. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/service_name.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_name_and_port_are_read(void **state)
{
	struct service_name name;

	(void)state;
	assert_true(service_name_read("dns:pods.default.svc", &name));
	assert_string_equal(name.host, "pods.default.svc");
	assert_int_equal(name.port, 0);
	assert_true(service_name_read("dns:a-b_C9:65535", &name));
	assert_string_equal(name.host, "a-b_C9");
	assert_int_equal(name.port, 65535);
}

static void test_other_forms_are_refused(void **state)
{
	static const char *const texts[] = {"", "dns", "dns:", "dns::1", "DNS:a", "a",
		"dns:a b", "dns:a:", "dns:a:0", "dns:a:65536", "dns:a:-1", "dns:a:1x",
		"dns:a:1:2", "dns:a/b", "dns:[::1]"};
	struct service_name name;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_false(service_name_read(texts[i], &name));
}

static void test_name_has_a_length_limit(void **state)
{
	char text[RESOLVER_NAME_MAX + 6] = "dns:";
	struct service_name name;

	(void)state;
	memset(text + 4, 'a', RESOLVER_NAME_MAX);
	text[4 + RESOLVER_NAME_MAX] = '\0';
	assert_true(service_name_read(text, &name));
	assert_int_equal(strlen(name.host), RESOLVER_NAME_MAX);
	text[4 + RESOLVER_NAME_MAX] = 'a';
	text[5 + RESOLVER_NAME_MAX] = '\0';
	assert_false(service_name_read(text, &name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name_and_port_are_read),
		cmocka_unit_test(test_other_forms_are_refused),
		cmocka_unit_test(test_name_has_a_length_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
