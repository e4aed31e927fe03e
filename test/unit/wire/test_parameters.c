/* SPDX-License-Identifier: ISC */
/* Sets that are shared, overlaid, compared; the SQL that follows from a difference. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/parameters.h"

static struct parameter_table *table_of(void **state)
{
	return *state;
}

static int make_table(void **state)
{
	*state = parameter_table_new("IntervalStyle, search_path");
	return *state != NULL ? 0 : -1;
}

/* Also checks that every set was given back. */
static int drop_table(void **state)
{
	parameter_table_free(*state);
	return 0;
}

/* A set from name, value, ..., NULL. */
static struct parameters *set_of(struct parameter_table *table, ...)
{
	struct parameters *set = parameters_empty(table);
	const char *name;
	va_list pairs;

	va_start(pairs, table);
	while ((name = va_arg(pairs, const char *)) != NULL) {
		const int index = parameter_index(table, name);
		struct parameters *next;

		assert_true(index >= 0);
		next = parameters_with(
			table, set, (unsigned)index, va_arg(pairs, const char *));
		assert_non_null(next);
		parameters_unref(set);
		set = next;
	}
	va_end(pairs);
	return set;
}

static const char *get(
	struct parameter_table *table, const struct parameters *set, const char *name)
{
	return parameters_get(set, (unsigned)parameter_index(table, name));
}

/* What the server is told. Takes both sets from the caller. */
static void assert_difference(
	struct parameters *client, struct parameters *server, int count, const char *sql)
{
	struct buffer buffer = {0};

	buffer_append(&buffer, ">", 1);
	assert_int_equal(parameters_difference(client, server, &buffer), count);
	assert_int_equal(buffer.length, 1 + strlen(sql));
	assert_memory_equal(buffer.data + 1, sql, strlen(sql));
	buffer_free(&buffer);
	parameters_unref(client);
	parameters_unref(server);
}

static void test_the_table_has_its_names_in_order(void **state)
{
	const char *const names[] = {"DateStyle", "client_encoding", "TimeZone",
		"standard_conforming_strings", "application_name", "IntervalStyle",
		"search_path"};
	struct parameter_table *table = table_of(state);
	unsigned i;

	assert_int_equal(parameter_count(table), 7);
	for (i = 0; i < 7; i++)
		assert_string_equal(parameter_name(table, i), names[i]);
}

static void test_names_are_found_in_any_letter_case(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_int_equal(parameter_index(table, "datestyle"), 0);
	assert_int_equal(parameter_index(table, "TIMEZONE"), 2);
	assert_int_equal(parameter_index(table, "TimeZon"), -1);
	assert_int_equal(parameter_index(table, "TimeZones"), -1);
	assert_int_equal(parameter_index(table, ""), -1);
}

static void test_names_are_tracked_once(void **state)
{
	struct parameter_table *table = parameter_table_new("timezone search_path,Search_Path");

	(void)state;
	assert_non_null(table);
	assert_int_equal(parameter_count(table), 6);
	assert_string_equal(parameter_name(table, 2), "TimeZone");
	parameter_table_free(table);
	table = parameter_table_new(NULL);
	assert_non_null(table);
	assert_int_equal(parameter_count(table), 5);
	parameter_table_free(table);
}

static void test_impossible_names_are_refused(void **state)
{
	char many[PARAMETERS_MAX * 8] = "";
	char too_long[65];
	unsigned i;

	(void)state;
	assert_null(parameter_table_new("a='b"));
	assert_int_equal(errno, EINVAL);
	assert_null(parameter_table_new("1st"));
	assert_int_equal(errno, EINVAL);
	memset(too_long, 'x', 64);
	too_long[64] = '\0';
	assert_null(parameter_table_new(too_long));
	assert_int_equal(errno, EINVAL);
	for (i = 5; i < PARAMETERS_MAX; i++)
		sprintf(many + strlen(many), "my.n%u ", i);
	parameter_table_free(parameter_table_new(many));
	strcat(many, "other");
	assert_null(parameter_table_new(many));
	assert_int_equal(errno, E2BIG);
}

