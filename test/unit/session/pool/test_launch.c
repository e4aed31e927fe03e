/* SPDX-License-Identifier: ISC */
/* When a server connection may be opened: one at a time, within every limit, after every pause. */
#include <errno.h>

#include "session/pool/launch.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/writer.h"

static const char config[] = "[databases]\n"
			     "db = host=/tmp\n"
			     "other = host=/tmp\n"
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

/* A client that waits for a server of the pool, or has one. */
static struct actor *asker(struct pool *of)
{
	struct actor *client = fake_client(of);

	say(client, "Q");
	return client;
}

/* The server that is being launched logs in. */
static struct actor *log_in(struct actor *server)
{
	assert_non_null(server);
	fake_connected(server, 0);
	postgres_work(server);
	return server;
}

static void work(void)
{
	pool_needs_work(pool);
	fake_turn();
}

/* --- sizes -------------------------------------------------------------------------------- */

static void test_one_attempt_at_a_time(void **state)
{
	(void)state;
	assert_true(launch_server(pool, false));
	assert_false(launch_server(pool, false));
	assert_false(launch_server(pool, true));
	/* Another pool has attempts of its own. */
	assert_true(launch_server(fake_pool("db", "bob"), false));
	log_in(fake_launched());
	assert_true(launch_server(pool, false));
}

static void test_a_full_pool_opens_no_more(void **state)
{
	struct actor *servers[2] = {fake_server(pool), fake_server(pool)};

	(void)state;
	assert_false(launch_server(pool, false));
	leave(servers[0]);
	assert_true(launch_server(pool, false));
}

static void test_servers_count_in_every_state(void **state)
{
	struct actor *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	fake_set("default_pool_size", "1");
	say(client, "Q");
	assert_state(server, SERVER_PAIRED);
	assert_false(launch_server(pool, false));
	say(server, "CZ");
	server_enter(actor_server(server), SERVER_STALE);
	assert_false(launch_server(pool, false));
}

static void test_a_size_of_0_is_no_limit(void **state)
{
	struct pool *endless = fake_pool("db", "endless");

	(void)state;
	for (int i = 0; i < 30; i++)
		fake_server(endless);
	assert_true(launch_server(endless, false));
	assert_false(launch_server(endless, false));
}

static void test_a_full_pool_without_a_welcome_may_open_one_more(void **state)
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

static void test_a_launched_server_counts_at_once_and_until_its_end(void **state)
{
	(void)state;
	assert_true(launch_server(pool, false));
	assert_int_equal(pool->database->servers, 1);
	assert_int_equal(pool->user->servers, 1);
	fake_connected(fake_launched(), ECONNREFUSED);
	assert_int_equal(pool->database->servers, 0);
	assert_int_equal(pool->user->servers, 0);
}

static void test_a_connect_that_fails_at_once_is_a_failed_attempt(void **state)
{
	struct actor *client = fake_client(pool);

	(void)state;
	fake_refuses_connects = true;
	say(client, "Q");
	assert_state(client, CLIENT_WAITING);
	assert_true(pool->failing);
	assert_string_equal(pool->last_failure.text, "connect failed");
	assert_int_equal(pool_servers(pool), 0);
	assert_true(fake_logged("sbuf_connect failed to connect to unix:5432: "
				"Connection refused"));
}

/* --- reserve ------------------------------------------------------------------------------ */

static int start_reserve(void **state)
{
	(void)state;
	fake_start(config);
	fake_set("reserve_pool_size", "2");
	fake_set("reserve_pool_timeout", "5");
	pool = fake_pool("db", "alice");
	fake_server(pool);
	fake_server(pool);
	asker(pool);
	asker(pool);
	return 0;
}

static void test_the_reserve_is_for_those_who_have_waited_long(void **state)
{
	struct actor *first = asker(pool);

	(void)state;
	assert_state(first, CLIENT_WAITING);
	assert_null(fake_launched());
	fake_advance(5 * USEC_PER_SEC - 1);
	work();
	assert_null(fake_launched());
	fake_advance(1);
	work();
	log_in(fake_launched());
	assert_heard(first, "TDCZ");
	assert_true(fake_logged("taking connection from reserve_pool"));
}

