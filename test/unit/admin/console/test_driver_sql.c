/* SPDX-License-Identifier: ISC */
/* Which SQL of drivers the console knows, and what it takes from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admin/console/driver_sql.h"
#include "admin/show/show_fakes.h"

static struct driver_statement statement;

static void assert_tagged(const char *text, enum driver_action action, const char *tag)
{
	assert_int_equal(driver_sql_count(text, &statement), 1);
	assert_int_equal(statement.action, action);
	assert_string_equal(statement.tag, tag);
}

static void assert_unknown(const char *text)
{
	assert_int_equal(driver_sql_count(text, &statement), 0);
}

static void assert_column(
	unsigned place, const char *name, enum column_type type, enum driver_value value)
{
	assert_true(place < statement.column_count);
	assert_string_equal(statement.columns[place].name, name);
	assert_int_equal(statement.columns[place].type, type);
	assert_int_equal(statement.cells[place].value, value);
}

static void assert_selects(const char *text, unsigned columns)
{
	assert_int_equal(driver_sql_count(text, &statement), 1);
	assert_int_equal(statement.action, DRIVER_SELECT);
	assert_int_equal(statement.column_count, columns);
}

static void test_transactions(void **state)
{
	(void)state;
	assert_tagged("BEGIN", DRIVER_BEGIN, "BEGIN");
	assert_tagged("begin;", DRIVER_BEGIN, "BEGIN");
	assert_tagged(
		"BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED", DRIVER_BEGIN, "BEGIN");
	assert_tagged("begin isolation level serializable, read only not deferrable",
		DRIVER_BEGIN, "BEGIN");
	assert_tagged("START TRANSACTION READ WRITE", DRIVER_BEGIN, "START TRANSACTION");
	assert_tagged("COMMIT", DRIVER_END, "COMMIT");
	assert_tagged("end work", DRIVER_END, "COMMIT");
	assert_tagged("ROLLBACK TRANSACTION;", DRIVER_END, "ROLLBACK");
	assert_tagged("abort and no chain", DRIVER_END, "ROLLBACK");
	assert_unknown("BEGINS");
	assert_unknown("BEGIN ISOLATION LEVEL HIGH");
	assert_unknown("START");
	assert_unknown("COMMIT AND CHAIN");
	assert_unknown("COMMIT PREPARED 'x'");
	assert_unknown("ROLLBACK TO x");
	assert_unknown("SAVEPOINT x");
}

static void test_parameters(void **state)
{
	(void)state;
	assert_tagged("SET extra_float_digits = 3", DRIVER_SET, "SET");
	assert_tagged("set session Search_Path to \"$user\", 'a''b', c.d", DRIVER_SET, "SET");
	assert_tagged("SET LOCAL statement_timeout=-1", DRIVER_SET, "SET");
	assert_tagged("SET TIME ZONE 'UTC'", DRIVER_SET, "SET");
	assert_tagged("SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", DRIVER_SET, "SET");
	assert_tagged("set session time zone interval '-08:00'", DRIVER_SET, "SET");
	assert_tagged("SET NAMES utf8", DRIVER_SET, "SET");
	assert_tagged(
		"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", DRIVER_SET, "SET");
	assert_tagged("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", DRIVER_SET, "SET");
	assert_tagged("SET bytea_output TO DEFAULT", DRIVER_SET, "SET");
	assert_tagged("SET SESSION AUTHORIZATION DEFAULT", DRIVER_SET, "SET");
	assert_tagged("SET ROLE NONE", DRIVER_SET, "SET");
	assert_tagged("RESET timezone", DRIVER_NOTHING, "RESET");
	assert_tagged("RESET ALL", DRIVER_NOTHING, "RESET");
	assert_unknown("SET pool_mode = 'session'");
	assert_unknown("SET server_version = '15'");
	assert_unknown("SET role = 'admin'");
	assert_unknown("SET SESSION AUTHORIZATION admin");
	assert_unknown("SET ROLE admin");
	assert_unknown("SET TRANSACTION");
	assert_unknown("SET server_version_num = '150000'");
	assert_unknown("SET TIME ZONE INTERVAL");
	assert_unknown("SET TIME ZONE INTERVAL '1' TO MINUTE");
	assert_unknown("SET datestyle =");
	assert_unknown("SET datestyle 'ISO'");
	assert_unknown("SET datestyle = 'ISO");
	assert_unknown("SET datestyle = a,");
	assert_unknown("SET datestyle = (1)");
	assert_unknown("RESET pool_mode");

	assert_int_equal(driver_sql_count("SHOW TRANSACTION ISOLATION LEVEL", &statement), 1);
	assert_int_equal(statement.action, DRIVER_SHOW);
	assert_string_equal(statement.shown->name, "transaction_isolation");
	assert_string_equal(statement.columns[0].name, "transaction_isolation");
	assert_null(statement.tag);
	assert_unknown("SHOW POOLS");
	assert_unknown("SHOW ALL");
}

static void test_statements_of_pools(void **state)
{
	(void)state;
	assert_tagged("DISCARD ALL", DRIVER_DEALLOCATE_ALL, "DISCARD ALL");
	assert_tagged("DEALLOCATE PREPARE ALL", DRIVER_DEALLOCATE_ALL, "DEALLOCATE ALL");
	assert_tagged("DEALLOCATE \"_pg3_0\"", DRIVER_DEALLOCATE, "DEALLOCATE");
	assert_string_equal(statement.name, "_pg3_0");
	assert_tagged("CLOSE ALL", DRIVER_NOTHING, "CLOSE CURSOR ALL");
	assert_tagged("UNLISTEN *", DRIVER_NOTHING, "UNLISTEN");
	assert_unknown("UNLISTEN x");
	assert_unknown("DISCARD PLANS");
	assert_unknown("DEALLOCATE");
	assert_unknown("LISTEN x");
}

static void test_values(void **state)
{
	(void)state;
	assert_selects("SELECT 1", 1);
	assert_column(0, "?column?", COLUMN_INT4, DRIVER_VALUE_TEXT);
	assert_string_equal(statement.cells[0].text, "1");
	assert_selects("select 'keep''alive' as \"Ping\"", 1);
	assert_column(0, "Ping", COLUMN_TEXT, DRIVER_VALUE_TEXT);
	assert_string_equal(statement.cells[0].text, "keep'alive");
	assert_selects("SELECT version()", 1);
	assert_column(0, "version", COLUMN_TEXT, DRIVER_VALUE_VERSION);
	assert_selects("SELECT pg_catalog . version ( ) v", 1);
	assert_column(0, "v", COLUMN_TEXT, DRIVER_VALUE_VERSION);
	assert_selects("SELECT current_schema(),session_user, Current_Schema", 3);
	assert_column(0, "current_schema", COLUMN_NAME, DRIVER_VALUE_TEXT);
	assert_column(1, "session_user", COLUMN_NAME, DRIVER_VALUE_USER);
	assert_column(2, "current_schema", COLUMN_NAME, DRIVER_VALUE_TEXT);
	assert_string_equal(statement.cells[2].text, "public");
	assert_selects("SELECT current_database(), current_catalog, user, current_role", 4);
	assert_column(0, "current_database", COLUMN_NAME, DRIVER_VALUE_DATABASE);
	assert_selects("select pg_is_in_recovery()", 1);
	assert_column(0, "pg_is_in_recovery", COLUMN_BOOL, DRIVER_VALUE_TEXT);
	assert_selects("SELECT current_setting('TimeZone', true)", 1);
	assert_column(0, "current_setting", COLUMN_TEXT, DRIVER_VALUE_PARAMETER);
	assert_string_equal(
		show_fakes_value(statement.cells[0].parameter, COMPAT_1_26_1), "GMT");
	assert_selects("SELECT current_setting('server_version')", 1);
	assert_string_equal(show_fakes_value(statement.cells[0].parameter, COMPAT_1_26_1),
		"1.26.1/bouncer");
	assert_string_equal(show_fakes_value(statement.cells[0].parameter, COMPAT_1_25_2),
		"1.25.2/bouncer");
	assert_selects(
		"SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() "
		"WHERE name = 'bytea_output'",
		1);
	assert_column(0, "set_config", COLUMN_TEXT, DRIVER_VALUE_TEXT);
	assert_string_equal(statement.cells[0].text, "hex");
}

static void test_other_selects_are_unknown(void **state)
{
	(void)state;
	assert_unknown("SELECT");
	assert_unknown("SELECT 1,");
	assert_unknown("SELECT 1 + 1");
	assert_unknown("SELECT 1.5");
	assert_unknown("SELECT 12345678901");
	assert_unknown("SELECT 1x");
	assert_unknown("SELECT 1 LIMIT 1");
	assert_unknown("SELECT 1 WHERE true");
	assert_unknown("SELECT 1 FROM pg_database");
	assert_unknown("SELECT version");
	assert_unknown("SELECT current_user()");
	assert_unknown("SELECT current_database");
	assert_unknown("SELECT pg_sleep(1)");
	assert_unknown("SELECT current_setting('pool_mode')");
	assert_unknown("SELECT set_config('server_version', 'x', false)");
	assert_unknown("SELECT set_config('timezone', 'x', false) FROM pg_class");
	assert_unknown("SELECT 1,2,3,4,5,6,7,8,9");
	assert_unknown("SELECT 1 AS");
	assert_unknown("SELECT 'x");
	assert_unknown(
		"SELECT 'a text that has more than the sixty-three bytes that there is room "
		"for'");
}

static void test_comments_and_several_statements(void **state)
{
	(void)state;
	assert_int_equal(driver_sql_count("", &statement), 1);
	assert_int_equal(statement.action, DRIVER_EMPTY);
	assert_int_equal(driver_sql_count(" -- ping", &statement), 1);
	assert_int_equal(statement.action, DRIVER_EMPTY);
	assert_int_equal(driver_sql_count(";", &statement), 1);
	assert_selects("/* a /* nested */ one */ SELECT -- the number\n 1 /**/ ; -- end", 1);
	assert_int_equal(driver_sql_count("select pg_is_in_recovery(); "
					  "SHOW default_transaction_read_only;",
				 &statement),
		2);
	assert_int_equal(statement.action, DRIVER_SELECT);
	assert_unknown("BEGIN; SHOW POOLS");
	assert_unknown("SELECT 1 SELECT 2");
}

static void test_long_texts_are_not_looked_at(void **state)
{
	static char text[DRIVER_TEXT_MAX + 2];

	(void)state;
	memset(text, ' ', DRIVER_TEXT_MAX);
	memcpy(text, "SELECT 1", 8);
	assert_selects(text, 1);
	text[DRIVER_TEXT_MAX] = ' ';
	assert_unknown(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transactions),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_statements_of_pools),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_other_selects_are_unknown),
		cmocka_unit_test(test_comments_and_several_statements),
		cmocka_unit_test(test_long_texts_are_not_looked_at),
	};

	return cmocka_run_group_tests_name("admin/console/driver_sql", tests, NULL, NULL);
}
