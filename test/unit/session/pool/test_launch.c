/* SPDX-License-Identifier: ISC */
/*
 * When a server connection may be launched: within every limit, and after the retry delay.
 */
#include <errno.h>

#include "session/pool/launch.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/writer.h"

static const char config[] = "[databases]\n"
			     "db = host=/tmp\n"
			     "other = host=/tmp\n"
			     "writers = host=/tmp target_session_attrs=read-write\n"
			     "[users]\n"
			     "endless = pool_size=0\n"
			     "[pgbouncer]\n"
			     "pool_mode = transaction\n"
			     "server_reset_query =\n"
			     "query_wait_notify = 0\n"
			     "query_wait_timeout = 0\n"
			     "default_pool_size = 2\n";

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start(config);
	pool = fake_pool("db", "alice");
	return 0;
}

/* A client that waits for a server of the pool, or is paired with one. */
static struct endpoint *client_with_query(struct pool *of)
{
	struct endpoint *client = fake_client(of);

	send_letters(client, "Q");
	return client;
}

/* The server that is being launched logs in. */
static struct endpoint *log_in(struct endpoint *server)
{
	assert_non_null(server);
	fake_connected(server, 0);
	postgres_work(server);
	return server;
}

static void do_pool_work(void)
{
	pool_needs_work(pool);
	fake_turn();
}

/* --- pool sizes --------------------------------------------------------------------------- */

/* How many of them: see test_login_concurrency. */
static void test_several_launches_run_at_the_same_time(void **state)
{
	(void)state;
	assert_true(launch_server(pool, false));
	assert_true(launch_server(pool, false));
	assert_false(launch_server(pool, true));
	log_in(fake_launched());
	log_in(fake_launched());
	assert_int_equal(pool_connected_servers(pool), 2);
}

static void test_full_pool_launches_no_server(void **state)
{
	struct endpoint *servers[2] = {fake_server(pool), fake_server(pool)};

	(void)state;
	assert_false(launch_server(pool, false));
	disconnect(servers[0]);
	assert_true(launch_server(pool, false));
}

static void test_servers_of_every_state_count_for_the_pool_size(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	fake_set("default_pool_size", "1");
	send_letters(client, "Q");
	assert_state(server, SERVER_PAIRED);
	assert_false(launch_server(pool, false));
	send_letters(server, "CZ");
	server_enter(endpoint_server(server), SERVER_STALE);
	assert_false(launch_server(pool, false));
}

static void test_pool_size_0_is_no_limit(void **state)
{
	struct pool *endless = fake_pool("db", "endless");

	(void)state;
	for (int i = 0; i < 30; i++)
		fake_server(endless);
	assert_true(launch_server(endless, false));
}

static void test_full_pool_without_a_welcome_launches_one_server(void **state)
{
	(void)state;
	fake_server(pool);
	fake_server(pool);
	pool_forget_welcome(pool);
	assert_true(launch_server(pool, false));
	log_in(fake_launched());
	assert_non_null(pool->welcome);
	assert_false(launch_server(pool, false));
	assert_int_equal(pool_servers(pool), 3);
}

static void test_launched_server_is_counted_until_it_is_closed(void **state)
{
	(void)state;
	assert_true(launch_server(pool, false));
	assert_int_equal(pool->database->cap.servers, 1);
	assert_int_equal(pool->user->cap.servers, 1);
	fake_connected(fake_launched(), ECONNREFUSED);
	assert_int_equal(pool->database->cap.servers, 0);
	assert_int_equal(pool->user->cap.servers, 0);
}

static void test_immediate_connect_failure_is_a_failed_launch(void **state)
{
	struct endpoint *client = fake_client(pool);

	(void)state;
	fake_connect_error = ECONNREFUSED;
	send_letters(client, "Q");
	assert_state(client, CLIENT_WAITING);
	assert_true(pool->failing);
	assert_string_equal(pool->last_failure.text, "connect failed");
	assert_int_equal(pool_servers(pool), 0);
	assert_true(fake_logged("sbuf_connect failed to connect to unix:5432: "
				"Connection refused"));
}

/* --- the reserve pool --------------------------------------------------------------------- */

static int start_reserve(void **state)
{
	(void)state;
	fake_start(config);
	fake_set("reserve_pool_size", "2");
	fake_set("reserve_pool_timeout", "5");
	pool = fake_pool("db", "alice");
	fake_server(pool);
	fake_server(pool);
	client_with_query(pool);
	client_with_query(pool);
	return 0;
}

static void test_reserve_pool_is_used_after_reserve_pool_timeout(void **state)
{
	struct endpoint *first = client_with_query(pool);

	(void)state;
	assert_state(first, CLIENT_WAITING);
	assert_null(fake_launched());
	fake_advance(5 * USEC_PER_SEC - 1);
	assert_null(fake_launched());
	/* A deadline of the pool launches it, not the upkeep. */
	fake_advance(1);
	log_in(fake_launched());
	assert_received(first, "TDCZ");
	assert_true(fake_logged("taking connection from reserve_pool"));
}

