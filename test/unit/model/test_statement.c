/* SPDX-License-Identifier: ISC */
/* One statement for each text, and an id that is never reused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fakes/fake_statements.h"

static void test_the_same_content_is_the_same_statement(void **state)
{
	struct fake_statements *world = *state;
	struct statement *one = fake_statements_open(world, "SELECT 1");
	struct statement *same = fake_statements_open(world, "SELECT 1");
	struct statement *other = fake_statements_open(world, "SELECT 2");

	assert_ptr_equal(one, same);
	assert_ptr_not_equal(one, other);
	assert_int_equal(one->holders, 2);
	assert_int_equal(world->table.count, 2);
	assert_int_equal(world->table.bytes, statement_size(one) + statement_size(other));
	statement_unref(one);
	statement_unref(same);
	statement_unref(other);
}

static void test_types_belong_to_the_content(void **state)
{
	static const uint8_t with[] = "SELECT $1\0\0\1\0\0\0\27", without[] = "SELECT $1\0\0";
	struct fake_statements *world = *state;
	struct statement *typed = statement_open(&world->table, with, sizeof(with) - 1);
	struct statement *bare = statement_open(&world->table, without, sizeof(without));

	assert_ptr_not_equal(typed, bare);
	assert_string_equal(statement_text(typed), statement_text(bare));
	assert_int_equal(statement_parameter_types(typed), 1);
	assert_int_equal(statement_parameter_types(bare), 0);
	statement_unref(typed);
	statement_unref(bare);
}

static void test_only_contents_of_a_parse_are_valid(void **state)
{
	(void)state;
	assert_true(statement_is_content("\0\0\0", 3));
	assert_true(statement_is_content("SELECT\0\0\1\0\0\0\27", 13));
	assert_false(statement_is_content("", 0));
	assert_false(statement_is_content("SELECT", 6));
	assert_false(statement_is_content("SELECT\0", 7));
	assert_false(statement_is_content("SELECT\0\0\1\0\0\0", 12));
	assert_false(statement_is_content("SELECT\0\0\1\0\0\0\27x", 14));
}

static struct statement *open_sql(
	struct fake_statements *world, const char *rest, const char *search_path)
{
	struct buffer content = {0};
	struct statement *statement;

	statement_append_sql(&content, rest, strlen(rest), search_path);
	assert_true(statement_is_content(content.data, content.length));
	statement = statement_open(&world->table, content.data, content.length);
	buffer_free(&content);
	return statement;
}

static void test_what_sql_prepares_is_another_statement(void **state)
{
	struct fake_statements *world = *state;
	struct statement *parsed = fake_statements_open(world, "PREPARE AS SELECT 1");
	struct statement *sql = open_sql(world, "AS SELECT 1", NULL);
	struct statement *same = open_sql(world, "AS SELECT 1", "");
	struct statement *elsewhere = open_sql(world, "AS SELECT 1", "a, b");

	assert_ptr_not_equal(parsed, sql);
	assert_ptr_equal(sql, same);
	assert_ptr_not_equal(sql, elsewhere);
	assert_false(statement_is_sql(parsed));
	assert_true(statement_is_sql(sql));
	assert_string_equal(statement_text(sql), "PREPARE AS SELECT 1");
	assert_string_equal(statement_sql_rest(sql), "AS SELECT 1");
	assert_int_equal(statement_parameter_types(sql), 0);
	statement_unref(parsed);
	statement_unref(sql);
	statement_unref(same);
	statement_unref(elsewhere);
}

static void test_no_parse_is_taken_for_sql(void **state)
{
	static uint8_t content[sizeof("PREPARE ") + 2 + 4 * 0xffff] = "PREPARE ";
	struct fake_statements *world = *state;
	struct statement *parsed;

	memset(content + sizeof("PREPARE "), 0xff, sizeof(content) - sizeof("PREPARE "));
	content[sizeof(content) - 1] = 0;
	assert_true(statement_is_content(content, sizeof(content)));
	parsed = statement_open(&world->table, content, sizeof(content));
	assert_false(statement_is_sql(parsed));
	statement_unref(parsed);
	assert_false(statement_is_content("PREPARE \0\xff\xff", 11));
	assert_false(statement_is_content("PREPARE \0\xff\xff\0\0", 13));
	assert_false(statement_is_content("EXECUTE \0\xff\xff\0", 12));
}

static void test_statements_that_may_name_others_are_marked(void **state)
{
	static const struct {
		const char *text;
		bool may;
	} cases[] = {
		{"EXECUTE q", true},
		{" /* a */ explain SELECT 1", true},
		{"CREATE TABLE t AS EXECUTE q", true},
		{"PREPARE q AS SELECT 1", true},
		{"SELECT 1", false},
		{"EXECUTED", false},
		{"", false},
	};
	struct fake_statements *world = *state;
	struct statement *sql = open_sql(world, "AS SELECT 1", NULL);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct statement *statement = fake_statements_open(world, cases[i].text);

		assert_int_equal(statement->may_name, cases[i].may);
		statement_unref(statement);
	}
	assert_false(sql->may_name);
	statement_unref(sql);
}

