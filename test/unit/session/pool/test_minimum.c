/* SPDX-License-Identifier: ISC */
/* min_pool_size: how a pool is filled, and for how long it is kept without clients. */
#include <errno.h>

#include "daemon/janitor.h"
#include "session/link/close.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"

static const char scram[] = "SCRAM-SHA-256$4096:7DZKr29GM3HbAGlzPgQCrA==$"
			    "GGIFaXTXKzYfQjJQpmNLaJmNS5GXEFnbqIbIDlgUpfQ=:"
			    "GGIFaXTXKzYfQjJQpmNLaJmNS5GXEFnbqIbIDlgUpfQ=";

static struct janitor janitor;
static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n* = host=/tmp\n[pgbouncer]\n"
		   "pool_mode = transaction\nserver_reset_query =\nserver_check_query =\n"
		   "min_pool_size = 6\nserver_login_concurrency = 4\n"
		   "server_idle_timeout = 20\nserver_login_retry = 10\n");
	pool = fake_pool("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
	return 0;
}

static int stop(void **state)
{
	janitor_stop(&janitor);
	return fake_end(state);
}

static unsigned logins(void)
{
	return pool->server_count[SERVERS_LOGIN];
}

static void log_in(struct endpoint *server)
{
	assert_non_null(server);
	fake_connected(server, 0);
	postgres_work(server);
}

/* All logins that are in progress, and those that follow, succeed. */
static void log_in_all(void)
{
	struct endpoint *server;

	while ((server = fake_launched()) != NULL)
		log_in(server);
}

static void run_upkeep(void)
{
	fake_advance(USEC_PER_SEC / 2);
}

/* --- filling ------------------------------------------------------------------------------ */

static void test_pool_in_use_is_filled_by_several_logins(void **state)
{
	(void)state;
	fake_client(pool);
	run_upkeep();
	assert_int_equal(logins(), 4);
	/* The next login begins when one has ended, not at the next upkeep. */
	log_in(fake_launched());
	assert_int_equal(logins(), 4);
	log_in(fake_launched());
	assert_int_equal(logins(), 4);
	log_in_all();
	run_upkeep();
	assert_int_equal(logins(), 0);
	assert_int_equal(pool_connected_servers(pool), 6);
}

static void test_cold_pool_is_filled_when_its_first_login_has_succeeded(void **state)
{
	(void)state;
	fake_user("alice", "secret");
	pool_forget_welcome(pool);
	run_upkeep();
	run_upkeep();
	assert_int_equal(logins(), 1);
	log_in(fake_launched());
	assert_int_equal(logins(), 4);
}

static void test_pool_size_and_shared_limits_are_kept(void **state)
{
	(void)state;
	fake_client(pool);
	fake_set("default_pool_size", "3");
	run_upkeep();
	log_in_all();
	run_upkeep();
	assert_int_equal(pool_servers(pool), 3);
	fake_set("default_pool_size", "20");
	fake_set("max_db_connections", "5");
	run_upkeep();
	log_in_all();
	run_upkeep();
	assert_int_equal(pool_servers(pool), 5);
}

/* --- without clients ---------------------------------------------------------------------- */

static void assert_kept(bool kept)
{
	run_upkeep();
	log_in_all();
	run_upkeep();
	assert_int_equal(pool_servers(pool), kept ? 6 : 0);
}

static void test_pool_with_a_known_secret_is_filled_without_clients(void **state)
{
	(void)state;
	fake_user("alice", "secret");
	assert_kept(true);
}

static void test_pool_without_a_secret_is_not_filled_without_clients(void **state)
{
	(void)state;
	assert_kept(false);
}

static void test_secret_learnt_from_a_client_is_enough(void **state)
{
	struct credential *credential = credential_new("secret", 6);

	(void)state;
	pool_set_credential(pool, credential);
	credential_unref(credential);
	assert_kept(true);
}