static void test_reserve_pool_size_is_a_limit(void **state)
{
	struct endpoint *clients[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		clients[i] = fake_client(pool);
		send_query(clients[i], "slow");
	}
	fake_advance(5 * USEC_PER_SEC);
	do_pool_work();
	log_in(fake_launched());
	do_pool_work();
	log_in(fake_launched());
	do_pool_work();
	assert_null(fake_launched());
	assert_int_equal(pool_servers(pool), 4);
	assert_state(clients[2], CLIENT_WAITING);
}

static void test_reserve_pool_timeout_0_disables_the_reserve_pool(void **state)
{
	(void)state;
	fake_set("reserve_pool_timeout", "0");
	client_with_query(pool);
	fake_advance(100 * USEC_PER_SEC);
	do_pool_work();
	assert_null(fake_launched());
}

static void test_min_pool_size_does_not_use_the_reserve_pool(void **state)
{
	(void)state;
	client_with_query(pool);
	fake_advance(4 * USEC_PER_SEC);
	fake_set("reserve_pool_timeout", "3");
	assert_false(launch_server(pool, true));
	assert_true(launch_server(pool, false));
}

/* --- limits of databases and users -------------------------------------------------------- */

static void test_idle_server_of_the_same_database_is_evicted(void **state)
{
	struct pool *bobs = fake_pool("db", "bob");
	struct endpoint *idle = fake_server(bobs), *client = fake_client(pool);

	(void)state;
	fake_set("max_db_connections", "1");
	send_letters(client, "Q");
	assert_received(idle, "X");
	assert_closed(idle);
	assert_true(fake_logged("closing because: evicted"));
	assert_int_equal(pool->database->cap.servers, 1);
	log_in(fake_launched());
	assert_received(client, "TDCZ");
}

static void test_server_idle_for_the_longest_time_is_evicted(void **state)
{
	struct pool *pools[3] = {
		fake_pool("db", "bob"), fake_pool("db", "carol"), fake_pool("db", "dora")};
	struct endpoint *servers[6];
	static const int order[6] = {3, 1, 5, 0, 2, 4}; /* the one longest unused first */

	(void)state;
	for (int i = 0; i < 6; i++)
		servers[i] = fake_server(pools[i / 2]);
	fake_set("max_db_connections", "6");
	for (int i = 0; i < 6; i++) {
		fake_advance(10 * USEC_PER_SEC);
		server_enter(endpoint_server(servers[order[i]]), SERVER_PAIRED);
		server_enter(endpoint_server(servers[order[i]]), SERVER_IDLE);
	}
	assert_true(launch_server(pool, false));
	assert_closed(servers[3]);
	log_in(fake_launched());
	assert_int_equal(pool->database->cap.servers, 6);
	assert_true(launch_server(pool, false));
	assert_closed(servers[1]);
	log_in(fake_launched());
	/* Several servers are evicted if the limit was lowered. */
	fake_set("max_db_connections", "4");
	assert_true(launch_server(fake_pool("db", "erik"), false));
	assert_closed(servers[5]);
	assert_closed(servers[0]);
	assert_closed(servers[2]);
	assert_false(is_closed(servers[4]));
	assert_int_equal(pool->database->cap.servers, 4);
}

static void test_paired_server_is_evicted_when_it_is_free(void **state)
{
	struct pool *bobs = fake_pool("db", "bob");
	struct endpoint *busy = fake_server(bobs), *bob = client_with_query(bobs);
	struct endpoint *client = fake_client(pool);

	(void)state;
	fake_set("max_db_connections", "1");
	send_letters(client, "Q");
	assert_state(client, CLIENT_WAITING);
	assert_null(fake_launched());
	assert_true(fake_logged("launch_new_connection: database 'db' full (1 >= 1)"));
	send_letters(busy, "CZ");
	assert_received(bob, "CZ");
	assert_closed(busy);
	log_in(fake_launched());
	assert_received(client, "TDCZ");
}

static void test_stale_server_is_evicted_unless_its_clients_wait(void **state)
{
	struct pool *bobs = fake_pool("db", "bob");
	struct endpoint *used = fake_server(bobs), *client = fake_client(pool), *bob;

	(void)state;
	fake_set("max_db_connections", "1");
	server_enter(endpoint_server(used), SERVER_STALE);
	fake_advance(60 * USEC_PER_SEC);
	bob = client_with_query(bobs);
	assert_state(used, SERVER_CHECKING);
	assert_false(launch_server(pool, false));
	assert_false(is_closed(used));
	send_letters(client, "Q");
	assert_false(is_closed(used));
	/* The check ends, and no client of that pool needs the server any more. */
	disconnect(bob);
	send_letters(used, "CZ");
	assert_closed(used);
	log_in(fake_launched());
	assert_received(client, "TDCZ");
}

