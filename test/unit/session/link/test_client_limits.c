/* SPDX-License-Identifier: ISC */
/* The time limits of clients: which clock each has, which comes first, and what is told. */
#include "session/link/client_limits.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/startup.h"

#define SECONDS(n) ((n)*USEC_PER_SEC)

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\n"
		   "db = host=/tmp\n"
		   "hasty = host=/tmp query_wait_timeout=3\n"
		   "[users]\n"
		   "calm = query_wait_timeout=0 client_idle_timeout=20\n"
		   "slow = query_wait_timeout=9\n"
		   "[pgbouncer]\n"
		   "pool_mode = transaction\n"
		   "auth_type = plain\n"
		   "server_reset_query =\n"
		   "default_pool_size = 1\n"
		   "server_login_retry = 1000\n"
		   "client_login_timeout = 60\n"
		   "query_wait_timeout = 6\n"
		   "query_wait_notify = 0\n");
	fake_user("alice", "secret");
	pool = fake_pool("db", "alice");
	/* Nobody gets a server. */
	pool->database->paused = true;
	return 0;
}

/* A client that waits for a server in vain. */
static struct actor *waiter(const char *database, const char *user)
{
	struct pool *in = fake_pool(database, user);
	struct actor *client = fake_client(in);

	in->database->paused = true;
	say(client, "Q");
	assert_state(client, CLIENT_WAITING);
	return client;
}

/* It is closed when this time has passed, a little later at most, and not before. */
static void assert_closed_after(struct actor *client, usec_t time)
{
	fake_advance(time - 1);
	assert_false(is_gone(client));
	fake_advance(WHEEL_TICK + 1);
	assert_gone(client);
}

/* --- logins ------------------------------------------------------------------------------- */

static void test_a_silent_client_has_so_long_to_log_in(void **state)
{
	struct actor *client = fake_accept(-1);

	(void)state;
	assert_closed_after(client, SECONDS(60));
	assert_told(client, "57014", "client_login_timeout");
}

static void test_a_login_is_timed_from_its_connect(void **state)
{
	struct actor *client = fake_accept(-1);
	static const uint8_t bytes[] = "\0\0\0\x20\0\3\0\0user\0alice";

	(void)state;
	for (int i = 0; i < 59; i++) {
		if (i < 18)
			say_bytes(client, bytes + i, 1);
		fake_advance(SECONDS(1));
	}
	assert_false(is_gone(client));
	fake_advance(SECONDS(1) + WHEEL_TICK);
	assert_told(client, "57014", "client_login_timeout");
}

static void test_a_client_that_does_not_answer_has_no_longer(void **state)
{
	struct actor *client = fake_accept(-1);

	(void)state;
	fake_advance(SECONDS(50));
	say_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_heard(client, "R");
	assert_closed_after(client, SECONDS(10));
	assert_told(client, "57014", "client_login_timeout");
}

static void test_without_a_limit_a_login_may_take_for_ever(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("client_login_timeout", "0");
	client = fake_accept(-1);
	fake_advance(SECONDS(10000));
	assert_state(client, CLIENT_GREETING);
}

static void test_who_has_logged_in_is_not_timed_by_the_login(void **state)
{
	struct actor *client = fake_client(pool);

	(void)state;
	fake_advance(SECONDS(1000));
	assert_state(client, CLIENT_IDLE);
}

/* --- the first server of a pool ----------------------------------------------------------- */

/* A client that waits for its welcome, since this time after its connect. */
static struct actor *welcomed_later(usec_t time)
{
	struct actor *client = fake_accept(-1);

	pool_forget_welcome(pool);
	fake_advance(time);
	say_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_heard(client, "R");
	say(client, "p");
	assert_state(client, CLIENT_WELCOMING);
	return client;
}

static void test_a_welcome_is_waited_for_as_long_as_a_login_may_take(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("query_wait_timeout", "0");
	client = welcomed_later(SECONDS(20));
	assert_closed_after(client, SECONDS(40));
	assert_told(client, "57P03", "client_login_timeout (server down)");
}

static void test_a_welcome_is_waited_for_as_long_as_a_server(void **state)
{
	struct actor *client = welcomed_later(SECONDS(20));

	(void)state;
	assert_closed_after(client, SECONDS(6));
	assert_told(client, "57014", "query_wait_timeout");
}

static void test_a_welcome_is_waited_for_as_long_as_a_query_may_take(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("query_timeout", "4");
	client = welcomed_later(SECONDS(20));
	assert_closed_after(client, SECONDS(4));
	assert_told(client, "57014", "query_timeout");
}

