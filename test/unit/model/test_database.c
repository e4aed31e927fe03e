/* SPDX-License-Identifier: ISC */
/* Sizes and limits of a database: its own value, else that of the settings. */
#include "support/fakes/fake_pool.h"

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\n"
		   "plain = host=/tmp\n"
		   "own = host=/tmp pool_size=2 min_pool_size=3 reserve_pool_size=4 "
		   "max_db_connections=5 max_db_client_connections=6 server_lifetime=7\n"
		   "zero = host=/tmp pool_size=0 min_pool_size=0 reserve_pool_size=0 "
		   "max_db_connections=0 max_db_client_connections=0 server_lifetime=0\n"
		   "[pgbouncer]\n"
		   "default_pool_size = 12\n"
		   "min_pool_size = 13\n"
		   "reserve_pool_size = 14\n"
		   "max_db_connections = 15\n"
		   "max_db_client_connections = 16\n"
		   "server_lifetime = 17\n");
	return 0;
}

static void assert_sizes(const char *name, int pool_size, int min_pool_size, int reserve,
	int servers, int clients, int lifetime)
{
	const struct settings *settings = fake_registry.process->settings;
	const struct database *database = registry_find_database(&fake_registry, name);

	assert_non_null(database);
	assert_int_equal(database_pool_size(database, settings), pool_size);
	assert_int_equal(database_min_pool_size(database, settings), min_pool_size);
	assert_int_equal(database_reserve_pool_size(database, settings), reserve);
	assert_int_equal(database_max_servers(database, settings), servers);
	assert_int_equal(database_max_clients(database, settings), clients);
	assert_int_equal(database_server_lifetime(database, settings), lifetime * USEC_PER_SEC);
}

static void test_database_without_values_uses_the_settings(void **state)
{
	(void)state;
	assert_sizes("plain", 12, 13, 14, 15, 16, 17);
}

static void test_own_values_override_the_settings(void **state)
{
	(void)state;
	assert_sizes("own", 2, 3, 4, 5, 6, 7);
}

static void test_zero_is_a_size_but_not_a_limit(void **state)
{
	(void)state;
	assert_sizes("zero", 0, 0, 0, 15, 16, 17);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(database_without_values_uses_the_settings),
		TEST(own_values_override_the_settings),
		TEST(zero_is_a_size_but_not_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
