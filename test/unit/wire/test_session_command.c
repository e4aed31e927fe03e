/* SPDX-License-Identifier: ISC */
/* Statements that change the session, understood by their words, and those that are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/session_command.h"

static struct session_command command;
static const struct session_lexis usual = {.safe_encoding = true};

static int drop(void **state)
{
	(void)state;
	session_command_free(&command);
	return 0;
}

static enum session_verb read_text(const char *text)
{
	return session_command_read(text, strlen(text), usual, &command);
}

static const char *name(void)
{
	return (const char *)command.name.data;
}

#define assert_verb(text, verb) assert_int_equal(read_text(text), verb)

#define assert_named(text, verb, wanted)                                                       \
	do {                                                                                   \
		assert_verb(text, verb);                                                       \
		assert_string_equal(name(), wanted);                                           \
	} while (0)

#define assert_sets(text, wanted, text_of_value)                                               \
	do {                                                                                   \
		assert_named(text, SESSION_SET, wanted);                                       \
		assert_string_equal((const char *)command.value.data, text_of_value);          \
	} while (0)

#define assert_unknown(text) assert_verb(text, SESSION_UNKNOWN)

static void test_a_set_has_a_name_and_a_value(void **state)
{
	(void)state;
	assert_sets("SET work_mem = '64MB'", "work_mem", "64MB");
	assert_sets("set Work_Mem to '64MB';", "work_mem", "64MB");
	assert_sets("SET SESSION statement_timeout TO 5000", "statement_timeout", "5000");
	assert_sets("SET app.tenant = 'Ärger'", "app.tenant", "Ärger");
	assert_sets("SET \"app\".\"Tenant\" = x", "app.tenant", "x");
	assert_sets("SET geqo = ON ; ", "geqo", "on");
	assert_sets("SET geqo = ON;; ;", "geqo", "on");
	assert_sets("SET x.y = -5", "x.y", "-5");
	assert_sets("SET x.y = \"Quoted\"", "x.y", "Quoted");
	assert_sets("SET x.y = ''", "x.y", "");
	assert_sets("SET x.y = 'it''s'", "x.y", "it's");
}

static void test_comments_and_white_space_are_skipped(void **state)
{
	(void)state;
	assert_sets("/* a /* b */ ' */ SET--c\n\tx.y\f=\r\n'1'-- d", "x.y", "1");
	assert_sets("-- first\nSET x.y = 1 /* open", "x.y", "1");
	assert_sets(" SET x.y=1", "x.y", "1");
}

static void test_strings_are_read_as_the_server_reads_them(void **state)
{
	const struct session_lexis escaping = {.escapes = true, .safe_encoding = true};

	(void)state;
	assert_sets("SET x.y = 'a\\b'", "x.y", "a\\b");
	assert_sets("SET x.y = E'a\\\\b''c'", "x.y", "a\\b'c");
	assert_sets("SET x.y = $$it's; SET z.z = 1$$", "x.y", "it's; SET z.z = 1");
	assert_sets("SET x.y = $q$ $$ $Q$ $q$", "x.y", " $$ $Q$ ");
	/* These are left to the server. */
	assert_unknown("SET x.y = E'a\\n'");
	assert_unknown("SET x.y = E'\\''; SET x.z = '1'");
	assert_unknown("SET x.y = U&'a'");
	assert_unknown("SET x.y = u&\"a\"");
	assert_unknown("SET U&\"x\" = 1");
	assert_unknown("SET x.y = N'a'");
	assert_unknown("SET x.y = B'1'");
	assert_unknown("SET x.y = x'1F'");
	assert_unknown("SET x.y = 'a'\n'b'");
	assert_unknown("SET x.y = 'a' -- c\n'b'");
	assert_unknown("SET x.y = 'open");
	assert_unknown("SET x.y = $a$open$A$");
	assert_unknown("SET x.y = $1");
	assert_int_equal(
		session_command_read("SET x.y = 'a\\'; SET x.z = '", 27, escaping, &command),
		SESSION_UNKNOWN);
	assert_int_equal(
		session_command_read("SET x.y = 'a\\\\'", 15, escaping, &command), SESSION_SET);
	assert_string_equal((const char *)command.value.data, "a\\");
}

static void test_text_of_a_double_byte_encoding_is_left_to_the_server(void **state)
{
	const struct session_lexis unsafe = {.safe_encoding = false};
	const char text[] = "SET x.y = '\x95\\'"; /* one letter of Shift JIS */

	(void)state;
	assert_int_equal(
		session_command_read(text, sizeof(text), unsafe, &command), SESSION_UNKNOWN);
	assert_int_equal(
		session_command_read("SET x.y = 'a'", 13, unsafe, &command), SESSION_SET);
}

