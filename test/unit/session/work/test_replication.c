/* SPDX-License-Identifier: ISC */
/*
 * Replication clients: when their servers are launched, how room is made for them, which
 * failures they receive, and what is in flight after each end of a stream.
 */
#include <errno.h>

#include "session/pool/pairing.h"
#include "session/work/control.h"
#include "session/work/replication.h"
#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/startup.h"

static struct pool *pool;

static void start_with(const char *settings)
{
	char more[200];

	snprintf(more, sizeof(more), "auth_type = trust\nquery_wait_notify = 0\n%s", settings);
	pool = fake_start_pool(more);
	fake_user("alice", "");
}

static int start(void **state)
{
	(void)state;
	start_with("");
	return 0;
}

static int start_small(void **state)
{
	(void)state;
	start_with("default_pool_size = 1\n");
	return 0;
}

/* --- fixtures ----------------------------------------------------------------------------- */

/* A client that asks for logical replication; it may have to wait for the welcome message. */
static struct actor *replication_client(void)
{
	struct actor *client = fake_accept(-1);

	say_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "replication",
		"database", NULL);
	hear(client);
	return client;
}

/* The server that was launched for the client has received the StartupMessage. */
static struct actor *launched_for(const struct actor *client)
{
	struct actor *server = fake_launched();

	assert_non_null(server);
	assert_ptr_equal(actor_server(server)->launched_for, actor_client(client));
	assert_int_equal(actor_server(server)->replication, REPLICATION_LOGICAL);
	fake_connected(server, 0);
	assert_heard(server, "^");
	return server;
}

static void complete_login(struct actor *server)
{
	say(server, "RSKZ");
}

/* A client with a running stream, and its server. */
static struct actor *begin_stream(struct actor **server)
{
	struct actor *client = replication_client();

	say(client, "Q");
	*server = launched_for(client);
	complete_login(*server);
	assert_heard(*server, "Q");
	say(*server, "Wd");
	assert_heard(client, "Wd");
	return client;
}

static void assert_nothing_in_flight(struct actor *server)
{
	assert_true(server_is_clean(actor_server(server)));
	assert_true(replication_is_endless(actor_server(server)));
}

/* --- launching ---------------------------------------------------------------------------- */

static void test_server_is_launched_for_the_first_query(void **state)
{
	struct actor *client = replication_client(), *server;

	(void)state;
	assert_state(client, CLIENT_IDLE);
	assert_null(fake_launched());
	say(client, "Q");
	assert_state(client, CLIENT_LAUNCHING);
	server = launched_for(client);
	complete_login(server);
	assert_state(client, CLIENT_PAIRED);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_heard(client, "CZ");
	/* The server stays paired in transaction mode too. */
	assert_state(client, CLIENT_PAIRED);
}

static void test_server_is_launched_at_the_login_without_a_welcome(void **state)
{
	struct actor *client, *server;
	const char *letters;

	(void)state;
	pool_forget_welcome(pool);
	client = replication_client();
	assert_state(client, CLIENT_WELCOMING);
	server = launched_for(client);
	complete_login(server);
	letters = hear(client);
	assert_int_equal(letters[0], 'R');
	assert_string_equal(letters + strlen(letters) - 2, "KZ");
	assert_state(client, CLIENT_PAIRED);
	assert_null(pool->welcome);
}

