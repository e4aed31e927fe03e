/* SPDX-License-Identifier: ISC */
/*
 * Timeouts of clients: when each starts, which one expires first, and which error the client
 * receives.
 */
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
		   "short_wait = host=/tmp query_wait_timeout=3\n"
		   "[users]\n"
		   "no_wait_limit = query_wait_timeout=0 client_idle_timeout=20\n"
		   "long_wait = query_wait_timeout=9\n"
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
	/* No client is given a server. */
	pool->database->paused = true;
	return 0;
}

/* A client that waits for a server and is given none. */
static struct endpoint *waiting_client(const char *database, const char *user)
{
	struct pool *in = fake_pool(database, user);
	struct endpoint *client = fake_client(in);

	in->database->paused = true;
	send_letters(client, "Q");
	assert_state(client, CLIENT_WAITING);
	return client;
}

/* The client is closed when this time has passed, at most one tick later, and not before. */
static void assert_closed_after(struct endpoint *client, usec_t time)
{
	fake_advance(time - 1);
	assert_false(is_closed(client));
	fake_advance(WHEEL_TICK + 1);
	assert_closed(client);
}

/* --- logins ------------------------------------------------------------------------------- */

static void test_silent_client_is_closed_by_client_login_timeout(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	assert_closed_after(client, SECONDS(60));
	assert_closed_with_error(client, "57014", "client_login_timeout");
}

static void test_client_login_timeout_starts_at_the_connect(void **state)
{
	struct endpoint *client = fake_accept(-1);
	static const uint8_t bytes[] = "\0\0\0\x20\0\3\0\0user\0alice";

	(void)state;
	for (int i = 0; i < 59; i++) {
		if (i < 18)
			send_bytes(client, bytes + i, 1);
		fake_advance(SECONDS(1));
	}
	assert_false(is_closed(client));
	fake_advance(SECONDS(1) + WHEEL_TICK);
	assert_closed_with_error(client, "57014", "client_login_timeout");
}

static void test_unanswered_password_request_does_not_extend_client_login_timeout(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	fake_advance(SECONDS(50));
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_received(client, "R");
	assert_closed_after(client, SECONDS(10));
	assert_closed_with_error(client, "57014", "client_login_timeout");
}

static void test_login_is_not_limited_without_client_login_timeout(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("client_login_timeout", "0");
	client = fake_accept(-1);
	fake_advance(SECONDS(10000));
	assert_state(client, CLIENT_GREETING);
}

static void test_client_login_timeout_ends_with_the_login(void **state)
{
	struct endpoint *client = fake_client(pool);

	(void)state;
	fake_advance(SECONDS(1000));
	assert_state(client, CLIENT_IDLE);
}

/* --- the first server of a pool ----------------------------------------------------------- */

/* A client that reached the wait for the welcome this long after its connect. */
static struct endpoint *welcoming_client(usec_t time)
{
	struct endpoint *client = fake_accept(-1);

	pool_forget_welcome(pool);
	fake_advance(time);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_received(client, "R");
	send_letters(client, "p");
	assert_state(client, CLIENT_WELCOMING);
	return client;
}

static void test_wait_for_the_welcome_is_limited_by_client_login_timeout(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_wait_timeout", "0");
	client = welcoming_client(SECONDS(20));
	assert_closed_after(client, SECONDS(40));
	assert_closed_with_error(client, "57P03", "client_login_timeout (server down)");
}

static void test_wait_for_the_welcome_is_limited_by_query_wait_timeout(void **state)
{
	struct endpoint *client = welcoming_client(SECONDS(20));

	(void)state;
	assert_closed_after(client, SECONDS(6));
	assert_closed_with_error(client, "57014", "query_wait_timeout");
}

static void test_wait_for_the_welcome_is_limited_by_query_timeout(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_timeout", "4");
	client = welcoming_client(SECONDS(20));
	assert_closed_after(client, SECONDS(4));
	assert_closed_with_error(client, "57014", "query_timeout");
}

static void test_no_notice_is_sent_before_the_welcome(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_wait_notify", "1");
	client = welcoming_client(0);
	fake_advance(SECONDS(5));
	assert_received(client, "");
	assert_state(client, CLIENT_WELCOMING);
}

/* --- waiting ------------------------------------------------------------------------------ */

static void test_wait_is_limited_by_query_wait_timeout(void **state)
{
	struct endpoint *client = waiting_client("db", "alice");

	(void)state;
	assert_closed_after(client, SECONDS(6));
	assert_closed_with_error(client, "57014", "query_wait_timeout");
	assert_int_equal(pool->client_count[CLIENT_WAITING], 0);
}