static void test_numbers_have_one_spelling(void **state)
{
	(void)state;
	assert_sets("SET x.y = 0", "x.y", "0");
	assert_sets("SET x.y = 999999999", "x.y", "999999999");
	assert_unknown("SET x.y = 007");
	assert_unknown("SET x.y = 1.50");
	assert_unknown("SET x.y = 1e3");
	assert_unknown("SET x.y = 0x1F");
	assert_unknown("SET x.y = 1_000");
	assert_unknown("SET x.y = 10MB");
	assert_unknown("SET x.y = 99999999999");
	assert_unknown("SET x.y = +1");
	assert_unknown("SET x.y = - 'a'");
}

static void test_lists_of_names_are_quoted(void **state)
{
	(void)state;
	assert_sets("SET search_path TO a, \"B\", 'C d'", "search_path", "a, \"B\", \"C d\"");
	assert_sets("SET search_path = 'a, b'", "search_path", "\"a, b\"");
	assert_sets("SET search_path = \"x\"\"y\"", "search_path", "\"x\"\"y\"");
	assert_sets("SET SCHEMA 'Tenant'", "search_path", "\"Tenant\"");
	assert_unknown("SET search_path = a,");
	assert_unknown("SET search_path = 1");
	assert_unknown("SET SCHEMA tenant");
	assert_unknown("SET DateStyle = ISO, DMY");
}

