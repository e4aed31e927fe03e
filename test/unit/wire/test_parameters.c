/* SPDX-License-Identifier: ISC */
/* Sets are shared, overlaid and compared; the SQL made from a difference. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/parameter_difference.h"
#include "wire/parameter_draft.h"

static struct parameter_table *table_of(void **state)
{
	return *state;
}

static int make_table(void **state)
{
	*state = parameter_table_new("search_path, my.own");
	return *state != NULL ? 0 : -1;
}

/* Frees the table, which checks that all references were released. */
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

static const struct session_start plain_start;

/* Check the SQL made from a difference. Takes over the references to all sets. */
static void assert_difference_from(struct parameters *usual, struct parameters *client,
	struct parameters *server, int count, const char *sql)
{
	const struct session_start start = {NULL, usual};
	struct buffer buffer = {0};

	buffer_append(&buffer, ">", 1);
	assert_int_equal(parameters_difference(client, server, &start, &buffer), count);
	assert_int_equal(buffer.length, 1 + strlen(sql));
	assert_memory_equal(buffer.data + 1, sql, strlen(sql));
	buffer_free(&buffer);
	parameters_unref(usual);
	parameters_unref(client);
	parameters_unref(server);
}

/* The same when it is not known what new sessions of the server have. */
static void assert_difference(
	struct parameters *client, struct parameters *server, int count, const char *sql)
{
	assert_difference_from(NULL, client, server, count, sql);
}

static void test_the_table_has_its_names_in_order(void **state)
{
	const char *const names[] = {"DateStyle", "client_encoding", "TimeZone",
		"standard_conforming_strings", "application_name", "IntervalStyle",
		"scram_iterations", "search_path", "session_authorization", "my.own"};
	struct parameter_table *table = table_of(state);
	unsigned i;

	assert_int_equal(parameter_count(table), sizeof(names) / sizeof(*names));
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
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
	struct parameter_table *table = parameter_table_new("timezone my.own,My.Own");

	(void)state;
	assert_non_null(table);
	assert_int_equal(parameter_count(table), 10);
	assert_string_equal(parameter_name(table, 2), "TimeZone");
	parameter_table_free(table);
	table = parameter_table_new(NULL);
	assert_non_null(table);
	assert_int_equal(parameter_count(table), 9);
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
	for (i = 9; i < PARAMETERS_MAX; i++)
		sprintf(many + strlen(many), "my.n%u ", i);
	parameter_table_free(parameter_table_new(many));
	strcat(many, "other");
	assert_null(parameter_table_new(many));
	assert_int_equal(errno, E2BIG);
}

static void test_the_empty_set_has_no_values(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *set = parameters_empty(table);
	unsigned i;

	for (i = 0; i < parameter_count(table); i++)
		assert_null(parameters_get(set, i));
	parameters_unref(set);
}

static void test_adding_a_value_does_not_change_the_old_set(void **state)
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

static void test_equal_content_is_the_same_set(void **state)
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

static void test_equal_large_content_is_the_same_set_too(void **state)
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

static void test_an_unknown_value_differs_from_an_empty_one(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *empty = parameters_empty(table);
	struct parameters *set = set_of(table, "application_name", "", NULL);

	assert_ptr_not_equal(empty, set);
	parameters_unref(empty);
	parameters_unref(set);
}

static void test_many_sets_coexist(void **state)
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

static void test_the_size_of_a_set_is_limited(void **state)
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
	assert_difference(set_of(table, "search_path", "\"A\"", NULL),
		set_of(table, "search_path", "\"a\"", NULL), 1, "SET search_path=\"A\";");
}

static void test_changes_are_in_the_order_of_the_table(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(set_of(table, "application_name", "", "search_path", "s", "DateStyle",
				  "German", NULL),
		set_of(table, "application_name", "x", "search_path", "t", "DateStyle", "ISO",
			NULL),
		3, "SET DateStyle='German';SET application_name='';SET search_path=s;");
}

/* SQL cuts names to 63 bytes. */
#define LONG_NAME "a234567890123456789012345678901234567890123456789012345678901234"

