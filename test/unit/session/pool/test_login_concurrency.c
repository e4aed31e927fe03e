/* SPDX-License-Identifier: ISC */
/* How many logins of a pool are in progress at the same time, and what one that fails means. */
#include <errno.h>

#include "session/pool/launch.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"

static struct pool *pool;
static struct endpoint *clients[10];

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\n"
		   "pool_mode = transaction\nserver_reset_query =\nquery_wait_notify = 0\n"
		   "query_wait_timeout = 0\ndefault_pool_size = 20\n"
		   "server_login_concurrency = 4\n");
	pool = fake_pool("db", "alice");
	return 0;
}

/* So many clients wait for the end of a query. */
static void let_wait(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		clients[i] = fake_client(pool);
		send_query(clients[i], "slow");
	}
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

static void refuse(struct endpoint *server, const char *sqlstate)
{
	assert_non_null(server);
	fake_connected(server, 0);
	assert_received(server, "^");
	send_error(server, sqlstate, "no");
	assert_closed(server);
}

static void do_pool_work(void)
{
	pool_needs_work(pool);
	fake_turn();
}

/* --- how many ----------------------------------------------------------------------------- */

static void test_each_waiting_client_gets_a_login(void **state)
{
	struct endpoint *servers[3];

	(void)state;
	let_wait(3);
	assert_int_equal(logins(), 3);
	do_pool_work();
	assert_int_equal(logins(), 3);
	for (size_t i = 0; i < COUNT(servers); i++)
		servers[i] = fake_launched();
	for (size_t i = 0; i < COUNT(servers); i++)
		log_in(servers[i]);
	for (size_t i = 0; i < COUNT(servers); i++)
		assert_state(clients[i], CLIENT_PAIRED);
	assert_null(fake_launched());
}

static void test_server_login_concurrency_is_a_limit(void **state)
{
	(void)state;
	let_wait(6);
	assert_int_equal(logins(), 4);
	/* A login that has succeeded lets the next one begin. */
	log_in(fake_launched());
	assert_int_equal(logins(), 4);
	assert_int_equal(pool_servers(pool), 5);
	log_in(fake_launched());
	assert_int_equal(logins(), 4);
	log_in(fake_launched());
	assert_int_equal(logins(), 3);
}

/* setting: server_login_concurrency */
static void test_server_login_concurrency_1_is_one_login_at_a_time(void **state)
{
	(void)state;
	fake_set("server_login_concurrency", "1");
	let_wait(3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(logins(), 1);
		log_in(fake_launched());
		assert_state(clients[i], CLIENT_PAIRED);
	}
	assert_int_equal(logins(), 0);
}

static void test_server_login_concurrency_0_is_no_limit(void **state)
{
	(void)state;
	fake_set("server_login_concurrency", "0");
	let_wait(10);
	assert_int_equal(logins(), 10);
}

static void test_pool_size_is_a_limit_for_logins_in_progress(void **state)
{
	(void)state;
	fake_set("default_pool_size", "3");
	let_wait(6);
	assert_int_equal(logins(), 3);
}

static void test_client_that_has_gone_gets_no_login(void **state)
{
	(void)state;
	let_wait(5);
	disconnect(clients[4]);
	log_in(fake_launched());
	assert_int_equal(logins(), 3);
	assert_int_equal(pool_servers(pool), 4);
}

static void test_pool_without_a_welcome_tries_one_login_first(void **state)
{
	(void)state;
	pool_forget_welcome(pool);
	let_wait(4);
	assert_int_equal(logins(), 1);
	log_in(fake_launched());
	assert_state(clients[0], CLIENT_PAIRED);
	assert_int_equal(logins(), 3);
}

/* --- failures ----------------------------------------------------------------------------- */