static void test_other_words_set_parameters_too(void **state)
{
	(void)state;
	assert_sets("SET ROLE bob", "role", "bob");
	assert_sets("SET ROLE 'Bob'", "role", "Bob");
	assert_sets("SET role = bob", "role", "bob");
	assert_sets("SET SESSION role TO bob", "role", "bob");
	assert_sets("SET ROLE NONE", "role", "none");
	assert_sets("SET SESSION AUTHORIZATION bob", "session_authorization", "bob");
	assert_sets("SET session_authorization = bob", "session_authorization", "bob");
	assert_sets("SET TIME ZONE 'UTC'", "timezone", "UTC");
	assert_sets("SET SESSION TIME ZONE utc", "timezone", "utc");
	assert_sets("SET NAMES 'UTF8'", "client_encoding", "UTF8");
	assert_unknown("SET TIME ZONE -5");
	assert_unknown("SET TIME ZONE 5");
	assert_unknown("SET TIME ZONE INTERVAL '+01:00' HOUR TO MINUTE");
	assert_unknown("SET CATALOG 'x'");
	assert_unknown("SET XML OPTION DOCUMENT");
	assert_unknown("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
	assert_unknown("SET x.y FROM CURRENT");
}

static void test_defaults_are_resets(void **state)
{
	(void)state;
	assert_named("RESET Work_mem", SESSION_RESET, "work_mem");
	assert_named("RESET app.tenant;", SESSION_RESET, "app.tenant");
	assert_named("SET work_mem TO DEFAULT", SESSION_RESET, "work_mem");
	assert_named("RESET ROLE", SESSION_RESET, "role");
	assert_named("RESET SESSION AUTHORIZATION", SESSION_RESET, "session_authorization");
	assert_named(
		"SET SESSION AUTHORIZATION DEFAULT", SESSION_RESET, "session_authorization");
	assert_named("RESET TIME ZONE", SESSION_RESET, "timezone");
	assert_named("SET TIME ZONE LOCAL", SESSION_RESET, "timezone");
	assert_named("SET NAMES", SESSION_RESET, "client_encoding");
	assert_verb("RESET ALL", SESSION_RESET_ALL);
	assert_unknown("RESET TRANSACTION ISOLATION LEVEL");
	assert_unknown("RESET a, b");
	assert_unknown("RESET");
}

static void test_local_settings_end_with_the_transaction(void **state)
{
	(void)state;
	assert_verb("SET LOCAL work_mem = 1.5", SESSION_SET_LOCAL);
	assert_verb("SET LOCAL ROLE bob;", SESSION_SET_LOCAL);
	assert_verb("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", SESSION_SET_LOCAL);
	assert_verb("SET CONSTRAINTS ALL DEFERRED", SESSION_SET_LOCAL);
	assert_unknown("SET LOCAL x.y = 1; SET x.y = 2");
	assert_verb("SET LOCAL x.y = E'\\'; SET x.y = 2 --'", SESSION_SET_LOCAL);
}

static void test_several_statements_are_unknown(void **state)
{
	(void)state;
	assert_unknown("SET x.y = 1; SET x.z = 2");
	assert_unknown("SET x.y = 1; SELECT 1");
	assert_unknown("; SET x.y = 1");
	assert_unknown("SELECT 1; SET x.y = 1");
	assert_unknown("BEGIN; SET x.y = 1; COMMIT");
	assert_unknown("SELECT 'SET x.y = 1'");
	assert_unknown("");
	assert_unknown("SET");
	assert_unknown("SETx.y = 1");
	assert_unknown("SET x.y");
	assert_unknown("SET x.y =");
	assert_unknown("SET = 1");
	assert_unknown("SET x. = 1");
	assert_unknown("SET x.y = 1 2");
	assert_unknown("SET x'y = 1");
}

static void test_nothing_is_read_behind_the_end_or_a_nul(void **state)
{
	(void)state;
	assert_int_equal(
		session_command_read("SET x.y = 12345", 12, usual, &command), SESSION_SET);
	assert_string_equal((const char *)command.value.data, "12");
	assert_int_equal(
		session_command_read("SET x.y = 1\0; x", 15, usual, &command), SESSION_SET);
	for (size_t length = 0; length < 10; length++)
		assert_int_equal(session_command_read("SET x.y = 1", length, usual, &command),
			SESSION_UNKNOWN);
}

static void test_names_have_a_limit(void **state)
{
	char text[200];

	(void)state;
	snprintf(text, sizeof(text), "LISTEN %063d", 0);
	assert_unknown(text);
	snprintf(text, sizeof(text), "LISTEN c%062d", 0);
	assert_verb(text, SESSION_LISTEN);
	snprintf(text, sizeof(text), "LISTEN c%063d", 0);
	assert_unknown(text);
	snprintf(text, sizeof(text), "SET a.%080d = 1", 0);
	assert_unknown(text);
	assert_unknown("LISTEN \"\"");
	assert_unknown("LISTEN \xc3\x84"); /* folded as the server's locale says */
	assert_named("LISTEN \"\xc3\x84\"", SESSION_LISTEN, "\xc3\x84");
}

static void test_statements_and_channels_are_named(void **state)
{
	(void)state;
	assert_named("PREPARE Mine AS SELECT 1", SESSION_PREPARE, "mine");
	assert_int_equal(command.rest, 13);
	assert_named("PREPARE q (int, text) AS SELECT $1, $2;", SESSION_PREPARE, "q");
	assert_int_equal(command.rest, 10);
	assert_named("EXECUTE q(1, 'x;y')", SESSION_EXECUTE, "q");
	assert_int_equal(command.rest, 9);
	assert_named("EXECUTE q;", SESSION_EXECUTE, "q");
	assert_named("DEALLOCATE PREPARE \"Q\"", SESSION_DEALLOCATE, "Q");
	assert_named("DEALLOCATE prepare", SESSION_DEALLOCATE, "prepare");
	assert_verb("DEALLOCATE ALL", SESSION_DEALLOCATE_ALL);
	assert_verb("DEALLOCATE PREPARE ALL", SESSION_DEALLOCATE_ALL);
	assert_verb("DISCARD ALL", SESSION_DISCARD_ALL);
	assert_named("LISTEN \"A b\"", SESSION_LISTEN, "A b");
	assert_named("UNLISTEN c", SESSION_UNLISTEN, "c");
	assert_verb("UNLISTEN *", SESSION_UNLISTEN_ALL);
	assert_unknown("PREPARE TRANSACTION 'x'");
	assert_unknown("PREPARE q AS SELECT 1; DROP TABLE t");
	assert_unknown("PREPARE q AS SELECT U&'\\0041'");
	assert_unknown("EXECUTE q(1); EXECUTE r");
	assert_unknown("LISTEN a, b");
	assert_unknown("NOTIFY c");
	assert_unknown("DISCARD PLANS");
	assert_unknown("DEALLOCATE a; DEALLOCATE b");
}

/* The statement's name stands there in the text, with its quotes. */
#define assert_at(text, verb, wanted)                                                          \
	do {                                                                                   \
		assert_verb(text, verb);                                                       \
		assert_int_equal(command.name_end - command.name_begin, strlen(wanted));       \
		assert_memory_equal((text) + command.name_begin, wanted, strlen(wanted));      \
	} while (0)

static void test_the_place_of_a_statements_name_is_known(void **state)
{
	(void)state;
	assert_at("/* q */ PREPARE -- q\n q(int)AS SELECT 1", SESSION_PREPARE, "q");
	assert_at("EXECUTE\"a\"\"b\"(1)", SESSION_EXECUTE, "\"a\"\"b\"");
	assert_string_equal(name(), "a\"b");
	assert_int_equal(command.rest, 13);
	assert_at("EXECUTE q", SESSION_EXECUTE, "q");
	assert_int_equal(command.rest, 9);
	assert_at("EXECUTE q x", SESSION_EXECUTE, "q");
	assert_at("PREPARE q AS SELECT E'\\';', '\\';;", SESSION_PREPARE, "q");
}

static void test_execute_is_found_in_other_statements(void **state)
{
	(void)state;
	assert_at("EXPLAIN EXECUTE q", SESSION_EXECUTE, "q");
	assert_at("explain analyse verbose execute q(1)", SESSION_EXECUTE, "q");
	assert_at("EXPLAIN (COSTS off, FORMAT (x)) EXECUTE q(1);", SESSION_EXECUTE, "q");
	assert_at("EXPLAIN ANALYZE CREATE TABLE t AS EXECUTE q", SESSION_EXECUTE, "q");
	assert_at("CREATE TABLE execute (\"as\", b) AS EXECUTE q", SESSION_EXECUTE, "q");
	assert_at("CREATE LOCAL TEMP TABLE s.t ON COMMIT DROP AS EXECUTE q(1) WITH NO DATA",
		SESSION_EXECUTE, "q");
	assert_at(
		"create unlogged table if not exists t using heap with (a = (1)) as execute q",
		SESSION_EXECUTE, "q");
	assert_unknown("EXPLAIN SELECT 1");
	assert_unknown("EXPLAIN (COSTS EXECUTE q");
	assert_unknown("EXPLAIN (");
	assert_unknown("CREATE TABLE t (a int) ; EXECUTE q");
	assert_unknown("CREATE TABLE t) AS EXECUTE q");
	assert_unknown("CREATE TABLE t AS SELECT 1");
	assert_unknown("CREATE TABLE t AS EXECUTE q; SELECT 1");
	assert_unknown("CREATE LOCAL TABLE t AS EXECUTE q");
	assert_unknown("CREATE VIEW v AS EXECUTE q");
	assert_unknown("CREATE TABLE t (a");
}

static void test_words_that_are_no_names_are_left_to_the_server(void **state)
{
	(void)state;
	assert_unknown("PREPARE select AS SELECT 1");
	assert_unknown("PREPARE Left AS SELECT 1");
	assert_unknown("EXECUTE verbose");
	assert_unknown("EXECUTE user");
	assert_verb("PREPARE int AS SELECT 1", SESSION_PREPARE);
	assert_verb("PREPARE \"select\" AS SELECT 1", SESSION_PREPARE);
}

static void test_the_beginning_of_an_execute_is_enough(void **state)
{
	const struct session_lexis partial = {.safe_encoding = true, .partial = true};
	static const char text[] = "EXECUTE q ('x";

	(void)state;
	assert_int_equal(
		session_command_read(text, strlen(text), usual, &command), SESSION_UNKNOWN);
	assert_int_equal(
		session_command_read(text, strlen(text), partial, &command), SESSION_EXECUTE);
	assert_string_equal(name(), "q");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_set_has_a_name_and_a_value),
		cmocka_unit_test(test_comments_and_white_space_are_skipped),
		cmocka_unit_test(test_strings_are_read_as_the_server_reads_them),
		cmocka_unit_test(test_text_of_a_double_byte_encoding_is_left_to_the_server),
		cmocka_unit_test(test_numbers_have_one_spelling),
		cmocka_unit_test(test_lists_of_names_are_quoted),
		cmocka_unit_test(test_other_words_set_parameters_too),
		cmocka_unit_test(test_defaults_are_resets),
		cmocka_unit_test(test_local_settings_end_with_the_transaction),
		cmocka_unit_test(test_several_statements_are_unknown),
		cmocka_unit_test(test_nothing_is_read_behind_the_end_or_a_nul),
		cmocka_unit_test(test_names_have_a_limit),
		cmocka_unit_test(test_statements_and_channels_are_named),
		cmocka_unit_test(test_the_place_of_a_statements_name_is_known),
		cmocka_unit_test(test_execute_is_found_in_other_statements),
		cmocka_unit_test(test_words_that_are_no_names_are_left_to_the_server),
		cmocka_unit_test(test_the_beginning_of_an_execute_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, drop);
}