static void test_ids_are_never_reused(void **state)
{
	struct fake_statements *world = *state;
	struct statement *one = fake_statements_open(world, "SELECT 1");

	assert_int_equal(one->id, 1);
	assert_int_equal(one->name_size, sizeof("PGBOUNCER_1"));
	assert_string_equal(one->name, "PGBOUNCER_1");
	statement_unref(one);
	fake_statements_turn(world);
	one = fake_statements_open(world, "SELECT 1");
	assert_int_equal(one->id, 2);
	statement_unref(one);
}

static void test_statement_is_kept_until_the_end_of_the_turn(void **state)
{
	struct fake_statements *world = *state;
	struct statement *one = fake_statements_open(world, "SELECT 1"), *again;

	statement_unref(one);
	assert_string_equal(statement_text(one), "SELECT 1");
	again = fake_statements_open(world, "SELECT 1");
	assert_ptr_equal(again, one);
	fake_statements_turn(world);
	assert_int_equal(world->table.count, 1);
	assert_int_equal(again->holders, 1);
	statement_unref(again);
	fake_statements_turn(world);
	assert_int_equal(world->table.count, 0);
	assert_int_equal(world->table.bytes, 0);
}

static void test_ids_of_the_old_process_are_kept(void **state)
{
	struct fake_statements *world = *state;
	struct statement *told = statement_open_as(&world->table, 7, "told\0\0", 7);
	struct statement *early = statement_open_as(&world->table, 3, "early\0\0", 8);
	struct statement *ours = fake_statements_open(world, "ours");

	assert_int_equal(told->id, 7);
	assert_int_equal(early->id, 3);
	assert_int_equal(ours->id, 8);
	statement_unref(told);
	statement_unref(early);
	statement_unref(ours);
}

static void test_two_workers_of_the_old_process_had_a_text_with_two_ids(void **state)
{
	struct fake_statements *world = *state;
	struct statement *first = statement_open_as(&world->table, 5, "text\0\0", 7);
	struct statement *other = statement_open_as(&world->table, 9, "text\0\0", 7);
	struct statement *either = statement_open(&world->table, "text\0\0", 7);

	assert_int_equal(first->id, 5);
	assert_int_equal(other->id, 9);
	assert_true(either == first || either == other);
	statement_unref(either);
	statement_unref(other);
	fake_statements_turn(world);
	either = statement_open(&world->table, "text\0\0", 7);
	assert_ptr_equal(either, first);
	statement_unref(either);
	statement_unref(first);
}

static void test_longest_id_fits_into_a_name(void **state)
{
	struct fake_statements *world = *state;
	struct statement *last = statement_open_as(&world->table, INT64_MAX, "last\0\0", 7);

	assert_string_equal(last->name, "PGBOUNCER_9223372036854775807");
	assert_int_equal(last->name_size, strlen(last->name) + 1);
	statement_unref(last);
}

int main(void)
{
#define TEST(name)                                                                             \
	cmocka_unit_test_setup_teardown(                                                       \
		test_##name, fake_statements_set_up, fake_statements_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_same_content_is_the_same_statement),
		TEST(types_belong_to_the_content),
		TEST(only_contents_of_a_parse_are_valid),
		TEST(what_sql_prepares_is_another_statement),
		TEST(no_parse_is_taken_for_sql),
		TEST(statements_that_may_name_others_are_marked),
		TEST(ids_are_never_reused),
		TEST(statement_is_kept_until_the_end_of_the_turn),
		TEST(ids_of_the_old_process_are_kept),
		TEST(two_workers_of_the_old_process_had_a_text_with_two_ids),
		TEST(longest_id_fits_into_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