static void test_min_pool_size_evicts_no_server(void **state)
{
	struct endpoint *idle = fake_server(fake_pool("db", "bob"));

	(void)state;
	fake_set("max_db_connections", "1");
	assert_false(launch_server(pool, true));
	assert_false(is_closed(idle));
	assert_true(launch_server(pool, false));
	assert_closed(idle);
}

static void test_idle_server_of_the_same_user_is_evicted(void **state)
{
	struct pool *others = fake_pool("other", "alice");
	struct endpoint *idle = fake_server(others),
			*bobs = fake_server(fake_pool("db", "bob"));
	struct endpoint *client = fake_client(pool);

	(void)state;
	fake_set("max_user_connections", "1");
	send_letters(client, "Q");
	assert_closed(idle);
	assert_false(is_closed(bobs));
	log_in(fake_launched());
	assert_received(client, "TDCZ");
	assert_int_equal(pool->user->cap.servers, 1);
}

static void test_paired_server_of_the_same_user_is_not_evicted(void **state)
{
	struct pool *others = fake_pool("other", "alice");
	struct endpoint *busy = fake_server(others), *client;

	(void)state;
	fake_set("max_user_connections", "1");
	client_with_query(others);
	client = client_with_query(pool);
	assert_state(client, CLIENT_WAITING);
	assert_null(fake_launched());
	assert_true(fake_logged("launch_new_connection: user 'alice' full (1 >= 1)"));
	send_letters(busy, "CZ");
	assert_closed(busy);
	log_in(fake_launched());
	assert_received(client, "TDCZ");
}

static void test_closed_server_of_the_same_user_makes_room(void **state)
{
	struct pool *others = fake_pool("other", "alice");
	struct endpoint *busy = fake_server(others), *client;

	(void)state;
	fake_set("max_user_connections", "1");
	client_with_query(others);
	client = client_with_query(pool);
	assert_state(client, CLIENT_WAITING);
	disconnect(busy);
	log_in(fake_launched());
	assert_received(client, "TDCZ");
}

/* --- retry delays ------------------------------------------------------------------------- */

static void refuse_login(const char *sqlstate, const char *text)
{
	struct endpoint *server = fake_launched();

	assert_non_null(server);
	fake_connected(server, 0);
	assert_received(server, "^");
	send_error(server, sqlstate, text);
	assert_closed(server);
}

static void test_failed_launch_is_retried_after_server_login_retry(void **state)
{
	(void)state;
	assert_true(launch_server(pool, false));
	fake_connected(fake_launched(), ETIMEDOUT);
	assert_true(pool->failing);
	assert_false(launch_server(pool, false));
	assert_false(launch_server(pool, true));
	fake_advance(15 * USEC_PER_SEC - 1);
	assert_false(launch_server(pool, false));
	fake_advance(1);
	assert_true(launch_server(pool, false));
}

static void test_retry_delay_starts_with_the_failed_launch(void **state)
{
	(void)state;
	assert_true(launch_server(pool, false));
	fake_advance(12 * USEC_PER_SEC);
	fake_connected(fake_launched(), ETIMEDOUT);
	fake_advance(3 * USEC_PER_SEC);
	assert_true(launch_server(pool, false));
}

static void assert_retried_after_a_second(struct endpoint *client)
{
	assert_state(client, CLIENT_WAITING);
	fake_advance(USEC_PER_SEC - 1);
	do_pool_work();
	assert_null(fake_launched());
	fake_advance(1);
	do_pool_work();
	log_in(fake_launched());
	assert_received(client, "TDCZ");
}