static void test_values_are_quoted(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(set_of(table, "application_name", "it's \\ me", NULL),
		set_of(table, "application_name", "", NULL), 1,
		"SET application_name=E'it''s \\\\ me';");
	/* An empty list, which a startup message may ask for, is not a list of an empty name. */
	assert_difference(set_of(table, "search_path", "", NULL),
		set_of(table, "search_path", "a", NULL), 1,
		"SELECT pg_catalog.set_config('search_path','',false);");
	assert_difference(set_of(table, "search_path", "\"\"", NULL),
		set_of(table, "search_path", "\"$user\", public", NULL), 1,
		"SET search_path='';");
	assert_difference(set_of(table, "search_path", "\"$user\",PUBLIC", NULL),
		set_of(table, "search_path", "x", NULL), 1,
		"SELECT pg_catalog.set_config('search_path','\"$user\",PUBLIC',false);");
	assert_difference(set_of(table, "search_path", LONG_NAME, NULL),
		set_of(table, "search_path", "x", NULL), 1,
		"SELECT pg_catalog.set_config('search_path','" LONG_NAME "',false);");
	assert_difference(set_of(table, "search_path", "\"$user\", public", NULL),
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

static void test_a_search_path_that_is_not_a_list_is_refused(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(
		set_of(table, "TimeZone", "UTC", "search_path", "a; DROP TABLE b", NULL),
		set_of(table, "TimeZone", "GMT", "search_path", "a", NULL), -1, "");
}

/* ---- Followed parameters ---------------------------------------------------------------- */

/*
 * A set from name, value, ..., NULL, in which tracked names are tracked and others followed; a
 * value "?" is in doubt.
 */
static struct parameters *following(struct parameter_table *table, ...)
{
	struct parameter_draft draft;
	const char *name;
	va_list pairs;

	parameter_draft_begin(&draft, table);
	va_start(pairs, table);
	while ((name = va_arg(pairs, const char *)) != NULL) {
		const char *value = va_arg(pairs, const char *);
		const int index = parameter_index(table, name);

		if (index >= 0)
			assert_true(parameter_draft_track(&draft, (unsigned)index, value));
		else
			assert_int_equal(parameter_draft_follow(
						 &draft, name, value[0] == '?' ? NULL : value),
				DRAFTED);
	}
	va_end(pairs);
	return parameter_draft_end(&draft);
}

static void test_followed_values_are_found_by_name_in_any_case_and_order(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *one =
		following(table, "Work_Mem", "1MB", "my.Var", "x", "geqo", "off", NULL);
	struct parameters *other = following(
		table, "geqo", "on", "my.var", "x", "work_mem", "1MB", "GEQO", "off", NULL);

	assert_ptr_equal(one, other);
	assert_true(parameters_has_followed(one));
	assert_string_equal(parameters_get_followed(one, "WORK_mem"), "1MB");
	assert_null(parameters_get_followed(one, "work"));
	parameters_unref(one);
	parameters_unref(other);
	one = parameters_empty(table);
	assert_false(parameters_has_followed(one));
	parameters_unref(one);
}

static void test_illegal_names_are_not_followed(void **state)
{
	static const char *const names[] = {"", ".a", "1a", "$a", "a b", "a;b", "a'", "a\"",
		"\xc3\xa4", "a-b",
		"aa34567890123456789012345678901234567890123456789012345678901234"};
	struct parameter_draft draft;

	parameter_draft_begin(&draft, table_of(state));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(parameter_draft_follow(&draft, names[i], "1"), DRAFTED_NOT);
	assert_int_equal(parameter_draft_follow(&draft, names[10] + 1, "1"), DRAFTED);
	assert_int_equal(parameter_draft_follow(&draft, "_a.b$1", "1"), DRAFTED);
	assert_int_equal(draft.values.count, 2);
	parameter_draft_drop(&draft);
}

static void test_the_number_of_followed_parameters_is_limited(void **state)
{
	struct parameter_draft draft;
	char name[32];

	parameter_draft_begin(&draft, table_of(state));
	for (int i = 0; i < PARAMETERS_FOLLOWED_MAX; i++) {
		snprintf(name, sizeof(name), "a%d", i * 37 % PARAMETERS_FOLLOWED_MAX);
		assert_int_equal(parameter_draft_follow(&draft, name, name), DRAFTED);
	}
	assert_int_equal(parameter_draft_follow(&draft, "b", "1"), DRAFTED_NOT);
	assert_int_equal(parameter_draft_follow(&draft, "a5", "another"), DRAFTED);
	for (unsigned i = 1; i < draft.values.count; i++)
		assert_true(strcmp(draft.values.followed[i - 1].name,
				    draft.values.followed[i].name) < 0);
	parameter_draft_drop(&draft);
}

static void test_followed_values_are_set_reset_or_unchanged(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(following(table, "work_mem", "1MB", "geqo", "off", NULL),
		following(table, NULL), 2, "SET geqo='off';SET work_mem='1MB';");
	assert_difference(following(table, NULL),
		following(table, "work_mem", "1MB", "geqo", "off", NULL), 2,
		"RESET geqo;RESET work_mem;");
	assert_difference(following(table, "work_mem", "1MB", "geqo", "OFF", "my.a", "1", NULL),
		following(table, "work_mem", "1MB", "geqo", "off", "my.b", "1", NULL), 3,
		"RESET \"my\".\"b\";SET geqo='OFF';SET \"my\".\"a\"='1';");
	assert_difference(following(table, "work_mem", "1MB", NULL),
		following(table, "work_mem", "1MB", NULL), 0, "");
	assert_difference(following(table, "TimeZone", "UTC", "geqo", "off", NULL),
		following(table, "TimeZone", "GMT", "geqo", "off", NULL), 1,
		"SET TimeZone='UTC';");
}

/* Both sides' time limits must not limit the SETs themselves. */
static void test_time_limits_are_reset_first_and_set_last(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(
		following(table, "lock_timeout", "2", "role", "r", "work_mem", "1MB", NULL),
		following(table, "geqo", "off", "role", "s", "statement_timeout", "1",
			"transaction_timeout", "3", NULL),
		7,
		"RESET statement_timeout;RESET transaction_timeout;RESET role;RESET geqo;"
		"SET work_mem='1MB';SET role='r';SET lock_timeout='2';");
	/* One that both have was lifted before. */
	assert_difference(following(table, "geqo", "on", "lock_timeout", "2", NULL),
		following(table, "geqo", "off", "lock_timeout", "2", NULL), 2,
		"SET geqo='on';SET lock_timeout='2';");
	assert_difference(following(table, "lock_timeout", "2", NULL),
		following(table, "lock_timeout", "2", NULL), 0, "");
}

static void test_followed_lists_are_set_as_written(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference(following(table, "temp_tablespaces", "a,B", NULL),
		following(table, NULL), 1,
		"SELECT pg_catalog.set_config('temp_tablespaces','a,B',false);");
	assert_difference(following(table, "temp_tablespaces", "", NULL),
		following(table, NULL), 1,
		"SELECT pg_catalog.set_config('temp_tablespaces','',false);");
	assert_difference(following(table, "local_preload_libraries", "it's", NULL),
		following(table, "geqo", "1", NULL), 2,
		"RESET geqo;"
		"SELECT pg_catalog.set_config('local_preload_libraries','it''s',false);");
}

static void test_values_in_doubt_are_set_or_reset(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *server =
		following(table, "TimeZone", "UTC", "geqo", "off", "work_mem", "1MB", NULL);
	struct parameters *doubted = parameters_doubt(table, server);

	assert_ptr_not_equal(server, doubted);
	assert_true(parameters_has_followed(doubted));
	assert_null(parameters_get_followed(doubted, "geqo"));
	assert_string_equal(get(table, doubted, "TimeZone"), "UTC");
	parameters_unref(server);
	assert_difference(following(table, "TimeZone", "UTC", "work_mem", "1MB", NULL), doubted,
		2, "RESET geqo;SET work_mem='1MB';");
}

static void test_after_resets_come_the_prelude_and_all_values(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *client =
		following(table, "TimeZone", "UTC", "geqo", "off", "work_mem", "1MB", NULL);
	struct parameters *server = following(
		table, "TimeZone", "UTC", "DateStyle", "ISO", "geqo", "off", "a.b", "1", NULL);
	struct buffer sql = {0};
	static const char all[] = "RESET \"a\".\"b\";SELECT 1 --\n;SET TimeZone='UTC';"
				  "SET geqo='off';SET work_mem='1MB';";
	static const char none[] = "SET work_mem='1MB';";
	static const struct session_start start = {"SELECT 1 --", NULL};

	assert_int_equal(parameters_difference(client, server, &start, &sql), 4);
	assert_int_equal(sql.length, strlen(all));
	assert_memory_equal(sql.data, all, sql.length);
	parameters_unref(server);
	/* No RESET, so not all values are set again. */
	server = following(table, "TimeZone", "UTC", "geqo", "off", NULL);
	buffer_clear(&sql);
	assert_int_equal(parameters_difference(client, server, &start, &sql), 1);
	assert_int_equal(sql.length, strlen(none));
	assert_memory_equal(sql.data, none, sql.length);
	buffer_free(&sql);
	parameters_unref(client);
	parameters_unref(server);
}

static void test_the_session_identity_is_reset_first_and_set_last(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference_from(set_of(table, "session_authorization", "app", NULL),
		following(table, "role", "a", "session_authorization", "b", "work_mem", "1MB",
			NULL),
		set_of(table, "session_authorization", "app", NULL), 3,
		"SET work_mem='1MB';SET session_authorization='b';SET role='a';");
	assert_difference_from(set_of(table, "session_authorization", "app", NULL),
		following(table, "session_authorization", "app", "work_mem", "1MB", NULL),
		following(table, "role", "a", "session_authorization", "b", "geqo", "1", NULL),
		4, "RESET role;RESET session_authorization;RESET geqo;SET work_mem='1MB';");
	/* Equal in both sets, but another value changes. */
	assert_difference(following(table, "role", "a", "work_mem", "1MB", NULL),
		following(table, "role", "a", NULL), 3,
		"RESET role;SET work_mem='1MB';SET role='a';");
	assert_difference(following(table, "role", "a", NULL),
		following(table, "role", "a", NULL), 0, "");
}

static void test_session_authorization_is_reset_only_where_it_is_not_the_usual_one(void **state)
{
	struct parameter_table *table = table_of(state);

	/* Both have the usual one: only what differs is set, and nothing is reset. */
	assert_difference_from(set_of(table, "session_authorization", "app", NULL),
		set_of(table, "session_authorization", "app", "TimeZone", "UTC", NULL),
		set_of(table, "session_authorization", "app", "TimeZone", "GMT", NULL), 1,
		"SET TimeZone='UTC';");
	/* Names of roles differ by letter case. */
	assert_difference_from(set_of(table, "session_authorization", "app", NULL),
		set_of(table, "session_authorization", "Bob", NULL),
		set_of(table, "session_authorization", "bob", NULL), 2,
		"RESET session_authorization;SET session_authorization='Bob';");
	/* Both act as another user, who might not be allowed to set the rest. */
	assert_difference_from(set_of(table, "session_authorization", "app", NULL),
		following(table, "session_authorization", "bob", "log_statement", "all", NULL),
		set_of(table, "session_authorization", "bob", NULL), 3,
		"RESET session_authorization;SET log_statement='all';"
		"SET session_authorization='bob';");
	assert_difference_from(set_of(table, "session_authorization", "app", NULL),
		set_of(table, "session_authorization", "bob", NULL),
		set_of(table, "session_authorization", "bob", NULL), 0, "");
	/* Without knowledge of the usual one it is set as any other. */
	assert_difference(set_of(table, "session_authorization", "App", NULL),
		set_of(table, "session_authorization", "app", NULL), 1,
		"SET session_authorization='App';");
}

static void test_values_unknown_of_the_client_are_the_usual_ones(void **state)
{
	struct parameter_table *table = table_of(state);

	assert_difference_from(set_of(table, "search_path", "public", "TimeZone", "UTC", NULL),
		set_of(table, "TimeZone", "GMT", NULL),
		set_of(table, "search_path", "tenant", "TimeZone", "GMT", NULL), 1,
		"SET search_path=public;");
}

static void test_a_server_takes_over_the_followed_values_of_its_client(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *client = following(table, "TimeZone", "utc", "geqo", "off", NULL);
	struct parameters *server = following(table, "TimeZone", "UTC", "a.b", "1", NULL);
	struct parameters *adopted = parameters_adopt(table, client, server);
	struct parameters *taken = parameters_follow(table, server, client);

	assert_ptr_equal(adopted, taken);
	assert_string_equal(get(table, taken, "TimeZone"), "UTC");
	assert_string_equal(parameters_get_followed(taken, "geqo"), "off");
	assert_null(parameters_get_followed(taken, "a.b"));
	parameters_unref(client);
	parameters_unref(server);
	parameters_unref(adopted);
	parameters_unref(taken);
}

static void test_the_servers_spelling_is_adopted(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *asked = following(table, "DateStyle", "German", "TimeZone", "UTC",
		"geqo", "off", "my.a", "1", NULL);
	struct parameters *spelt =
		following(table, "DateStyle", "German, DMY", "geqo", "OFF", NULL);
	struct parameters *merged = parameters_merge(table, asked, spelt);
	struct parameters *other = parameters_refollow(table, merged, "My.A", "2");

	assert_string_equal(get(table, merged, "DateStyle"), "German, DMY");
	assert_string_equal(get(table, merged, "TimeZone"), "UTC");
	assert_string_equal(parameters_get_followed(merged, "geqo"), "OFF");
	assert_string_equal(parameters_get_followed(merged, "my.a"), "1");
	assert_string_equal(parameters_get_followed(other, "my.a"), "2");
	parameters_unref(other);
	other = parameters_refollow(table, merged, "missing", "2");
	assert_ptr_equal(other, merged);
	parameters_unref(other);
	parameters_unref(merged);
	parameters_unref(asked);
	parameters_unref(spelt);
}

static void test_out_of_memory_is_reported(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *client = set_of(table, "TimeZone", "UTC", NULL);
	struct parameters *server = set_of(table, "TimeZone", "GMT", NULL);
	struct buffer buffer = {.failed = true};

	assert_int_equal(parameters_difference(client, server, &plain_start, &buffer), -1);
	buffer_free(&buffer);
	parameters_unref(client);
	parameters_unref(server);
}

static void test_sets_of_two_equal_tables_can_be_compared(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameter_table *other = parameter_table_new("search_path, my.own");

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

static void test_a_client_without_other_values_adopts_the_servers_set(void **state)
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

static void test_merge_prefers_the_overlaid_values(void **state)
{
	struct parameter_table *table = table_of(state);
	struct parameters *pool =
		set_of(table, "TimeZone", "UTC", "application_name", "p", NULL);
	struct parameters *wishes =
		set_of(table, "application_name", "", "DateStyle", "German", NULL);
	struct parameters *welcome = parameters_merge(table, pool, wishes);

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
		WITH_TABLE(test_the_empty_set_has_no_values),
		WITH_TABLE(test_adding_a_value_does_not_change_the_old_set),
		WITH_TABLE(test_equal_content_is_the_same_set),
		WITH_TABLE(test_equal_large_content_is_the_same_set_too),
		WITH_TABLE(test_an_unknown_value_differs_from_an_empty_one),
		WITH_TABLE(test_many_sets_coexist),
		WITH_TABLE(test_the_size_of_a_set_is_limited),
		WITH_TABLE(test_the_same_set_needs_no_sql),
		WITH_TABLE(test_only_what_both_sides_know_is_set),
		WITH_TABLE(test_letter_case_is_no_difference),
		WITH_TABLE(test_changes_are_in_the_order_of_the_table),
		WITH_TABLE(test_values_are_quoted),
		WITH_TABLE(test_long_values_are_set_too),
		WITH_TABLE(test_a_search_path_that_is_not_a_list_is_refused),
		WITH_TABLE(test_followed_values_are_found_by_name_in_any_case_and_order),
		WITH_TABLE(test_illegal_names_are_not_followed),
		WITH_TABLE(test_the_number_of_followed_parameters_is_limited),
		WITH_TABLE(test_followed_values_are_set_reset_or_unchanged),
		WITH_TABLE(test_followed_lists_are_set_as_written),
		WITH_TABLE(test_time_limits_are_reset_first_and_set_last),
		WITH_TABLE(test_values_in_doubt_are_set_or_reset),
		WITH_TABLE(test_after_resets_come_the_prelude_and_all_values),
		WITH_TABLE(test_the_session_identity_is_reset_first_and_set_last),
		WITH_TABLE(
			test_session_authorization_is_reset_only_where_it_is_not_the_usual_one),
		WITH_TABLE(test_values_unknown_of_the_client_are_the_usual_ones),
		WITH_TABLE(test_a_server_takes_over_the_followed_values_of_its_client),
		WITH_TABLE(test_the_servers_spelling_is_adopted),
		WITH_TABLE(test_out_of_memory_is_reported),
		WITH_TABLE(test_sets_of_two_equal_tables_can_be_compared),
		WITH_TABLE(test_after_adopting_nothing_differs),
		WITH_TABLE(test_a_client_without_other_values_adopts_the_servers_set),
		WITH_TABLE(test_merge_prefers_the_overlaid_values),
		WITH_TABLE(test_known_values_are_reported_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