static void test_the_reserve_has_an_end(void **state)
{
	struct actor *clients[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		clients[i] = fake_client(pool);
		say_query(clients[i], "slow");
	}
	fake_advance(5 * USEC_PER_SEC);
	work();
	log_in(fake_launched());
	work();
	log_in(fake_launched());
	work();
	assert_null(fake_launched());
	assert_int_equal(pool_servers(pool), 4);
	assert_state(clients[2], CLIENT_WAITING);
}

static void test_a_timeout_of_0_keeps_the_reserve_closed(void **state)
{
	(void)state;
	fake_set("reserve_pool_timeout", "0");
	asker(pool);
	fake_advance(100 * USEC_PER_SEC);
	work();
	assert_null(fake_launched());
}

static void test_topping_up_never_takes_from_the_reserve(void **state)
{
	(void)state;
	asker(pool);
	fake_advance(6 * USEC_PER_SEC);
	assert_false(launch_server(pool, true));
	assert_true(launch_server(pool, false));
}

/* --- limits of databases and users -------------------------------------------------------- */

static void test_an_idle_server_of_the_same_database_makes_room(void **state)
{
	struct pool *bobs = fake_pool("db", "bob");
	struct actor *idle = fake_server(bobs), *client = fake_client(pool);

	(void)state;
	fake_set("max_db_connections", "1");
	say(client, "Q");
	assert_heard(idle, "X");
	assert_gone(idle);
	assert_true(fake_logged("closing because: evicted"));
	assert_int_equal(pool->database->servers, 1);
	log_in(fake_launched());
	assert_heard(client, "TDCZ");
}

static void test_the_server_that_was_quiet_longest_makes_room(void **state)
{
	struct pool *pools[3] = {
		fake_pool("db", "bob"), fake_pool("db", "carol"), fake_pool("db", "dora")};
	struct actor *servers[6];
	static const int spoke[6] = {30, 50, 20, 60, 10, 40}; /* seconds ago */

	(void)state;
	fake_advance(100 * USEC_PER_SEC);
	for (int i = 0; i < 6; i++) {
		servers[i] = fake_server(pools[i / 2]);
		actor_link(servers[i])->request_time -= spoke[i] * USEC_PER_SEC;
	}
	fake_set("max_db_connections", "6");
	assert_true(launch_server(pool, false));
	assert_gone(servers[3]);
	log_in(fake_launched());
	assert_int_equal(pool->database->servers, 6);
	assert_true(launch_server(pool, false));
	assert_gone(servers[1]);
	log_in(fake_launched());
	/* More than one, if the limit was lowered. */
	fake_set("max_db_connections", "4");
	assert_true(launch_server(fake_pool("db", "erik"), false));
	assert_gone(servers[5]);
	assert_gone(servers[0]);
	assert_gone(servers[2]);
	assert_false(is_gone(servers[4]));
	assert_int_equal(pool->database->servers, 4);
}

static void test_a_busy_server_makes_no_room_before_it_is_free(void **state)
{
	struct pool *bobs = fake_pool("db", "bob");
	struct actor *busy = fake_server(bobs), *bob = asker(bobs);
	struct actor *client = fake_client(pool);

	(void)state;
	fake_set("max_db_connections", "1");
	say(client, "Q");
	assert_state(client, CLIENT_WAITING);
	assert_null(fake_launched());
	assert_true(fake_logged("launch_new_connection: database 'db' full (1 >= 1)"));
	say(busy, "CZ");
	assert_heard(bob, "CZ");
	assert_gone(busy);
	log_in(fake_launched());
	assert_heard(client, "TDCZ");
}

