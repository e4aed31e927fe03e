/* SPDX-License-Identifier: ISC */
/* A walk visits each link that is open all the time once, while other links change. */
#include "model/link_walk.h"
#include "session/link/close.h"
#include "support/fakes/fake_pool.h"

enum { MANY = 20 };

static struct endpoint *clients[MANY];
static struct link_walk walk;

static int start(void **state)
{
	struct pool *pool;

	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\nauth_type = trust\n");
	pool = fake_pool("db", "alice");
	for (unsigned i = 0; i < MANY; i++)
		clients[i] = fake_client(pool);
	link_walk_begin(&walk, &fake_process);
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
	client_close_for(endpoint_client(clients[i]), REASON_CLIENT_UNEXPECTED_EOF);
	fake_turn();
}

static void assert_next(unsigned i)
{
	assert_ptr_equal(link_walk_next(&walk), endpoint_link(clients[i]));
}

static void test_links_are_visited_oldest_first(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		assert_next(i);
	assert_null(link_walk_next(&walk));
	assert_null(link_walk_next(&walk));
}

static void test_closed_links_are_skipped(void **state)
{
	(void)state;
	drop(0); /* the next one */
	assert_next(1);
	drop(1); /* the one visited last */
	drop(2); /* the next two */
	drop(3);
	assert_next(4);
	drop(7); /* a later one */
	assert_next(5);
	assert_next(6);
	assert_next(8);
	for (unsigned i = 9; i < MANY; i++)
		drop(i);
	assert_null(link_walk_next(&walk));
}

static void test_walks_are_independent(void **state)
{
	struct link_walk other;

	(void)state;
	assert_next(0);
	link_walk_begin(&other, &fake_process);
	drop(1);
	drop(0);
	assert_next(2);
	assert_ptr_equal(link_walk_next(&other), endpoint_link(clients[2]));
	link_walk_end(&other);
	assert_next(3);
}

static void test_link_that_changes_its_list_keeps_its_place(void **state)
{
	(void)state;
	assert_next(0);
	send_query(clients[1], "SELECT 1"); /* the client waits now */
	send_query(clients[0], "SELECT 1");
	for (unsigned i = 1; i < MANY; i++)
		assert_next(i);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_links_are_visited_oldest_first),
		TEST(test_closed_links_are_skipped),
		TEST(test_walks_are_independent),
		TEST(test_link_that_changes_its_list_keeps_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