static void test_nothing_is_known_in_the_empty_set(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *set = parameters_empty(table);
	unsigned i;

	for (i = 0; i < parameter_count(table); i++)
		assert_null(parameters_get(set, i));
	parameters_unref(set);
}

static void test_a_set_with_a_value_leaves_the_other_alone(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *a = set_of(table, "TimeZone", "UTC", "application_name", "", NULL);
	struct parameters *b = parameters_with(table, a, 2, "Europe/Berlin");

	assert_string_equal(get(table, a, "TimeZone"), "UTC");
	assert_string_equal(get(table, b, "TimeZone"), "Europe/Berlin");
	assert_string_equal(get(table, b, "application_name"), "");
	assert_null(get(table, b, "DateStyle"));
	parameters_unref(a);
	assert_string_equal(get(table, b, "TimeZone"), "Europe/Berlin");
	parameters_unref(b);
}

static void test_same_content_is_the_same_set(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *a = set_of(table, "TimeZone", "UTC", "DateStyle", "ISO, MDY", NULL);
	struct parameters *b = set_of(table, "DateStyle", "ISO, MDY", "TimeZone", "UTC", NULL);
	struct parameters *c = set_of(table, "DateStyle", "ISO, MDY", "TimeZone", "utc", NULL);
	struct parameters *back = parameters_with(table, c, 2, "UTC");
	struct parameters *less = parameters_with(table, a, 0, NULL);
	struct parameters *only = set_of(table, "TimeZone", "UTC", NULL);

	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_ptr_equal(a, back);
	assert_ptr_equal(less, only);
	parameters_unref(a);
	parameters_unref(b);
	parameters_unref(c);
	parameters_unref(back);
	parameters_unref(less);
	parameters_unref(only);
}

static void test_large_sets_of_the_same_content_are_one_too(void **state)
{
	struct parameter_table *table = table_of(state);
	char value[2000];
	struct parameters *a, *b;

	for (size_t length = 300; length < sizeof(value); length += 100) {
		memset(value, 'x', length);
		value[length] = '\0';
		a = set_of(table, "TimeZone", value, NULL);
		b = set_of(table, "TimeZone", value, NULL);
		assert_ptr_equal(a, b);
		assert_string_equal(get(table, b, "TimeZone"), value);
		parameters_unref(a);
		parameters_unref(b);
	}
}

static void test_an_unknown_value_is_not_an_empty_one(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *empty = parameters_empty(table);
	struct parameters *set = set_of(table, "application_name", "", NULL);

	assert_ptr_not_equal(empty, set);
	parameters_unref(empty);
	parameters_unref(set);
}

static void test_many_sets_live_side_by_side(void **state)
{
	enum { MANY = 2000 };
	struct parameter_table *table = table_of(state);
	struct parameters *sets[MANY], *again;
	char name[32];
	int i;

	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "application %d", i * 7919 % MANY);
		sets[i] = set_of(table, "application_name", name, NULL);
	}
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "application %d", i * 7919 % MANY);
		assert_string_equal(get(table, sets[i], "application_name"), name);
		again = set_of(table, "application_name", name, NULL);
		assert_ptr_equal(again, sets[i]);
		parameters_unref(again);
		parameters_unref(sets[i]);
	}
}

static void test_a_set_has_a_largest_size(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *empty = parameters_empty(table), *set;
	char *value = malloc(PARAMETERS_SIZE_MAX + 1);

	assert_non_null(value);
	memset(value, 'x', PARAMETERS_SIZE_MAX);
	value[PARAMETERS_SIZE_MAX] = '\0';
	assert_null(parameters_with(table, empty, 0, value));
	value[PARAMETERS_SIZE_MAX - parameter_count(table)] = '\0';
	assert_null(parameters_with(table, empty, 0, value));
	value[PARAMETERS_SIZE_MAX - parameter_count(table) - 1] = '\0';
	set = parameters_with(table, empty, 0, value);
	assert_non_null(set);
	assert_string_equal(parameters_get(set, 0), value);
	assert_null(parameters_with(table, set, 1, ""));
	parameters_unref(set);
	parameters_unref(empty);
	free(value);
}