static void test_used_servers_make_room_only_where_nobody_waits(void **state)
{
	struct pool *bobs = fake_pool("db", "bob");
	struct actor *used = fake_server(bobs), *bob;

	(void)state;
	fake_set("max_db_connections", "1");
	server_enter(actor_server(used), SERVER_STALE);
	fake_advance(60 * USEC_PER_SEC);
	bob = asker(bobs);
	assert_state(used, SERVER_CHECKING);
	assert_false(launch_server(pool, false));
	assert_false(is_gone(used));
	leave(bob);
	assert_true(launch_server(pool, false));
	assert_gone(used);
}

static void test_topping_up_evicts_nobody(void **state)
{
	struct actor *idle = fake_server(fake_pool("db", "bob"));

	(void)state;
	fake_set("max_db_connections", "1");
	assert_false(launch_server(pool, true));
	assert_false(is_gone(idle));
	assert_true(launch_server(pool, false));
	assert_gone(idle);
}

static void test_an_idle_server_of_the_same_user_makes_room(void **state)
{
	struct pool *others = fake_pool("other", "alice");
	struct actor *idle = fake_server(others), *bobs = fake_server(fake_pool("db", "bob"));
	struct actor *client = fake_client(pool);

	(void)state;
	fake_set("max_user_connections", "1");
	say(client, "Q");
	assert_gone(idle);
	assert_false(is_gone(bobs));
	log_in(fake_launched());
	assert_heard(client, "TDCZ");
	assert_int_equal(pool->user->servers, 1);
}

static void test_a_busy_server_of_the_same_user_makes_no_room(void **state)
{
	struct pool *others = fake_pool("other", "alice");
	struct actor *busy = fake_server(others), *client;

	(void)state;
	fake_set("max_user_connections", "1");
	asker(others);
	client = asker(pool);
	assert_state(client, CLIENT_WAITING);
	assert_null(fake_launched());
	assert_true(fake_logged("launch_new_connection: user 'alice' full (1 >= 1)"));
	/* When it is free again, the one who waits is thought of at the next look. */
	say(busy, "CZ");
	work();
	assert_gone(busy);
	log_in(fake_launched());
	assert_heard(client, "TDCZ");
}

static void test_a_closed_server_of_the_same_user_makes_room(void **state)
{
	struct pool *others = fake_pool("other", "alice");
	struct actor *busy = fake_server(others), *client;

	(void)state;
	fake_set("max_user_connections", "1");
	asker(others);
	client = asker(pool);
	assert_state(client, CLIENT_WAITING);
	leave(busy);
	work();
	log_in(fake_launched());
	assert_heard(client, "TDCZ");
}

/* --- pauses after failures ---------------------------------------------------------------- */

static void fail_with(const char *sqlstate, const char *text)
{
	struct actor *server = fake_launched();

	assert_non_null(server);
	fake_connected(server, 0);
	assert_heard(server, "^");
	say_error(server, sqlstate, text);
	assert_gone(server);
}

static void test_after_a_failure_there_is_a_pause(void **state)
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

static void test_the_pause_counts_from_the_begin_of_the_attempt(void **state)
{
	(void)state;
	assert_true(launch_server(pool, false));
	fake_advance(12 * USEC_PER_SEC);
	fake_connected(fake_launched(), ETIMEDOUT);
	fake_advance(3 * USEC_PER_SEC);
	assert_true(launch_server(pool, false));
}

static void test_a_server_that_is_starting_is_asked_again_soon(void **state)
{
	struct actor *client = asker(pool);

	(void)state;
	fail_with("57P03", "the database system is starting up");
	assert_state(client, CLIENT_WAITING);
	fake_advance(USEC_PER_SEC - 1);
	work();
	assert_null(fake_launched());
	fake_advance(1);
	work();
	log_in(fake_launched());
	assert_heard(client, "TDCZ");
}

static void test_without_a_pause_a_refusal_is_still_not_asked_for_at_once(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("server_login_retry", "0");
	client = asker(pool);
	fake_connected(fake_launched(), ECONNREFUSED);
	work();
	assert_null(fake_launched());
	fake_advance(USEC_PER_SEC / 20);
	work();
	log_in(fake_launched());
	assert_heard(client, "TDCZ");
}