static void test_after_a_failure_one_login_is_tried_at_a_time(void **state)
{
	struct endpoint *second;

	(void)state;
	let_wait(2);
	fake_connected(fake_launched(), ECONNREFUSED);
	second = fake_launched();
	fake_connected(second, ECONNREFUSED);
	assert_int_equal(logins(), 0);
	fake_advance(15 * USEC_PER_SEC);
	do_pool_work();
	assert_int_equal(logins(), 1);
	do_pool_work();
	assert_int_equal(logins(), 1);
	log_in(fake_launched());
	assert_int_equal(logins(), 1);
	assert_state(clients[0], CLIENT_PAIRED);
	send_query(fake_client(pool), "slow");
	assert_int_equal(logins(), 2);
}

static void test_success_of_an_older_login_does_not_end_the_caution(void **state)
{
	struct endpoint *older;

	(void)state;
	let_wait(4);
	older = fake_launched();
	refuse(fake_launched(), "53300");
	log_in(older);
	assert_state(clients[0], CLIENT_PAIRED);
	/* Two logins are in progress: no third one for the client whose login was refused. */
	assert_int_equal(logins(), 2);
	log_in(fake_launched());
	assert_int_equal(logins(), 1);
	log_in(fake_launched());
	/* One login is tried now, and no second one before it has succeeded. */
	assert_int_equal(logins(), 1);
	send_query(fake_client(pool), "slow");
	assert_int_equal(logins(), 1);
	fake_advance(1);
	log_in(fake_launched());
	assert_state(clients[3], CLIENT_PAIRED);
}

static void test_refusal_closes_no_client_while_other_logins_may_succeed(void **state)
{
	struct endpoint *servers[2];

	(void)state;
	let_wait(2);
	servers[0] = fake_launched();
	servers[1] = fake_launched();
	refuse(servers[0], "53300");
	assert_state(clients[0], CLIENT_WAITING);
	assert_state(clients[1], CLIENT_WAITING);
	log_in(servers[1]);
	assert_state(clients[0], CLIENT_PAIRED);
	assert_state(clients[1], CLIENT_WAITING);
}

static void test_last_refusal_closes_the_waiting_clients(void **state)
{
	struct endpoint *servers[2];

	(void)state;
	let_wait(2);
	servers[0] = fake_launched();
	servers[1] = fake_launched();
	refuse(servers[0], "53300");
	refuse(servers[1], "53300");
	assert_closed_with_error(clients[0], "53300", "no");
	assert_closed_with_error(clients[1], "53300", "no");
}

static void test_new_client_waits_while_other_logins_may_succeed(void **state)
{
	struct endpoint *servers[2];

	(void)state;
	let_wait(2);
	servers[0] = fake_launched();
	servers[1] = fake_launched();
	fake_connected(servers[0], ECONNREFUSED);
	clients[2] = fake_client(pool);
	send_query(clients[2], "slow");
	assert_state(clients[2], CLIENT_WAITING);
	fake_connected(servers[1], ECONNREFUSED);
	/* Nothing is left to hope for. */
	clients[3] = fake_client(pool);
	send_query(clients[3], "slow");
	assert_closed_with_error(clients[3], "08006",
		"server login has been failing, cached error: connect failed "
		"(server_login_retry)");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(each_waiting_client_gets_a_login),
		TEST(server_login_concurrency_is_a_limit),
		TEST(server_login_concurrency_1_is_one_login_at_a_time),
		TEST(server_login_concurrency_0_is_no_limit),
		TEST(pool_size_is_a_limit_for_logins_in_progress),
		TEST(client_that_has_gone_gets_no_login),
		TEST(pool_without_a_welcome_tries_one_login_first),
		TEST(after_a_failure_one_login_is_tried_at_a_time),
		TEST(success_of_an_older_login_does_not_end_the_caution),
		TEST(refusal_closes_no_client_while_other_logins_may_succeed),
		TEST(last_refusal_closes_the_waiting_clients),
		TEST(new_client_waits_while_other_logins_may_succeed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
