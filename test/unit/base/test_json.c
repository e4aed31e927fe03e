/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static struct buffer out;

static struct json begin(void)
{
	buffer_clear(&out);
	return (struct json){.out = &out};
}

static void expect(const char *text)
{
	assert_int_equal(out.length, strlen(text));
	assert_memory_equal(out.data, text, out.length);
}

static void test_members_and_elements_are_separated(void **state)
{
	struct json json = begin();

	(void)state;
	json_open_object(&json, NULL);
	json_integer(&json, "a", -9223372036854775807 - 1);
	json_open_array(&json, "b");
	json_null(&json, NULL);
	json_boolean(&json, NULL, true);
	json_open_object(&json, NULL);
	json_close_object(&json);
	json_close_array(&json);
	json_text(&json, "c", NULL);
	json_close_object(&json);
	expect("{\"a\":-9223372036854775808,\"b\":[null,true,{}],\"c\":null}");
}

static void test_strings_hold_nothing_but_text(void **state)
{
	struct json json = begin();

	(void)state;
	json_text(&json, NULL, "<script>&\"\\\n\x01\x7f");
	expect("\"\\u003cscript\\u003e\\u0026\\\"\\\\\\n\\u0001\\u007f\"");
}

static void test_bytes_that_are_no_utf_8_are_replaced(void **state)
{
	struct json json = begin();

	(void)state;
	json_bytes(&json, NULL, "\xc3\xa4\xff\xe2\x82", 5);
	expect("\"\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	json = begin();
	json_bytes(&json, NULL, "a\0b", 3);
	expect("\"a\\u0000b\"");
}

static void test_times_have_decimals(void **state)
{
	struct json json = begin();

	(void)state;
	json_open_array(&json, NULL);
	json_seconds(&json, NULL, 1000001);
	json_milliseconds(&json, NULL, 1005);
	json_seconds(&json, NULL, -1);
	json_seconds(&json, NULL, 0);
	json_seconds(&json, NULL, 12000000);
	json_fraction(&json, NULL, -105, 1);
	json_fraction(&json, NULL, -9223372036854775807 - 1, 6);
	json_close_array(&json);
	expect("[1.000001,1.005,-0.000001,0,12,-10.5,-9223372036854.775808]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members_and_elements_are_separated),
		cmocka_unit_test(test_strings_hold_nothing_but_text),
		cmocka_unit_test(test_bytes_that_are_no_utf_8_are_replaced),
		cmocka_unit_test(test_times_have_decimals),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	buffer_free(&out);
	return failed;
}
