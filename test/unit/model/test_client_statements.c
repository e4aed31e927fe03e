/* SPDX-License-Identifier: ISC */
/* The names that a client has for statements, compared with a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/client_statements.h"
#include "support/fakes/fake_statements.h"

enum { NAMES = 300, STEPS = 20000 };

struct names {
	struct fake_statements *world;
	struct client_statements *own;
};

static int set_up(void **state)
{
	struct names *names = calloc(1, sizeof(*names));

	if (!names || fake_statements_set_up((void **)&names->world) != 0)
		return -1;
	names->own = client_statements_new(&names->world->table);
	*state = names;
	return names->own ? 0 : -1;
}

static int tear_down(void **state)
{
	struct names *names = *state;
	int ended;

	client_statements_free(names->own);
	ended = fake_statements_tear_down((void **)&names->world);
	free(names);
	return ended;
}

/* Add a name for a query; the name has the only reference to the statement. */
static struct client_statement *add(struct names *names, const char *name, const char *query)
{
	struct statement *statement = fake_statements_open(names->world, query);
	struct client_statement *entry = client_statements_add(names->own, name, statement);

	assert_non_null(entry);
	statement_unref(statement);
	return entry;
}

static struct client_statement *find(struct names *names, const char *name)
{
	return client_statements_find(names->own, name, strlen(name) + 1);
}

static void assert_is(struct names *names, const char *name, const char *query)
{
	struct client_statement *entry = find(names, name);

	assert_non_null(entry);
	assert_string_equal(statement_text(entry->statement), query);
}

static void test_name_finds_its_statement(void **state)
{
	struct names *names = *state;

	assert_null(find(names, "a"));
	add(names, "a", "SELECT 1");
	add(names, "", "SELECT 2");
	add(names, "A", "SELECT 1");
	assert_is(names, "a", "SELECT 1");
	assert_is(names, "", "SELECT 2");
	assert_is(names, "A", "SELECT 1");
	assert_null(find(names, "b"));
	assert_int_equal(names->own->count, 3);
	assert_int_equal(names->world->table.count, 2);
}

static void test_closed_name_is_not_found(void **state)
{
	struct names *names = *state;

	client_statements_unlist(names->own, add(names, "a", "SELECT 1"));
	assert_null(find(names, "a"));
	assert_int_equal(names->own->count, 0);
	assert_int_equal(names->own->bytes, 0);
	fake_statements_turn(names->world);
	assert_int_equal(names->world->table.count, 0);
}

static void test_operations_in_flight_keep_a_closed_name(void **state)
{
	struct names *names = *state;
	struct client_statement *entry = add(names, "a", "SELECT 1");

	entry->pending = 2;
	client_statements_unlist(names->own, entry);
	assert_null(find(names, "a"));
	client_statements_settle(names->own, entry);
	assert_string_equal(entry->name, "a");
	assert_true(client_statements_relist(names->own, entry));
	client_statements_settle(names->own, entry);
	assert_is(names, "a", "SELECT 1");
}

static void test_relisted_name_replaces_another(void **state)
{
	struct names *names = *state;
	struct client_statement *entry = add(names, "a", "SELECT 1");

	entry->pending = 1;
	client_statements_unlist(names->own, entry);
	add(names, "a", "SELECT 2");
	assert_true(client_statements_relist(names->own, entry));
	client_statements_settle(names->own, entry);
	assert_is(names, "a", "SELECT 1");
	assert_int_equal(names->own->count, 1);
}

static void test_unlisted_name_is_freed_with_its_operation(void **state)
{
	struct names *names = *state;
	struct statement *statement = fake_statements_open(names->world, "SELECT 1");
	struct client_statement *entry =
		client_statements_add_unlisted(names->own, "a", statement);

	statement_unref(statement);
	assert_null(find(names, "a"));
	assert_int_equal(entry->pending, 1);
	assert_int_equal(statement->names, 1);
	client_statements_settle(names->own, entry);
	assert_int_equal(names->own->bytes, 0);
	assert_int_equal(statement->names, 0);
}

static void test_deallocate_all_keeps_names_in_flight(void **state)
{
	struct names *names = *state;
	struct client_statement *flying;
	char name[16];

	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		add(names, name, "SELECT 1")->confirmed = true;
	}
	flying = add(names, "flying", "SELECT 1");
	flying->confirmed = true;
	flying->pending = 1;
	add(names, "asked for", "SELECT 1");
	client_statements_clear(names->own);
	assert_int_equal(names->own->count, 2);
	assert_is(names, "flying", "SELECT 1");
	assert_is(names, "asked for", "SELECT 1");
	client_statements_settle(names->own, flying);
}

static void test_closed_statement_of_a_client_is_remembered(void **state)
{
	struct names *names = *state;
	struct statement *statement = fake_statements_open(names->world, "SELECT 1"), *other;
	struct client_statement *entry;
	char query[16];

	assert_false(client_statements_had(names->own, statement));
	entry = client_statements_add(names->own, "a", statement);
	assert_true(client_statements_had(names->own, statement));
	client_statements_note_closed(names->own, statement);
	client_statements_unlist(names->own, entry);
	assert_true(client_statements_had(names->own, statement));
	for (unsigned i = 0; i < CLOSED_STATEMENTS; i++) {
		assert_true(client_statements_had(names->own, statement));
		snprintf(query, sizeof(query), "SELECT %u", i + 10);
		other = fake_statements_open(names->world, query);
		client_statements_note_closed(names->own, other);
		statement_unref(other);
	}
	assert_false(client_statements_had(names->own, statement));
	statement_unref(statement);
}

/* The expected contents, as a plain array. */
struct expected {
	char query[NAMES][16]; /* empty: the name is not used */
	unsigned count;
};

static void step(struct names *names, struct expected *expected, struct random *random)
{
	const unsigned number = (unsigned)random_below(random, NAMES);
	char *query = expected->query[number];
	char name[16];

	snprintf(name, sizeof(name), "%u", number);
	if (query[0] == '\0') {
		snprintf(query, sizeof(expected->query[0]), "SELECT %u",
			(unsigned)random_below(random, 50));
		add(names, name, query);
		expected->count++;
	} else if (random_below(random, 2) == 0) {
		client_statements_unlist(names->own, find(names, name));
		query[0] = '\0';
		expected->count--;
	}
	if (query[0] != '\0')
		assert_is(names, name, query);
	else
		assert_null(find(names, name));
	assert_int_equal(names->own->count, expected->count);
}

static void test_random_operations_agree_with_a_plain_list(void **state)
{
	static struct expected expected;
	struct names *names = *state;
	struct random random;
	char name[16];

	random_init(&random);
	random_seed(&random, 11);
	expected = (struct expected){.count = 0};
	for (unsigned i = 0; i < STEPS; i++)
		step(names, &expected, &random);
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "%u", i);
		if (expected.query[i][0] != '\0')
			assert_is(names, name, expected.query[i]);
		else
			assert_null(find(names, name));
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(name_finds_its_statement),
		TEST(closed_name_is_not_found),
		TEST(operations_in_flight_keep_a_closed_name),
		TEST(relisted_name_replaces_another),
		TEST(unlisted_name_is_freed_with_its_operation),
		TEST(deallocate_all_keeps_names_in_flight),
		TEST(closed_statement_of_a_client_is_remembered),
		TEST(random_operations_agree_with_a_plain_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
