/* SPDX-License-Identifier: ISC */
/*
 * The present and expected statements of a server, in order of use, compared with a plain list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/server_statements.h"
#include "support/fakes/fake_statements.h"

enum { STATEMENTS = 40, STEPS = 20000 };

struct book {
	struct fake_statements *world;
	struct server_statements *statements;
	struct statement *known[STATEMENTS]; /* references */
};

static int set_up(void **state)
{
	struct book *book = calloc(1, sizeof(*book));
	char query[16];

	if (!book || fake_statements_set_up((void **)&book->world) != 0)
		return -1;
	book->statements = server_statements_new();
	for (unsigned i = 0; i < STATEMENTS; i++) {
		snprintf(query, sizeof(query), "SELECT %u", i);
		book->known[i] = fake_statements_open(book->world, query);
	}
	*state = book;
	return book->statements ? 0 : -1;
}

static int tear_down(void **state)
{
	struct book *book = *state;
	int ended;

	server_statements_free(book->statements);
	for (unsigned i = 0; i < STATEMENTS; i++) {
		if (book->known[i]->servers > 0)
			return -1;
		statement_unref(book->known[i]);
	}
	ended = fake_statements_tear_down((void **)&book->world);
	free(book);
	return ended;
}

static struct server_statement *expect(struct book *book, unsigned number, bool expected)
{
	struct server_statement *entry =
		server_statements_open(book->statements, book->known[number]);

	assert_non_null(entry);
	server_statements_expect(book->statements, entry, expected);
	return entry;
}

static void assert_oldest(const struct book *book, unsigned number)
{
	const struct server_statement *oldest = server_statements_oldest(book->statements);

	assert_non_null(oldest);
	assert_ptr_equal(oldest->statement, book->known[number]);
}

static void test_least_recently_used_is_the_oldest(void **state)
{
	struct book *book = *state;
	struct server_statement *first = expect(book, 0, true);

	expect(book, 1, true);
	expect(book, 2, true);
	assert_oldest(book, 0);
	server_statements_touch(book->statements, first);
	assert_oldest(book, 1);
	server_statements_touch(book->statements, first);
	assert_oldest(book, 1);
	assert_int_equal(book->statements->count, 3);
	assert_int_equal(book->statements->bytes, 3 * book->known[0]->length);
	assert_int_equal(book->known[0]->servers, 1);
}

static void test_unexpected_statements_are_not_counted(void **state)
{
	struct book *book = *state;
	struct server_statement *entry = expect(book, 0, true);

	entry->present = true;
	server_statements_expect(book->statements, entry, false);
	assert_int_equal(book->statements->count, 0);
	assert_int_equal(book->statements->bytes, 0);
	assert_int_equal(book->known[0]->servers, 0);
	assert_null(server_statements_oldest(book->statements));
	server_statements_settle(book->statements, entry);
	assert_ptr_equal(server_statements_find(book->statements, book->known[0]), entry);
	entry->present = false;
	server_statements_settle(book->statements, entry);
	assert_null(server_statements_find(book->statements, book->known[0]));
}

static void test_statement_in_flight_is_kept(void **state)
{
	struct book *book = *state;
	struct server_statement *entry = expect(book, 0, false);

	entry->changes = 1;
	server_statements_settle(book->statements, entry);
	assert_non_null(server_statements_find(book->statements, book->known[0]));
}

static void test_deallocate_all_keeps_later_operations(void **state)
{
	struct book *book = *state;
	struct server_statement *coming = expect(book, 1, true);

	expect(book, 0, true)->present = true;
	coming->changes = 1;
	server_statements_clear(book->statements);
	assert_null(server_statements_find(book->statements, book->known[0]));
	assert_int_equal(book->statements->count, 1);
	assert_oldest(book, 1);
}

static void test_distrusted_plans_are_outdated_on_all_servers(void **state)
{
	struct book *book = *state;
	struct server_statement *entry = expect(book, 0, true);

	entry->present = true;
	entry->generation = book->known[0]->generation;
	server_statements_distrust(book->statements);
	assert_int_not_equal(entry->generation, book->known[0]->generation);
	assert_int_equal(book->known[1]->generation, 0);
}