static void test_the_same_set_needs_no_sql(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *set = set_of(table, "TimeZone", "UTC", NULL);

	assert_difference(parameters_ref(set), parameters_ref(set), 0, "");
	parameters_unref(set);
}

static void test_only_what_both_sides_know_is_set(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(set_of(table, "TimeZone", "UTC", "IntervalStyle", "iso_8601", NULL),
		set_of(table, "DateStyle", "ISO", "IntervalStyle", "postgres", NULL), 1,
		"SET IntervalStyle='iso_8601';");
	assert_difference(
		set_of(table, "search_path", "a", NULL), parameters_empty(table), 0, "");
	assert_difference(
		parameters_empty(table), set_of(table, "search_path", "a", NULL), 0, "");
}

static void test_letter_case_is_no_difference(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(set_of(table, "client_encoding", "utf8", NULL),
		set_of(table, "client_encoding", "UTF8", NULL), 0, "");
	assert_difference(set_of(table, "client_encoding", "utf-8", NULL),
		set_of(table, "client_encoding", "UTF8", NULL), 1,
		"SET client_encoding='utf-8';");
}

static void test_changes_come_in_the_order_of_the_table(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(set_of(table, "application_name", "", "search_path", "s", "DateStyle",
				  "German", NULL),
		set_of(table, "application_name", "x", "search_path", "t", "DateStyle", "ISO",
			NULL),
		3, "SET DateStyle='German';SET application_name='';SET search_path=s;");
}

static void test_values_are_quoted(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(set_of(table, "application_name", "it's \\ me", NULL),
		set_of(table, "application_name", "", NULL), 1,
		"SET application_name=E'it''s \\\\ me';");
	assert_difference(set_of(table, "search_path", "\"\"", NULL),
		set_of(table, "search_path", "\"$user\", public", NULL), 1,
		"SET search_path='';");
	assert_difference(set_of(table, "search_path", "\"$user\",PUBLIC", NULL),
		set_of(table, "search_path", "x", NULL), 1,
		"SET search_path=\"$user\", public;");
}

static void test_long_values_are_set_too(void **state)
{
	struct parameter_table *table = table_of(state);
	char value[1001], sql[1100];

	memset(value, 'a', 1000);
	value[1000] = '\0';
	snprintf(sql, sizeof(sql), "SET application_name='%s';", value);
	assert_difference(set_of(table, "application_name", value, NULL),
		set_of(table, "application_name", "psql", NULL), 1, sql);
}

static void test_a_search_path_that_is_no_list_is_refused(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(
		set_of(table, "TimeZone", "UTC", "search_path", "a; DROP TABLE b", NULL),
		set_of(table, "TimeZone", "GMT", "search_path", "a", NULL), -1, "");
}

static void test_lack_of_memory_refuses_too(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *client = set_of(table, "TimeZone", "UTC", NULL);
	struct parameters *server = set_of(table, "TimeZone", "GMT", NULL);
	struct buffer buffer = {.failed = true};

	assert_int_equal(parameters_difference(client, server, &buffer), -1);
	buffer_free(&buffer);
	parameters_unref(client);
	parameters_unref(server);
}

static void test_sets_of_two_equal_tables_can_be_compared(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameter_table *other = parameter_table_new("IntervalStyle, search_path");

	assert_difference(set_of(table, "TimeZone", "UTC", NULL),
		set_of(other, "TimeZone", "GMT", NULL), 1, "SET TimeZone='UTC';");
	assert_difference(set_of(table, "TimeZone", "UTC", NULL),
		set_of(other, "TimeZone", "UTC", NULL), 0, "");
	parameter_table_free(other);
}