static void test_ordinary_login_does_not_use_the_replication_server(void **state)
{
	struct actor *client, *server, *other;

	(void)state;
	pool_forget_welcome(pool);
	client = replication_client();
	server = launched_for(client);
	other = fake_accept(-1);
	say_startup(other, PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_state(other, CLIENT_WELCOMING);
	assert_null(fake_launched());
	complete_login(server);
	assert_state(client, CLIENT_PAIRED);
	assert_state(other, CLIENT_WELCOMING);
	fake_turn();
	server = fake_launched();
	assert_non_null(server);
	assert_null(actor_server(server)->launched_for);
	fake_connected(server, 0);
	complete_login(server);
	assert_state(other, CLIENT_IDLE);
}

static void test_one_server_login_runs_at_a_time(void **state)
{
	struct actor *first = replication_client(), *second = replication_client(), *server;

	(void)state;
	say(first, "Q");
	say(second, "Q");
	server = launched_for(first);
	assert_null(fake_launched());
	complete_login(server);
	fake_turn();
	complete_login(launched_for(second));
	assert_state(second, CLIENT_PAIRED);
	assert_ptr_not_equal(actor_link(first)->peer, actor_link(second)->peer);
}

static void test_idle_server_is_closed_to_make_room(void **state)
{
	struct actor *idle = fake_server(pool), *client = replication_client();

	(void)state;
	say(client, "Q");
	assert_heard(idle, "X");
	assert_gone(idle);
	complete_login(launched_for(client));
	assert_state(client, CLIENT_PAIRED);
}

static void test_freed_server_is_closed_for_an_earlier_replication_client(void **state)
{
	struct actor *server = fake_server(pool), *holder = fake_client(pool);
	struct actor *client = replication_client(), *later = fake_client(pool);

	(void)state;
	say(holder, "Q");
	say(client, "Q");
	fake_advance(USEC_PER_SEC);
	say(later, "Q");
	assert_state(client, CLIENT_LAUNCHING);
	say(server, "CZ");
	assert_gone(server);
	complete_login(launched_for(client));
	assert_state(client, CLIENT_PAIRED);
	assert_state(later, CLIENT_WAITING);
	leave(client);
	assert_non_null(fake_launched());
}

static void test_freed_server_is_paired_with_an_earlier_ordinary_client(void **state)
{
	struct actor *server = fake_server(pool), *holder = fake_client(pool);
	struct actor *earlier = fake_client(pool), *client = replication_client();

	(void)state;
	say(holder, "Q");
	say(earlier, "Q");
	fake_advance(USEC_PER_SEC);
	say(client, "Q");
	hear(server);
	say(server, "CZ");
	assert_heard(server, "Q");
	assert_state(earlier, CLIENT_PAIRED);
	assert_state(client, CLIENT_LAUNCHING);
	assert_null(fake_launched());
}

static void test_freed_server_serves_an_earlier_startup_check(void **state)
{
	struct actor *server = fake_server(pool), *holder = fake_client(pool);
	struct actor *login = fake_accept(-1), *client;

	(void)state;
	say(holder, "Q");
	say_startup(login, PROTOCOL_3_0, "user", "alice", "database", "db", "work_mem", "1MB",
		NULL);
	assert_state(login, CLIENT_LOOKING_UP);
	fake_advance(USEC_PER_SEC);
	client = replication_client();
	say(client, "Q");
	hear(server);
	say(server, "CZ");
	assert_heard(server, "PBDES");
	assert_state(client, CLIENT_LAUNCHING);
}

/* The second server is launched after the first one, not when room is made. */
static void test_freed_server_is_kept_while_there_is_room(void **state)
{
	struct actor *server = fake_server(pool), *holder = fake_client(pool);
	struct actor *first = replication_client(), *second = replication_client(),
		     *later = fake_client(pool);

	(void)state;
	say(holder, "Q");
	say(first, "Q");
	say(second, "Q");
	launched_for(first);
	fake_advance(USEC_PER_SEC);
	say(later, "Q");
	assert_state(later, CLIENT_WAITING);
	say(server, "CZ");
	assert_state(later, CLIENT_PAIRED);
	assert_state(second, CLIENT_LAUNCHING);
}

static void test_login_without_a_welcome_respects_the_pool_size(void **state)
{
	struct actor *server, *second;

	(void)state;
	pool_forget_welcome(pool);
	server = launched_for(replication_client());
	complete_login(server);
	second = replication_client();
	fake_turn();
	assert_state(second, CLIENT_WELCOMING);
	assert_null(fake_launched());
	vanish(server);
	fake_turn();
	launched_for(second);
}

/* --- failures ----------------------------------------------------------------------------- */

static void test_refused_server_login_closes_its_client_only(void **state)
{
	struct actor *client = replication_client(), *other = fake_client(pool), *server;

	(void)state;
	say(client, "Q");
	server = launched_for(client);
	say(other, "Q");
	say_error(server, "42501", "not you");
	assert_told(client, "08P01", "login failed");
	assert_true(fake_logged("S: login failed: FATAL: not you"));
	assert_false(pool->failing);
	assert_state(other, CLIENT_WAITING);
	fake_turn();
	assert_non_null(fake_launched());
}

static void test_client_waits_for_a_server_that_is_starting_up(void **state)
{
	struct actor *client = replication_client();

	(void)state;
	say(client, "Q");
	say_error(launched_for(client), "57P03", "starting up");
	assert_state(client, CLIENT_LAUNCHING);
	assert_true(pool->failing);
	assert_null(fake_launched());
}

static void test_failed_connect_is_a_failure_of_the_pool(void **state)
{
	struct actor *client = replication_client(), *server;

	(void)state;
	say(client, "Q");
	server = fake_launched();
	fake_connected(server, ECONNREFUSED);
	assert_gone(server);
	assert_state(client, CLIENT_LAUNCHING);
	assert_true(pool->failing);
}

static void test_server_login_is_closed_with_its_client(void **state)
{
	struct actor *client = replication_client(), *server;

	(void)state;
	say(client, "Q");
	server = launched_for(client);
	leave(client);
	assert_gone(server);
	assert_false(pool->failing);
	assert_true(fake_logged("closing because: replication client was closed"));
}

static void test_client_that_cannot_receive_the_welcome_is_closed_with_its_server(void **state)
{
	struct actor *client, *server;

	(void)state;
	pool_forget_welcome(pool);
	client = replication_client();
	server = launched_for(client);
	scripted_break(client->script);
	complete_login(server);
	assert_gone(client);
	assert_gone(server);
}

static void test_cancelled_query_closes_the_server_login(void **state)
{
	struct actor *client = replication_client(), *asker, *server;
	struct buffer request;

	(void)state;
	say(client, "Q");
	server = launched_for(client);
	asker = fake_accept(-1);
	buffer_init(&request);
	startup_write_cancel(
		&request, actor_client(client)->key, actor_client(client)->key_length);
	say_buffer(asker, &request);
	assert_dropped(asker);
	assert_heard(client, "EZ");
	assert_state(client, CLIENT_IDLE);
	assert_gone(server);
}

static void test_server_login_closed_by_reconnect_is_repeated(void **state)
{
	struct actor *client = replication_client(), *server;

	(void)state;
	say(client, "Q");
	server = launched_for(client);
	control_reconnect(&fake_registry, NULL);
	assert_gone(server);
	assert_state(client, CLIENT_LAUNCHING);
	fake_turn();
	complete_login(launched_for(client));
	assert_state(client, CLIENT_PAIRED);
}

/* --- the ends of a stream ----------------------------------------------------------------- */

static void test_stream_is_not_timed_as_a_query(void **state)
{
	struct actor *server, *client = begin_stream(&server);

	(void)state;
	assert_int_equal(actor_client(client)->query_start, 0);
	assert_int_equal(actor_client(client)->transaction_start, 0);
	assert_true(replication_is_endless(actor_server(server)));
}

static void test_client_may_end_the_stream(void **state)
{
	struct actor *server, *client = begin_stream(&server);

	(void)state;
	say(client, "dc");
	assert_heard(server, "dc");
	say(server, "dcCZ");
	assert_heard(client, "dcCZ");
	assert_nothing_in_flight(server);
}

static void test_server_may_end_the_stream_with_several_results(void **state)
{
	struct actor *server, *client = begin_stream(&server);

	(void)state;
	say(server, "c");
	say(client, "dc");
	assert_heard(server, "dc");
	say(server, "TDCC");
	assert_false(server_is_clean(actor_server(server)));
	say(server, "Z");
	assert_heard(client, "cTDCCZ");
	assert_nothing_in_flight(server);
}

static void test_late_copy_messages_after_an_error_are_ignored(void **state)
{
	static const char *const late[] = {"c", "f", "d", "ddc"};

	(void)state;
	for (size_t i = 0; i < COUNT(late); i++) {
		struct actor *server, *client = begin_stream(&server);

		say(server, "E");
		say(client, late[i]);
		say(server, "Z");
		assert_heard(client, "EZ");
		assert_nothing_in_flight(server);
		say(client, late[i]);
		hear(server);
		say(client, "Q");
		assert_heard(server, "Q");
		say(server, "TDCZ");
		assert_heard(client, "TDCZ");
		assert_nothing_in_flight(server);
		leave(client);
		fake_turn();
	}
}

static void test_copy_into_a_table_is_not_a_stream(void **state)
{
	struct actor *server, *client = begin_stream(&server);

	(void)state;
	say(client, "c");
	say(server, "cCZ");
	say(client, "Q");
	say(server, "G");
	assert_false(replication_is_endless(actor_server(server)));
}

static void test_closing_either_side_of_a_stream_closes_the_other(void **state)
{
	struct actor *server, *client = begin_stream(&server);

	(void)state;
	leave(client);
	assert_heard(server, "X");
	assert_gone(server);
	assert_true(fake_logged("closing because: replication client disconnected"));
	client = begin_stream(&server);
	leave(server);
	assert_told(client, "08006", "server conn crashed?");
	/* No server was drained or returned to the pool. */
	assert_int_equal(pool_servers(pool), 0);
}

static void test_transaction_of_a_replication_client_is_not_endless(void **state)
{
	struct actor *client = replication_client(), *server;

	(void)state;
	say(client, "Q");
	server = launched_for(client);
	complete_login(server);
	say(server, "C>");
	assert_false(replication_is_endless(actor_server(server)));
	say(client, "Q");
	say(server, "CZ");
	assert_true(replication_is_endless(actor_server(server)));
}

/* When the process waits for its last client: replication clients would stay for ever. */
static void test_streams_are_closed_when_no_other_client_is_left(void **state)
{
	struct actor *server, *client = begin_stream(&server), *idle = replication_client();
	struct actor *other = fake_client(pool);

	(void)state;
	replication_end_last(&fake_registry);
	assert_false(is_gone(client));
	assert_false(is_gone(idle));
	leave(other);
	replication_end_last(&fake_registry);
	fake_turn();
	assert_gone(client);
	assert_gone(idle);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, fake_end)
#define TEST_SMALL(name) cmocka_unit_test_setup_teardown(name, start_small, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_server_is_launched_for_the_first_query),
		TEST(test_server_is_launched_at_the_login_without_a_welcome),
		TEST(test_ordinary_login_does_not_use_the_replication_server),
		TEST(test_one_server_login_runs_at_a_time),
		TEST_SMALL(test_idle_server_is_closed_to_make_room),
		TEST_SMALL(test_freed_server_is_closed_for_an_earlier_replication_client),
		TEST_SMALL(test_freed_server_is_paired_with_an_earlier_ordinary_client),
		TEST_SMALL(test_freed_server_serves_an_earlier_startup_check),
		TEST(test_freed_server_is_kept_while_there_is_room),
		TEST_SMALL(test_login_without_a_welcome_respects_the_pool_size),
		TEST(test_refused_server_login_closes_its_client_only),
		TEST(test_client_waits_for_a_server_that_is_starting_up),
		TEST(test_failed_connect_is_a_failure_of_the_pool),
		TEST(test_server_login_is_closed_with_its_client),
		TEST(test_client_that_cannot_receive_the_welcome_is_closed_with_its_server),
		TEST(test_cancelled_query_closes_the_server_login),
		TEST(test_server_login_closed_by_reconnect_is_repeated),
		TEST(test_stream_is_not_timed_as_a_query),
		TEST(test_client_may_end_the_stream),
		TEST(test_server_may_end_the_stream_with_several_results),
		TEST(test_late_copy_messages_after_an_error_are_ignored),
		TEST(test_copy_into_a_table_is_not_a_stream),
		TEST(test_closing_either_side_of_a_stream_closes_the_other),
		TEST(test_transaction_of_a_replication_client_is_not_endless),
		TEST(test_streams_are_closed_when_no_other_client_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
