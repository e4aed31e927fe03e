/* SPDX-License-Identifier: ISC */
/* Reports of servers: complete, with missing fields, malformed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/report.h"

/* Parse a copy of exactly that size, so that sanitizers detect a read past its end. */
static bool parse(const char *bytes, size_t length, struct report *out, uint8_t **copy)
{
	*copy = malloc(length > 0 ? length : 1);
	assert_non_null(*copy);
	memcpy(*copy, bytes, length);
	return report_parse(*copy, length, out);
}

#define PARSE(bytes, out, copy) parse(bytes, sizeof(bytes) - 1, out, copy)

static void test_fields_are_found_in_any_order(void **state)
{
	struct report report;
	uint8_t *copy;

	(void)state;
	assert_true(PARSE("RProcessStartupPacket\0VFATAL\0C28000\0Mno such role\0SFATAL\0\0",
		&report, &copy));
	assert_string_equal(report.severity, "FATAL");
	assert_string_equal(report.sqlstate, "28000");
	assert_string_equal(report.text, "no such role");
	assert_string_equal(report.routine, "ProcessStartupPacket");
	free(copy);
}

static void test_every_field_may_be_missing(void **state)
{
	struct report report;
	uint8_t *copy;

	(void)state;
	assert_true(PARSE("\0", &report, &copy));
	assert_null(report.severity);
	assert_null(report.sqlstate);
	assert_null(report.text);
	assert_null(report.routine);
	free(copy);
}

static void test_an_incomplete_report_is_malformed(void **state)
{
	const char whole[] = "SERROR\0C42601\0Mbad\0";
	struct report report;
	uint8_t *copy;
	size_t length;

	(void)state;
	for (length = 0; length < sizeof(whole) - 1; length++) {
		assert_false(parse(whole, length, &report, &copy));
		free(copy);
	}
	assert_true(parse(whole, sizeof(whole), &report, &copy));
	free(copy);
}

static void test_fields_before_a_fault_are_kept(void **state)
{
	struct report report;
	uint8_t *copy;

	(void)state;
	assert_false(PARSE("C57P03\0Mstarting", &report, &copy));
	assert_string_equal(report.sqlstate, "57P03");
	assert_null(report.text);
	free(copy);
}

static void test_bytes_after_a_report_are_malformed(void **state)
{
	struct report report;
	uint8_t *copy;

	(void)state;
	assert_false(PARSE("Mx\0\0y", &report, &copy));
	free(copy);
}

static bool parse_parameter(const char *bytes, size_t length)
{
	const char *name = NULL, *value = NULL;
	const bool good = report_parse_parameter((const uint8_t *)bytes, length, &name, &value);

	assert_int_equal(good, name != NULL && value != NULL);
	return good;
}

static void test_a_parameter_status_is_exactly_two_texts(void **state)
{
	const char *name, *value;

	(void)state;
	assert_true(
		report_parse_parameter((const uint8_t *)"TimeZone\0UTC", 13, &name, &value));
	assert_string_equal(name, "TimeZone");
	assert_string_equal(value, "UTC");
	assert_true(parse_parameter("a\0\0", 3));
	assert_false(parse_parameter("", 0));
	assert_false(parse_parameter("a", 1));
	assert_false(parse_parameter("a\0", 2));
	assert_false(parse_parameter("a\0b", 3));
	assert_false(parse_parameter("a\0b\0c", 5));
	assert_false(parse_parameter("a\0b\0\0", 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_are_found_in_any_order),
		cmocka_unit_test(test_every_field_may_be_missing),
		cmocka_unit_test(test_an_incomplete_report_is_malformed),
		cmocka_unit_test(test_fields_before_a_fault_are_kept),
		cmocka_unit_test(test_bytes_after_a_report_are_malformed),
		cmocka_unit_test(test_a_parameter_status_is_exactly_two_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