static void test_after_adopting_nothing_differs(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *client =
		set_of(table, "client_encoding", "utf-8", "search_path", "s", NULL);
	struct parameters *server =
		set_of(table, "client_encoding", "UTF8", "TimeZone", "UTC", NULL);
	struct parameters *adopted = parameters_adopt(table, client, server);

	assert_string_equal(get(table, adopted, "client_encoding"), "UTF8");
	assert_string_equal(get(table, adopted, "TimeZone"), "UTC");
	assert_string_equal(get(table, adopted, "search_path"), "s");
	parameters_unref(client);
	assert_difference(adopted, server, 0, "");
}

static void test_a_client_that_knows_no_more_adopts_the_servers_own_set(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *client = set_of(table, "TimeZone", "utc", NULL);
	struct parameters *server = set_of(table, "TimeZone", "UTC", "DateStyle", "ISO", NULL);
	struct parameters *adopted = parameters_adopt(table, client, server);

	assert_ptr_equal(adopted, server);
	parameters_unref(client);
	parameters_unref(server);
	parameters_unref(adopted);
}

static void test_a_welcome_is_overlaid_by_wishes(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *pool =
		set_of(table, "TimeZone", "UTC", "application_name", "p", NULL);
	struct parameters *wishes =
		set_of(table, "application_name", "", "DateStyle", "German", NULL);
	struct parameters *welcome = parameters_overlay(table, pool, wishes);

	assert_string_equal(get(table, welcome, "TimeZone"), "UTC");
	assert_string_equal(get(table, welcome, "application_name"), "");
	assert_string_equal(get(table, welcome, "DateStyle"), "German");
	parameters_unref(pool);
	parameters_unref(wishes);
	parameters_unref(welcome);
}

static void test_known_values_are_reported_in_order(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *set = set_of(table, "TimeZone", "UTC", "DateStyle", "ISO", NULL);
	struct buffer buffer = {0};

	parameters_report(set, &buffer);
	assert_memory_equal(buffer.data, "S\0\0\0\22DateStyle\0ISO\0", 19);
	assert_memory_equal(buffer.data + 19, "S\0\0\0\21TimeZone\0UTC\0", 18);
	assert_int_equal(buffer.length, 37);
	buffer_free(&buffer);
	parameters_unref(set);
}

#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, make_table, drop_table)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TABLE(test_the_table_has_its_names_in_order),
		WITH_TABLE(test_names_are_found_in_any_letter_case),
		cmocka_unit_test(test_names_are_tracked_once),
		cmocka_unit_test(test_impossible_names_are_refused),
		WITH_TABLE(test_nothing_is_known_in_the_empty_set),
		WITH_TABLE(test_a_set_with_a_value_leaves_the_other_alone),
		WITH_TABLE(test_same_content_is_the_same_set),
		WITH_TABLE(test_large_sets_of_the_same_content_are_one_too),
		WITH_TABLE(test_an_unknown_value_is_not_an_empty_one),
		WITH_TABLE(test_many_sets_live_side_by_side),
		WITH_TABLE(test_a_set_has_a_largest_size),
		WITH_TABLE(test_the_same_set_needs_no_sql),
		WITH_TABLE(test_only_what_both_sides_know_is_set),
		WITH_TABLE(test_letter_case_is_no_difference),
		WITH_TABLE(test_changes_come_in_the_order_of_the_table),
		WITH_TABLE(test_values_are_quoted),
		WITH_TABLE(test_long_values_are_set_too),
		WITH_TABLE(test_a_search_path_that_is_no_list_is_refused),
		WITH_TABLE(test_lack_of_memory_refuses_too),
		WITH_TABLE(test_sets_of_two_equal_tables_can_be_compared),
		WITH_TABLE(test_after_adopting_nothing_differs),
		WITH_TABLE(test_a_client_that_knows_no_more_adopts_the_servers_own_set),
		WITH_TABLE(test_a_welcome_is_overlaid_by_wishes),
		WITH_TABLE(test_known_values_are_reported_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