static void test_a_login_ends_the_failing(void **state)
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

/* --- who is told -------------------------------------------------------------------------- */

static void test_all_who_wait_hear_why_the_server_refused(void **state)
{
	struct actor *clients[3];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = asker(pool);
	fail_with("3D000", "database \"db\" does not exist");
	for (size_t i = 0; i < COUNT(clients); i++)
		assert_told(clients[i], "3D000", "database \"db\" does not exist");
	assert_null(fake_launched());
}

static void test_nobody_hears_of_it_where_a_server_is_left(void **state)
{
	struct actor *server = fake_server(pool), *clients[2];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = asker(pool);
	fail_with("53300", "sorry, too many clients already");
	assert_state(clients[1], CLIENT_WAITING);
	say(server, "CZ");
	say(server, "CZ");
	assert_heard(clients[1], "CZ");
}

static void test_all_hear_of_it_where_the_servers_are_to_be_retired(void **state)
{
	struct actor *server = fake_server(pool), *busy, *waiter;

	(void)state;
	busy = asker(pool);
	pool_mark_close_needed(pool, SERVER_CLOSED_RECONNECT);
	waiter = asker(pool);
	fail_with("28000", "role \"alice\" does not exist");
	assert_told(waiter, "28000", "role \"alice\" does not exist");
	assert_state(busy, CLIENT_PAIRED);
	say(server, "CZ");
	assert_heard(busy, "CZ");
}

static void test_an_error_without_a_word_or_a_code_has_ours(void **state)
{
	struct actor *client = asker(pool), *server = fake_launched();
	struct buffer buffer;

	(void)state;
	fake_connected(server, 0);
	buffer_init(&buffer);
	writer_message(&buffer, 'E', "\0", 1);
	say_buffer(server, &buffer);
	assert_heard(client, "E");
	assert_int_equal(strlen(client->sqlstate), 5);
	assert_true(client->text[0] != '\0');
	assert_gone(client);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define RESERVE_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_reserve, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(one_attempt_at_a_time),
		TEST(a_full_pool_opens_no_more),
		TEST(servers_count_in_every_state),
		TEST(a_size_of_0_is_no_limit),
		TEST(a_full_pool_without_a_welcome_may_open_one_more),
		TEST(a_launched_server_counts_at_once_and_until_its_end),
		TEST(a_connect_that_fails_at_once_is_a_failed_attempt),
		RESERVE_TEST(the_reserve_is_for_those_who_have_waited_long),
		RESERVE_TEST(the_reserve_has_an_end),
		RESERVE_TEST(a_timeout_of_0_keeps_the_reserve_closed),
		RESERVE_TEST(topping_up_never_takes_from_the_reserve),
		TEST(an_idle_server_of_the_same_database_makes_room),
		TEST(the_server_that_was_quiet_longest_makes_room),
		TEST(a_busy_server_makes_no_room_before_it_is_free),
		TEST(used_servers_make_room_only_where_nobody_waits),
		TEST(topping_up_evicts_nobody),
		TEST(an_idle_server_of_the_same_user_makes_room),
		TEST(a_busy_server_of_the_same_user_makes_no_room),
		TEST(a_closed_server_of_the_same_user_makes_room),
		TEST(after_a_failure_there_is_a_pause),
		TEST(the_pause_counts_from_the_begin_of_the_attempt),
		TEST(a_server_that_is_starting_is_asked_again_soon),
		TEST(without_a_pause_a_refusal_is_still_not_asked_for_at_once),
		TEST(a_login_ends_the_failing),
		TEST(all_who_wait_hear_why_the_server_refused),
		TEST(nobody_hears_of_it_where_a_server_is_left),
		TEST(all_hear_of_it_where_the_servers_are_to_be_retired),
		TEST(an_error_without_a_word_or_a_code_has_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