static void test_query_wait_timeout_starts_with_the_first_message(void **state)
{
	struct endpoint *client = fake_client(pool), *server;

	(void)state;
	pool->database->paused = false;
	server = fake_server(pool);
	fake_advance(SECONDS(100));
	send_letters(client, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	fake_advance(SECONDS(100));
	pool->database->paused = true;
	send_letters(client, "Q");
	assert_closed_after(client, SECONDS(6));
	assert_closed_with_error(client, "57014", "query_wait_timeout");
}

static void test_query_wait_timeout_of_user_precedes_database_and_global_value(void **state)
{
	struct endpoint *short_wait = waiting_client("short_wait", "alice"),
			*long_wait = waiting_client("short_wait", "long_wait");
	struct endpoint *no_wait_limit = waiting_client("short_wait", "no_wait_limit"),
			*plain = waiting_client("db", "bob");

	(void)state;
	fake_advance(SECONDS(3) + WHEEL_TICK);
	assert_closed_with_error(short_wait, "57014", "query_wait_timeout");
	assert_state(plain, CLIENT_WAITING);
	fake_advance(SECONDS(3));
	assert_closed_with_error(plain, "57014", "query_wait_timeout");
	assert_state(long_wait, CLIENT_WAITING);
	fake_advance(SECONDS(3));
	assert_closed_with_error(long_wait, "57014", "query_wait_timeout");
	fake_advance(SECONDS(1000));
	assert_state(no_wait_limit, CLIENT_WAITING);
}

static void test_wait_is_limited_by_query_timeout(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_timeout", "4");
	client = waiting_client("db", "alice");
	assert_closed_after(client, SECONDS(4));
	assert_closed_with_error(client, "57014", "query_timeout");
}

static void test_query_timeout_is_reported_when_both_expire(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_timeout", "6");
	client = waiting_client("db", "alice");
	assert_closed_after(client, SECONDS(6));
	assert_closed_with_error(client, "57014", "query_timeout");
}

static void test_wait_is_not_limited_without_timeouts(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_wait_timeout", "0");
	client = waiting_client("db", "alice");
	fake_advance(SECONDS(10000));
	assert_state(client, CLIENT_WAITING);
}

static void test_query_wait_timeout_ends_when_the_client_is_paired(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	pool->database->paused = false;
	server = fake_server(pool);
	client = fake_client(pool);
	send_letters(client, "Q");
	fake_advance(SECONDS(1000));
	assert_state(client, CLIENT_PAIRED);
	send_letters(server, "CZ");
	fake_advance(SECONDS(1000));
	assert_state(client, CLIENT_IDLE);
}

static void test_changed_query_wait_timeout_applies_to_later_waits(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_wait_timeout", "2");
	client = waiting_client("db", "alice");
	assert_closed_after(client, SECONDS(2));
	fake_set("query_wait_timeout", "6");
	client = waiting_client("db", "alice");
	/* A limit raised during the wait applies when the old one expires. */
	fake_set("query_wait_timeout", "10");
	fake_advance(SECONDS(7));
	assert_state(client, CLIENT_WAITING);
	assert_closed_after(client, SECONDS(3));
}

static void test_many_waits_expire_at_once(void **state)
{
	struct endpoint *clients[200];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = waiting_client("db", "alice");
	fake_advance(SECONDS(6) + WHEEL_TICK);
	for (size_t i = 0; i < COUNT(clients); i++)
		assert_closed_with_error(clients[i], "57014", "query_wait_timeout");
}

/* --- the notice --------------------------------------------------------------------------- */

static void test_long_wait_is_reported_by_one_notice(void **state)
{
	struct endpoint *client;
	size_t length;

	(void)state;
	fake_set("query_wait_timeout", "0");
	fake_set("query_wait_notify", "5");
	client = waiting_client("db", "alice");
	fake_advance(SECONDS(6) - 1);
	assert_received(client, "");
	fake_advance(WHEEL_TICK + 1);
	assert_received(client, "N");
	assert_memory_equal(received_body(client, &length),
		"SNOTICE\0C00000\0MNo server connection available in postgres backend, "
		"client being queued\0",
		89);
	fake_advance(SECONDS(100));
	assert_received(client, "");
	assert_state(client, CLIENT_WAITING);
}

static void test_each_wait_has_its_own_notice(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	fake_set("query_wait_timeout", "0");
	fake_set("query_wait_notify", "5");
	client = waiting_client("db", "alice");
	fake_advance(SECONDS(7));
	assert_received(client, "N");
	server = fake_server(pool);
	pool->database->paused = false;
	pool_needs_work(pool);
	fake_turn();
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	pool->database->paused = true;
	send_letters(client, "Q");
	fake_advance(SECONDS(7));
	assert_received(client, "N");
}

static void test_notice_does_not_extend_query_wait_timeout(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_wait_notify", "2");
	client = waiting_client("db", "alice");
	fake_advance(SECONDS(4));
	assert_received(client, "N");
	assert_closed_after(client, SECONDS(2));
	assert_closed_with_error(client, "57014", "query_wait_timeout");
}

static void test_client_is_closed_when_its_notice_cannot_be_sent(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_wait_notify", "2");
	client = waiting_client("db", "alice");
	scripted_break(client->script);
	fake_advance(SECONDS(4));
	assert_closed(client);
}

/* --- idle clients ------------------------------------------------------------------------- */

static void test_idle_client_is_closed_by_client_idle_timeout(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("client_idle_timeout", "10");
	client = fake_client(pool);
	assert_closed_after(client, SECONDS(10));
	assert_closed_with_error(client, "57P05", "client_idle_timeout");
}

static void test_client_idle_timeout_starts_with_the_last_bytes(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	pool->database->paused = false;
	server = fake_server(pool);
	fake_set("client_idle_timeout", "10");
	client = fake_client(pool);
	for (int i = 0; i < 5; i++) {
		fake_advance(SECONDS(8));
		send_letters(client, "Q");
		send_letters(server, "CZ");
	}
	fake_advance(SECONDS(8));
	send_bytes(client, "Q", 1);
	read_letters(client);
	assert_closed_after(client, SECONDS(10));
	assert_closed_with_error(client, "57P05", "client_idle_timeout");
}

static void test_paired_client_is_not_idle(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	pool->database->paused = false;
	fake_set("client_idle_timeout", "10");
	server = fake_server(pool);
	client = fake_client(pool);
	send_letters(client, "Q");
	send_letters(server, "C>");
	assert_received(client, "C>");
	fake_advance(SECONDS(100));
	assert_state(client, CLIENT_PAIRED);
}

static void test_user_may_have_its_own_client_idle_timeout(void **state)
{
	struct endpoint *no_wait_limit = fake_client(fake_pool("db", "no_wait_limit")),
			*plain = fake_client(pool);

	(void)state;
	assert_closed_after(no_wait_limit, SECONDS(20));
	assert_closed_with_error(no_wait_limit, "57P05", "client_idle_timeout");
	assert_state(plain, CLIENT_IDLE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(silent_client_is_closed_by_client_login_timeout),
		TEST(client_login_timeout_starts_at_the_connect),
		TEST(unanswered_password_request_does_not_extend_client_login_timeout),
		TEST(login_is_not_limited_without_client_login_timeout),
		TEST(client_login_timeout_ends_with_the_login),
		TEST(wait_for_the_welcome_is_limited_by_client_login_timeout),
		TEST(wait_for_the_welcome_is_limited_by_query_wait_timeout),
		TEST(wait_for_the_welcome_is_limited_by_query_timeout),
		TEST(no_notice_is_sent_before_the_welcome),
		TEST(wait_is_limited_by_query_wait_timeout),
		TEST(query_wait_timeout_starts_with_the_first_message),
		TEST(query_wait_timeout_of_user_precedes_database_and_global_value),
		TEST(wait_is_limited_by_query_timeout),
		TEST(query_timeout_is_reported_when_both_expire),
		TEST(wait_is_not_limited_without_timeouts),
		TEST(query_wait_timeout_ends_when_the_client_is_paired),
		TEST(changed_query_wait_timeout_applies_to_later_waits),
		TEST(many_waits_expire_at_once),
		TEST(long_wait_is_reported_by_one_notice),
		TEST(each_wait_has_its_own_notice),
		TEST(notice_does_not_extend_query_wait_timeout),
		TEST(client_is_closed_when_its_notice_cannot_be_sent),
		TEST(idle_client_is_closed_by_client_idle_timeout),
		TEST(client_idle_timeout_starts_with_the_last_bytes),
		TEST(paired_client_is_not_idle),
		TEST(user_may_have_its_own_client_idle_timeout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
