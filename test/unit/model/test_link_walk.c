/* SPDX-License-Identifier: ISC */
/* A walk meets everybody who is there all the time, once, whatever happens between two steps. */
#include "model/link_walk.h"
#include "session/link/close.h"
#include "support/fake_pool.h"

enum { MANY = 20 };

static struct actor *clients[MANY];
static struct link_walk walk;

static int start(void **state)
{
	struct pool *pool;

	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\nauth_type = trust\n");
	pool = fake_pool("db", "alice");
	for (unsigned i = 0; i < MANY; i++)
		clients[i] = fake_client(pool);
	link_walk_begin(&walk, &fake_registry);
	return 0;
}

static int end(void **state)
{
	link_walk_end(&walk);
	assert_true(LIST_EMPTY(&fake_registry.walks));
	return fake_end(state);
}

static void drop(unsigned i)
{
	client_close_for(actor_client(clients[i]), REASON_CLIENT_UNEXPECTED_EOF);
	fake_turn();
}

static void assert_next(unsigned i)
{
	assert_ptr_equal(link_walk_next(&walk), actor_link(clients[i]));
}

static void test_links_are_met_as_they_came(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		assert_next(i);
	assert_null(link_walk_next(&walk));
	assert_null(link_walk_next(&walk));
}

static void test_who_goes_is_stepped_over(void **state)
{
	(void)state;
	drop(0); /* the next */
	assert_next(1);
	drop(1); /* the last one met */
	drop(2); /* the next two */
	drop(3);
	assert_next(4);
	drop(7); /* one further on */
	assert_next(5);
	assert_next(6);
	assert_next(8);
	for (unsigned i = 9; i < MANY; i++)
		drop(i);
	assert_null(link_walk_next(&walk));
}

static void test_walks_do_not_mind_each_other(void **state)
{
	struct link_walk other;

	(void)state;
	assert_next(0);
	link_walk_begin(&other, &fake_registry);
	drop(1);
	drop(0);
	assert_next(2);
	assert_ptr_equal(link_walk_next(&other), actor_link(clients[2]));
	link_walk_end(&other);
	assert_next(3);
}

static void test_who_moves_to_another_list_keeps_the_place(void **state)
{
	(void)state;
	assert_next(0);
	say_query(clients[1], "SELECT 1"); /* it waits now */
	say_query(clients[0], "SELECT 1");
	for (unsigned i = 1; i < MANY; i++)
		assert_next(i);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_links_are_met_as_they_came),
		TEST(test_who_goes_is_stepped_over),
		TEST(test_walks_do_not_mind_each_other),
		TEST(test_who_moves_to_another_list_keeps_the_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