static void test_server_that_restarts_is_retried_after_a_second(void **state)
{
	static const char *const refusals[][2] = {
		{"57P01", "terminating connection due to administrator command"},
		{"57P02", "terminating connection because of crash of another server process"},
		{"57P03", "the database system is starting up"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(refusals); i++) {
		struct endpoint *client = client_with_query(pool);

		refuse_login(refusals[i][0], refusals[i][1]);
		assert_retried_after_a_second(client);
		fake_end(NULL);
		start(NULL);
	}
}

/* A probe sees only what lasts longer than its interval: a host that was fenced for less has not changed. */
static void test_host_without_the_role_is_retried_after_a_second(void **state)
{
	struct pool *writers = fake_pool("writers", "alice");
	struct endpoint *client = client_with_query(writers), *server = fake_launched();

	(void)state;
	fake_connected(server, 0);
	send_letters(server, "R");
	send_parameter_status(server, "in_hot_standby", "off");
	send_parameter_status(server, "default_transaction_read_only", "on");
	send_letters(server, "KZ");
	assert_closed(server);
	pool = writers;
	assert_retried_after_a_second(client);
}

static void test_server_login_retry_0_still_has_a_short_delay(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("server_login_retry", "0");
	client = client_with_query(pool);
	fake_connected(fake_launched(), ECONNREFUSED);
	do_pool_work();
	assert_null(fake_launched());
	fake_advance(USEC_PER_SEC / 20);
	do_pool_work();
	log_in(fake_launched());
	assert_received(client, "TDCZ");
}

static void test_login_ends_the_failing_state(void **state)
{
	(void)state;
	launch_server(pool, false);
	fake_connected(fake_launched(), ETIMEDOUT);
	fake_advance(15 * USEC_PER_SEC);
	launch_server(pool, false);
	assert_true(pool->failing);
	log_in(fake_launched());
	assert_false(pool->failing);
	assert_true(launch_server(pool, false));
}

/* --- which clients receive the error ------------------------------------------------------ */

static void test_all_waiting_clients_receive_the_login_error(void **state)
{
	struct endpoint *clients[3];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = client_with_query(pool);
	/* The pool size allows two logins. */
	refuse_login("3D000", "database \"db\" does not exist");
	refuse_login("3D000", "database \"db\" does not exist");
	for (size_t i = 0; i < COUNT(clients); i++)
		assert_closed_with_error(clients[i], "3D000", "database \"db\" does not exist");
	assert_null(fake_launched());
}

static void test_login_error_is_not_sent_while_a_server_is_left(void **state)
{
	struct endpoint *server = fake_server(pool), *clients[2];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = client_with_query(pool);
	refuse_login("53300", "sorry, too many clients already");
	assert_state(clients[1], CLIENT_WAITING);
	send_letters(server, "CZ");
	send_letters(server, "CZ");
	assert_received(clients[1], "CZ");
}

static void test_login_error_is_sent_when_all_servers_are_to_be_closed(void **state)
{
	struct endpoint *server = fake_server(pool), *busy, *waiting;

	(void)state;
	busy = client_with_query(pool);
	pool_mark_close_needed(pool, SERVER_CLOSED_RECONNECT);
	waiting = client_with_query(pool);
	refuse_login("28000", "role \"alice\" does not exist");
	assert_closed_with_error(waiting, "28000", "role \"alice\" does not exist");
	assert_state(busy, CLIENT_PAIRED);
	send_letters(server, "CZ");
	assert_received(busy, "CZ");
}

static void test_login_error_without_text_or_code_is_completed(void **state)
{
	struct endpoint *client = client_with_query(pool), *server = fake_launched();
	struct buffer buffer;

	(void)state;
	fake_connected(server, 0);
	buffer_init(&buffer);
	writer_message(&buffer, 'E', "\0", 1);
	send_buffer(server, &buffer);
	assert_received(client, "E");
	assert_int_equal(strlen(client->sqlstate), 5);
	assert_true(client->text[0] != '\0');
	assert_closed(client);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define RESERVE_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_reserve, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(several_launches_run_at_the_same_time),
		TEST(full_pool_launches_no_server),
		TEST(servers_of_every_state_count_for_the_pool_size),
		TEST(pool_size_0_is_no_limit),
		TEST(full_pool_without_a_welcome_launches_one_server),
		TEST(launched_server_is_counted_until_it_is_closed),
		TEST(immediate_connect_failure_is_a_failed_launch),
		RESERVE_TEST(reserve_pool_is_used_after_reserve_pool_timeout),
		RESERVE_TEST(reserve_pool_size_is_a_limit),
		RESERVE_TEST(reserve_pool_timeout_0_disables_the_reserve_pool),
		RESERVE_TEST(min_pool_size_does_not_use_the_reserve_pool),
		TEST(idle_server_of_the_same_database_is_evicted),
		TEST(server_idle_for_the_longest_time_is_evicted),
		TEST(paired_server_is_evicted_when_it_is_free),
		TEST(stale_server_is_evicted_unless_its_clients_wait),
		TEST(min_pool_size_evicts_no_server),
		TEST(idle_server_of_the_same_user_is_evicted),
		TEST(paired_server_of_the_same_user_is_not_evicted),
		TEST(closed_server_of_the_same_user_makes_room),
		TEST(failed_launch_is_retried_after_server_login_retry),
		TEST(retry_delay_starts_with_the_failed_launch),
		TEST(server_that_restarts_is_retried_after_a_second),
		TEST(host_without_the_role_is_retried_after_a_second),
		TEST(server_login_retry_0_still_has_a_short_delay),
		TEST(login_ends_the_failing_state),
		TEST(all_waiting_clients_receive_the_login_error),
		TEST(login_error_is_not_sent_while_a_server_is_left),
		TEST(login_error_is_sent_when_all_servers_are_to_be_closed),
		TEST(login_error_without_text_or_code_is_completed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
