/* SPDX-License-Identifier: ISC */
/* Each limit: what counts, what is refused, and that everything is uncounted in the end. */
#include "support/fakes/fake_pool.h"

static struct pool *pool;
static struct client_link clients[4];

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\n"
		   "db = host=/tmp max_db_connections=2 max_db_client_connections=2\n"
		   "free = host=/tmp\n"
		   "[users]\n"
		   "alice = max_user_connections=1 max_user_client_connections=2\n"
		   "[pgbouncer]\n"
		   "max_client_conn = 3\n");
	pool = fake_pool("db", "alice");
	memset(clients, 0, sizeof(clients));
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i].link.stream.loop = &fake_loop;
	return 0;
}

static void test_sockets_are_counted_against_max_client_conn(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		limits_take_socket(&fake_registry);
		assert_true(limits_allow_client(&fake_registry, false));
	}
	limits_take_socket(&fake_registry);
	assert_false(limits_allow_client(&fake_registry, false));
	assert_true(limits_allow_client(&fake_registry, true));
	limits_give_socket(&fake_registry);
	assert_true(limits_allow_client(&fake_registry, false));
	for (int i = 0; i < 3; i++)
		limits_give_socket(&fake_registry);
}

static void test_max_client_conn_0_allows_only_the_console(void **state)
{
	(void)state;
	fake_set("max_client_conn", "0");
	limits_take_socket(&fake_registry);
	assert_false(limits_allow_client(&fake_registry, false));
	assert_true(limits_allow_client(&fake_registry, true));
	limits_give_socket(&fake_registry);
}

static void test_client_above_the_limit_of_a_database_is_counted(void **state)
{
	struct database *database = pool->database;

	(void)state;
	assert_true(limits_take_database(&clients[0], database, false));
	assert_true(limits_take_database(&clients[1], database, false));
	assert_false(limits_take_database(&clients[2], database, false));
	assert_true(limits_take_database(&clients[3], database, true));
	assert_int_equal(database->clients, 4);
	for (size_t i = 0; i < COUNT(clients); i++)
		limits_give_client(&clients[i]);
	assert_int_equal(database->clients, 0);
}

static void test_client_above_the_limit_of_a_user_is_counted(void **state)
{
	struct user *user = pool->user;

	(void)state;
	assert_true(limits_take_user(&clients[0], user, false));
	assert_true(limits_take_user(&clients[1], user, false));
	assert_false(limits_take_user(&clients[2], user, false));
	assert_true(limits_take_user(&clients[3], user, true));
	assert_int_equal(user->clients, 4);
	for (size_t i = 0; i < COUNT(clients); i++)
		limits_give_client(&clients[i]);
	assert_int_equal(user->clients, 0);
}

static void test_client_is_uncounted_once_and_only_where_it_counted(void **state)
{
	(void)state;
	limits_give_client(&clients[0]);
	limits_take_database(&clients[0], pool->database, false);
	limits_give_client(&clients[0]);
	limits_give_client(&clients[0]);
	assert_int_equal(pool->database->clients, 0);
	limits_take_user(&clients[0], pool->user, false);
	assert_int_equal(pool->user->clients, 1);
	limits_give_client(&clients[0]);
	limits_give_client(&clients[0]);
	assert_int_equal(pool->user->clients, 0);
}

static void test_without_a_limit_all_clients_are_allowed(void **state)
{
	struct pool *other = fake_pool("free", "bob");

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++) {
		assert_true(limits_take_database(&clients[i], other->database, false));
		assert_true(limits_take_user(&clients[i], other->user, false));
	}
	for (size_t i = 0; i < COUNT(clients); i++)
		limits_give_client(&clients[i]);
}

static void test_dropped_database_is_freed_with_its_last_client(void **state)
{
	struct database *database = registry_open_database(&fake_registry, "free", NULL);

	(void)state;
	limits_take_database(&clients[0], database, false);
	limits_take_database(&clients[1], database, false);
	registry_drop_database(database);
	limits_give_client(&clients[0]);
	assert_int_equal(database->clients, 1);
	assert_string_equal(database->name, "free");
	limits_give_client(
		&clients[1]); /* the leak check and the sanitizer find other errors */
	assert_null(registry_find_database(&fake_registry, "free"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(sockets_are_counted_against_max_client_conn),
		TEST(max_client_conn_0_allows_only_the_console),
		TEST(client_above_the_limit_of_a_database_is_counted),
		TEST(client_above_the_limit_of_a_user_is_counted),
		TEST(client_is_uncounted_once_and_only_where_it_counted),
		TEST(without_a_limit_all_clients_are_allowed),
		TEST(dropped_database_is_freed_with_its_last_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