static void test_nobody_is_told_to_wait_who_has_no_welcome(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("query_wait_notify", "1");
	client = welcomed_later(0);
	fake_advance(SECONDS(5));
	assert_heard(client, "");
	assert_state(client, CLIENT_WELCOMING);
}

/* --- waiting ------------------------------------------------------------------------------ */

static void test_a_wait_has_an_end(void **state)
{
	struct actor *client = waiter("db", "alice");

	(void)state;
	assert_closed_after(client, SECONDS(6));
	assert_told(client, "57014", "query_wait_timeout");
	assert_int_equal(pool->client_count[CLIENT_WAITING], 0);
}

static void test_a_wait_is_timed_from_the_first_message_of_the_query(void **state)
{
	struct actor *client = fake_client(pool), *server;

	(void)state;
	pool->database->paused = false;
	server = fake_server(pool);
	fake_advance(SECONDS(100));
	say(client, "Q");
	say(server, "CZ");
	assert_heard(client, "CZ");
	fake_advance(SECONDS(100));
	pool->database->paused = true;
	say(client, "Q");
	assert_closed_after(client, SECONDS(6));
	assert_told(client, "57014", "query_wait_timeout");
}

static void test_the_value_of_the_user_goes_before_the_database_and_the_global_one(void **state)
{
	struct actor *hasty = waiter("hasty", "alice"), *slow = waiter("hasty", "slow");
	struct actor *calm = waiter("hasty", "calm"), *plain = waiter("db", "bob");

	(void)state;
	fake_advance(SECONDS(3) + WHEEL_TICK);
	assert_told(hasty, "57014", "query_wait_timeout");
	assert_state(plain, CLIENT_WAITING);
	fake_advance(SECONDS(3));
	assert_told(plain, "57014", "query_wait_timeout");
	assert_state(slow, CLIENT_WAITING);
	fake_advance(SECONDS(3));
	assert_told(slow, "57014", "query_wait_timeout");
	fake_advance(SECONDS(1000));
	assert_state(calm, CLIENT_WAITING);
}

static void test_a_query_that_only_waits_is_timed_as_a_query_too(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("query_timeout", "4");
	client = waiter("db", "alice");
	assert_closed_after(client, SECONDS(4));
	assert_told(client, "57014", "query_timeout");
}

static void test_of_two_limits_at_once_the_one_of_queries_is_told(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("query_timeout", "6");
	client = waiter("db", "alice");
	assert_closed_after(client, SECONDS(6));
	assert_told(client, "57014", "query_timeout");
}

static void test_without_limits_a_wait_has_no_end(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("query_wait_timeout", "0");
	client = waiter("db", "alice");
	fake_advance(SECONDS(10000));
	assert_state(client, CLIENT_WAITING);
}

static void test_who_is_served_is_not_timed_any_more(void **state)
{
	struct actor *client, *server;

	(void)state;
	pool->database->paused = false;
	server = fake_server(pool);
	client = fake_client(pool);
	say(client, "Q");
	fake_advance(SECONDS(1000));
	assert_state(client, CLIENT_PAIRED);
	say(server, "CZ");
	fake_advance(SECONDS(1000));
	assert_state(client, CLIENT_IDLE);
}

static void test_a_limit_that_is_lowered_holds_for_those_who_come(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("query_wait_timeout", "2");
	client = waiter("db", "alice");
	assert_closed_after(client, SECONDS(2));
	fake_set("query_wait_timeout", "6");
	client = waiter("db", "alice");
	/* Raised while it waits: looked at when the old time is over. */
	fake_set("query_wait_timeout", "10");
	fake_advance(SECONDS(7));
	assert_state(client, CLIENT_WAITING);
	assert_closed_after(client, SECONDS(3));
}

static void test_many_waits_end_in_the_same_moment(void **state)
{
	struct actor *clients[200];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = waiter("db", "alice");
	fake_advance(SECONDS(6) + WHEEL_TICK);
	for (size_t i = 0; i < COUNT(clients); i++)
		assert_told(clients[i], "57014", "query_wait_timeout");
}

/* --- the notice --------------------------------------------------------------------------- */

static void test_who_waits_longer_is_told_once(void **state)
{
	struct actor *client;
	size_t length;

	(void)state;
	fake_set("query_wait_timeout", "0");
	fake_set("query_wait_notify", "5");
	client = waiter("db", "alice");
	fake_advance(SECONDS(6) - 1);
	assert_heard(client, "");
	fake_advance(WHEEL_TICK + 1);
	assert_heard(client, "N");
	assert_memory_equal(heard_body(client, &length),
		"SNOTICE\0C00000\0MNo server connection available in postgres backend, "
		"client being queued\0",
		89);
	fake_advance(SECONDS(100));
	assert_heard(client, "");
	assert_state(client, CLIENT_WAITING);
}