static void test_scram_secret_needs_the_keys_of_a_client(void **state)
{
	struct user *user = fake_user("alice", scram);

	(void)state;
	assert_kept(false);
	assert_non_null(user_keys(user));
	assert_kept(false);
	user->keys->client_key_known = true;
	assert_kept(true);
}

static void test_lost_server_is_launched_again_without_clients(void **state)
{
	struct link *link;

	(void)state;
	fake_user("alice", "secret");
	assert_kept(true);
	link = TAILQ_FIRST(&pool->servers[SERVERS_IDLE]);
	server_close_for(server_of(link), REASON_SERVER_CONN_CRASHED);
	assert_int_equal(pool_servers(pool), 5);
	assert_kept(true);
}

static void test_rejected_user_is_not_tried_again_without_clients(void **state)
{
	struct endpoint *server;

	(void)state;
	fake_user("alice", "wrong");
	pool_forget_welcome(pool);
	run_upkeep();
	server = fake_launched();
	fake_connected(server, 0);
	send_error(server, "28P01", "password authentication failed");
	assert_true(pool->failing);
	fake_advance(60 * USEC_PER_SEC);
	assert_null(fake_launched());
	/* A client tries it again. */
	fake_client(pool);
	run_upkeep();
	assert_non_null(fake_launched());
}

static void test_failure_that_may_pass_is_tried_again_without_clients(void **state)
{
	(void)state;
	fake_user("alice", "secret");
	pool_forget_welcome(pool);
	run_upkeep();
	fake_connected(fake_launched(), ECONNREFUSED);
	fake_advance(5 * USEC_PER_SEC);
	assert_null(fake_launched());
	fake_advance(6 * USEC_PER_SEC);
	log_in_all();
	assert_kept(true);
}

static void test_pool_idle_timeout_gives_up_a_pool_without_clients(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("pool_idle_timeout", "100");
	fake_user("alice", "secret");
	assert_kept(true);
	client = fake_client(pool);
	fake_advance(120 * USEC_PER_SEC);
	assert_int_equal(pool_connected_servers(pool), 6);
	disconnect(client);
	fake_advance(99 * USEC_PER_SEC);
	assert_int_equal(pool_connected_servers(pool), 6);
	fake_advance(2 * USEC_PER_SEC);
	/* Its servers have been idle for server_idle_timeout. */
	assert_int_equal(pool_servers(pool), 0);
	assert_null(fake_launched());
	fake_advance(101 * USEC_PER_SEC);
	assert_true(fake_logged("cleaning up idle pool for user alice on db db"));
}

static void test_automatic_database_is_given_up_after_its_time(void **state)
{
	(void)state;
	fake_set("autodb_idle_timeout", "100");
	fake_user("alice", "secret");
	pool = fake_pool("any", "alice");
	assert_non_null(pool->database->own_config);
	run_upkeep();
	log_in_all();
	fake_advance(90 * USEC_PER_SEC);
	assert_int_equal(pool_connected_servers(pool), 6);
	fake_advance(20 * USEC_PER_SEC);
	assert_int_equal(pool_servers(pool), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(pool_in_use_is_filled_by_several_logins),
		TEST(cold_pool_is_filled_when_its_first_login_has_succeeded),
		TEST(pool_size_and_shared_limits_are_kept),
		TEST(pool_with_a_known_secret_is_filled_without_clients),
		TEST(pool_without_a_secret_is_not_filled_without_clients),
		TEST(secret_learnt_from_a_client_is_enough),
		TEST(scram_secret_needs_the_keys_of_a_client),
		TEST(lost_server_is_launched_again_without_clients),
		TEST(rejected_user_is_not_tried_again_without_clients),
		TEST(failure_that_may_pass_is_tried_again_without_clients),
		TEST(pool_idle_timeout_gives_up_a_pool_without_clients),
		TEST(automatic_database_is_given_up_after_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