/* Numbers, most recently used first. */
struct expected {
	unsigned numbers[STATEMENTS], count;
};

static void remove_from(struct expected *expected, unsigned number)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < expected->count; i++) {
		if (expected->numbers[i] != number)
			expected->numbers[kept++] = expected->numbers[i];
	}
	expected->count = kept;
}

static void put_first(struct expected *expected, unsigned number)
{
	remove_from(expected, number);
	memmove(expected->numbers + 1, expected->numbers,
		expected->count++ * sizeof(expected->numbers[0]));
	expected->numbers[0] = number;
}

static void assert_as(const struct book *book, const struct expected *expected)
{
	const struct server_statement *entry;
	unsigned i = 0;

	assert_int_equal(book->statements->count, expected->count);
	TAILQ_FOREACH (entry, &book->statements->recency, recency)
		assert_ptr_equal(entry->statement, book->known[expected->numbers[i++]]);
	assert_int_equal(i, expected->count);
}

static void test_random_operations_agree_with_a_plain_list(void **state)
{
	struct book *book = *state;
	struct expected expected = {.count = 0};
	struct server_statement *entry;
	struct random random;

	random_init(&random);
	random_seed(&random, 12);
	for (unsigned i = 0; i < STEPS; i++) {
		const unsigned number = (unsigned)random_below(&random, STATEMENTS);

		entry = server_statements_find(book->statements, book->known[number]);
		if (!entry || random_below(&random, 3) == 0) {
			expect(book, number, true);
			put_first(&expected, number);
		} else if (random_below(&random, 2) == 0) {
			server_statements_touch(book->statements, entry);
			put_first(&expected, number);
		} else {
			server_statements_expect(book->statements, entry, false);
			server_statements_settle(book->statements, entry);
			remove_from(&expected, number);
		}
		assert_as(book, &expected);
	}
}

static void push(struct book *book, uint64_t mark)
{
	assert_true(server_statements_reserve(book->statements, 1));
	/* The pointer is only a mark, and never dereferenced. */
	server_statements_push(book->statements,
		&(struct statement_operation){
			.kind = STATEMENT_PREPARED,
			.client = (struct client_statement *)(uintptr_t)mark,
		});
}

static void assert_popped(struct book *book, uint64_t mark)
{
	struct statement_operation operation;

	assert_ptr_equal(server_statements_next(book->statements)->client,
		(struct client_statement *)(uintptr_t)mark);
	assert_true(server_statements_pop(book->statements, &operation));
	assert_ptr_equal(operation.client, (struct client_statement *)(uintptr_t)mark);
}

static void test_operations_are_removed_in_order(void **state)
{
	struct book *book = *state;
	struct statement_operation operation;
	struct random random;
	uint64_t in = 0, out = 0;

	random_init(&random);
	random_seed(&random, 13);
	for (unsigned round = 0; round < 200; round++) {
		for (uint64_t more = random_below(&random, 90); more > 0; more--)
			push(book, ++in);
		for (uint64_t less = random_below(&random, 90); less > 0 && out < in; less--)
			assert_popped(book, ++out);
		assert_int_equal(book->statements->in_flight, in - out);
	}
	while (out < in)
		assert_popped(book, ++out);
	assert_null(server_statements_next(book->statements));
	assert_false(server_statements_pop(book->statements, &operation));
}

static void test_memory_of_a_long_pipeline_is_freed(void **state)
{
	struct book *book = *state;

	for (uint64_t i = 1; i <= 1000; i++)
		push(book, i);
	assert_true(book->statements->capacity >= 1000);
	for (uint64_t i = 1; i <= 1000; i++)
		assert_popped(book, i);
	assert_null(book->statements->operations);
	push(book, 1);
	assert_popped(book, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(least_recently_used_is_the_oldest),
		TEST(unexpected_statements_are_not_counted),
		TEST(statement_in_flight_is_kept),
		TEST(deallocate_all_keeps_later_operations),
		TEST(distrusted_plans_are_outdated_on_all_servers),
		TEST(random_operations_agree_with_a_plain_list),
		TEST(operations_are_removed_in_order),
		TEST(memory_of_a_long_pipeline_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