static void test_each_wait_has_its_own_notice(void **state)
{
	struct actor *client, *server;

	(void)state;
	fake_set("query_wait_timeout", "0");
	fake_set("query_wait_notify", "5");
	client = waiter("db", "alice");
	fake_advance(SECONDS(7));
	assert_heard(client, "N");
	server = fake_server(pool);
	pool->database->paused = false;
	pool_needs_work(pool);
	fake_turn();
	say(server, "CZ");
	assert_heard(client, "CZ");
	pool->database->paused = true;
	say(client, "Q");
	fake_advance(SECONDS(7));
	assert_heard(client, "N");
}

static void test_a_notice_does_not_put_the_end_off(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("query_wait_notify", "2");
	client = waiter("db", "alice");
	fake_advance(SECONDS(4));
	assert_heard(client, "N");
	assert_closed_after(client, SECONDS(2));
	assert_told(client, "57014", "query_wait_timeout");
}

static void test_a_client_that_cannot_be_told_is_gone(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("query_wait_notify", "2");
	client = waiter("db", "alice");
	scripted_break(client->script);
	fake_advance(SECONDS(4));
	assert_gone(client);
}

/* --- idle clients ------------------------------------------------------------------------- */

static void test_idle_clients_may_be_closed(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("client_idle_timeout", "10");
	client = fake_client(pool);
	assert_closed_after(client, SECONDS(10));
	assert_told(client, "57P05", "client_idle_timeout");
}

static void test_idle_is_counted_from_the_last_bytes(void **state)
{
	struct actor *client, *server;

	(void)state;
	pool->database->paused = false;
	server = fake_server(pool);
	fake_set("client_idle_timeout", "10");
	client = fake_client(pool);
	for (int i = 0; i < 5; i++) {
		fake_advance(SECONDS(8));
		say(client, "Q");
		say(server, "CZ");
	}
	fake_advance(SECONDS(8));
	say_bytes(client, "Q", 1);
	hear(client);
	assert_closed_after(client, SECONDS(10));
	assert_told(client, "57P05", "client_idle_timeout");
}

static void test_who_has_a_server_is_not_idle(void **state)
{
	struct actor *client, *server;

	(void)state;
	pool->database->paused = false;
	fake_set("client_idle_timeout", "10");
	server = fake_server(pool);
	client = fake_client(pool);
	say(client, "Q");
	say(server, "C>");
	assert_heard(client, "C>");
	fake_advance(SECONDS(100));
	assert_state(client, CLIENT_PAIRED);
}

static void test_a_user_may_have_an_idle_time_of_his_own(void **state)
{
	struct actor *calm = fake_client(fake_pool("db", "calm")), *plain = fake_client(pool);

	(void)state;
	assert_closed_after(calm, SECONDS(20));
	assert_told(calm, "57P05", "client_idle_timeout");
	assert_state(plain, CLIENT_IDLE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(a_silent_client_has_so_long_to_log_in),
		TEST(a_login_is_timed_from_its_connect),
		TEST(a_client_that_does_not_answer_has_no_longer),
		TEST(without_a_limit_a_login_may_take_for_ever),
		TEST(who_has_logged_in_is_not_timed_by_the_login),
		TEST(a_welcome_is_waited_for_as_long_as_a_login_may_take),
		TEST(a_welcome_is_waited_for_as_long_as_a_server),
		TEST(a_welcome_is_waited_for_as_long_as_a_query_may_take),
		TEST(nobody_is_told_to_wait_who_has_no_welcome),
		TEST(a_wait_has_an_end),
		TEST(a_wait_is_timed_from_the_first_message_of_the_query),
		TEST(the_value_of_the_user_goes_before_the_database_and_the_global_one),
		TEST(a_query_that_only_waits_is_timed_as_a_query_too),
		TEST(of_two_limits_at_once_the_one_of_queries_is_told),
		TEST(without_limits_a_wait_has_no_end),
		TEST(who_is_served_is_not_timed_any_more),
		TEST(a_limit_that_is_lowered_holds_for_those_who_come),
		TEST(many_waits_end_in_the_same_moment),
		TEST(who_waits_longer_is_told_once),
		TEST(each_wait_has_its_own_notice),
		TEST(a_notice_does_not_put_the_end_off),
		TEST(a_client_that_cannot_be_told_is_gone),
		TEST(idle_clients_may_be_closed),
		TEST(idle_is_counted_from_the_last_bytes),
		TEST(who_has_a_server_is_not_idle),
		TEST(a_user_may_have_an_idle_time_of_his_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
