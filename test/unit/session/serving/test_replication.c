/* SPDX-License-Identifier: ISC */
/*
 * Replication clients: when their servers are launched, how room is made for them, which
 * failures they receive, and what is in flight after each end of a stream.
 */
#include <errno.h>

#include "session/pool/pairing.h"
#include "session/serving/control.h"
#include "session/serving/replication.h"
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
static struct endpoint *replication_client(void)
{
	struct endpoint *client = fake_accept(-1);

	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "replication",
		"database", NULL);
	read_letters(client);
	return client;
}

/* The server that was launched for the client has received the StartupMessage. */
static struct endpoint *launched_for(const struct endpoint *client)
{
	struct endpoint *server = fake_launched();

	assert_non_null(server);
	assert_ptr_equal(endpoint_server(server)->launched_for, endpoint_client(client));
	assert_int_equal(endpoint_server(server)->replication, REPLICATION_LOGICAL);
	fake_connected(server, 0);
	assert_received(server, "^");
	return server;
}

static void complete_login(struct endpoint *server)
{
	send_letters(server, "RSKZ");
}

/* A client with a running stream, and its server. */
static struct endpoint *begin_stream(struct endpoint **server)
{
	struct endpoint *client = replication_client();

	send_letters(client, "Q");
	*server = launched_for(client);
	complete_login(*server);
	assert_received(*server, "Q");
	send_letters(*server, "Wd");
	assert_received(client, "Wd");
	return client;
}

static void assert_nothing_in_flight(struct endpoint *server)
{
	assert_true(server_is_clean(endpoint_server(server)));
	assert_true(replication_is_endless(endpoint_server(server)));
}

/* --- launching ---------------------------------------------------------------------------- */

static void test_server_is_launched_for_the_first_query(void **state)
{
	struct endpoint *client = replication_client(), *server;

	(void)state;
	assert_state(client, CLIENT_IDLE);
	assert_null(fake_launched());
	send_letters(client, "Q");
	assert_state(client, CLIENT_LAUNCHING);
	server = launched_for(client);
	complete_login(server);
	assert_state(client, CLIENT_PAIRED);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	/* The server stays paired in transaction mode too. */
	assert_state(client, CLIENT_PAIRED);
}

static void test_server_is_launched_at_the_login_without_a_welcome(void **state)
{
	struct endpoint *client, *server;
	const char *letters;

	(void)state;
	pool_forget_welcome(pool);
	client = replication_client();
	assert_state(client, CLIENT_WELCOMING);
	server = launched_for(client);
	complete_login(server);
	letters = read_letters(client);
	assert_int_equal(letters[0], 'R');
	assert_string_equal(letters + strlen(letters) - 2, "KZ");
	assert_state(client, CLIENT_PAIRED);
	assert_null(pool->welcome);
}

static void test_ordinary_login_does_not_use_the_replication_server(void **state)
{
	struct endpoint *client, *server, *other;

	(void)state;
	pool_forget_welcome(pool);
	client = replication_client();
	server = launched_for(client);
	other = fake_accept(-1);
	send_startup(other, PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_state(other, CLIENT_WELCOMING);
	assert_null(fake_launched());
	complete_login(server);
	assert_state(client, CLIENT_PAIRED);
	assert_state(other, CLIENT_WELCOMING);
	fake_turn();
	server = fake_launched();
	assert_non_null(server);
	assert_null(endpoint_server(server)->launched_for);
	fake_connected(server, 0);
	complete_login(server);
	assert_state(other, CLIENT_IDLE);
}

static void test_each_client_gets_a_login_at_the_same_time(void **state)
{
	struct endpoint *first = replication_client(), *second = replication_client();
	struct endpoint *servers[2];

	(void)state;
	send_letters(first, "Q");
	send_letters(second, "Q");
	servers[0] = launched_for(first);
	servers[1] = launched_for(second);
	complete_login(servers[1]);
	assert_state(second, CLIENT_PAIRED);
	complete_login(servers[0]);
	assert_state(first, CLIENT_PAIRED);
}

static void test_server_login_concurrency_1_is_one_login_at_a_time(void **state)
{
	struct endpoint *first = replication_client(), *second = replication_client(), *server;

	(void)state;
	fake_set("server_login_concurrency", "1");
	send_letters(first, "Q");
	send_letters(second, "Q");
	server = launched_for(first);
	assert_null(fake_launched());
	complete_login(server);
	fake_turn();
	complete_login(launched_for(second));
	assert_state(second, CLIENT_PAIRED);
	assert_ptr_not_equal(endpoint_link(first)->peer, endpoint_link(second)->peer);
}

static void test_idle_server_is_closed_to_make_room(void **state)
{
	struct endpoint *idle = fake_server(pool), *client = replication_client();

	(void)state;
	send_letters(client, "Q");
	assert_received(idle, "X");
	assert_closed(idle);
	complete_login(launched_for(client));
	assert_state(client, CLIENT_PAIRED);
}

static void test_freed_server_is_closed_for_an_earlier_replication_client(void **state)
{
	struct endpoint *server = fake_server(pool), *holder = fake_client(pool);
	struct endpoint *client = replication_client(), *later = fake_client(pool);

	(void)state;
	send_letters(holder, "Q");
	send_letters(client, "Q");
	fake_advance(USEC_PER_SEC);
	send_letters(later, "Q");
	assert_state(client, CLIENT_LAUNCHING);
	send_letters(server, "CZ");
	assert_closed(server);
	complete_login(launched_for(client));
	assert_state(client, CLIENT_PAIRED);
	assert_state(later, CLIENT_WAITING);
	disconnect(client);
	assert_non_null(fake_launched());
}

static void test_freed_server_is_paired_with_an_earlier_ordinary_client(void **state)
{
	struct endpoint *server = fake_server(pool), *holder = fake_client(pool);
	struct endpoint *earlier = fake_client(pool), *client = replication_client();

	(void)state;
	send_letters(holder, "Q");
	send_letters(earlier, "Q");
	fake_advance(USEC_PER_SEC);
	send_letters(client, "Q");
	read_letters(server);
	send_letters(server, "CZ");
	assert_received(server, "Q");
	assert_state(earlier, CLIENT_PAIRED);
	assert_state(client, CLIENT_LAUNCHING);
	assert_null(fake_launched());
}

static void test_freed_server_serves_an_earlier_startup_check(void **state)
{
	struct endpoint *server = fake_server(pool), *holder = fake_client(pool);
	struct endpoint *login = fake_accept(-1), *client;

	(void)state;
	send_letters(holder, "Q");
	send_startup(login, PROTOCOL_3_0, "user", "alice", "database", "db", "work_mem", "1MB",
		NULL);
	assert_state(login, CLIENT_LOOKING_UP);
	fake_advance(USEC_PER_SEC);
	client = replication_client();
	send_letters(client, "Q");
	read_letters(server);
	send_letters(server, "CZ");
	assert_received(server, "PBDES");
	assert_state(client, CLIENT_LAUNCHING);
}

/* The second server is launched after the first one, not when room is made. */
static void test_freed_server_is_kept_while_there_is_room(void **state)
{
	struct endpoint *server = fake_server(pool), *holder = fake_client(pool);
	struct endpoint *first = replication_client(), *second = replication_client(),
			*later = fake_client(pool);

	(void)state;
	send_letters(holder, "Q");
	send_letters(first, "Q");
	send_letters(second, "Q");
	launched_for(first);
	fake_advance(USEC_PER_SEC);
	send_letters(later, "Q");
	assert_state(later, CLIENT_WAITING);
	send_letters(server, "CZ");
	assert_state(later, CLIENT_PAIRED);
	assert_state(second, CLIENT_LAUNCHING);
}

static void test_login_without_a_welcome_respects_the_pool_size(void **state)
{
	struct endpoint *server, *second;

	(void)state;
	pool_forget_welcome(pool);
	server = launched_for(replication_client());
	complete_login(server);
	second = replication_client();
	fake_turn();
	assert_state(second, CLIENT_WELCOMING);
	assert_null(fake_launched());
	break_connection(server);
	fake_turn();
	launched_for(second);
}

/* --- failures ----------------------------------------------------------------------------- */

static void test_refused_server_login_closes_its_client_only(void **state)
{
	struct endpoint *client = replication_client(), *other = fake_client(pool), *server;

	(void)state;
	send_letters(client, "Q");
	server = launched_for(client);
	send_letters(other, "Q");
	send_error(server, "42501", "not you");
	assert_closed_with_error(client, "08P01", "login failed");
	assert_true(fake_logged("S: login failed: FATAL: not you"));
	assert_false(pool->failing);
	assert_state(other, CLIENT_WAITING);
	fake_turn();
	assert_non_null(fake_launched());
}

static void test_client_waits_for_a_server_that_is_starting_up(void **state)
{
	struct endpoint *client = replication_client();

	(void)state;
	send_letters(client, "Q");
	send_error(launched_for(client), "57P03", "starting up");
	assert_state(client, CLIENT_LAUNCHING);
	assert_true(pool->failing);
	assert_null(fake_launched());
}

static void test_failed_connect_is_a_failure_of_the_pool(void **state)
{
	struct endpoint *client = replication_client(), *server;

	(void)state;
	send_letters(client, "Q");
	server = fake_launched();
	fake_connected(server, ECONNREFUSED);
	assert_closed(server);
	assert_state(client, CLIENT_LAUNCHING);
	assert_true(pool->failing);
}

static void test_server_login_is_closed_with_its_client(void **state)
{
	struct endpoint *client = replication_client(), *server;

	(void)state;
	send_letters(client, "Q");
	server = launched_for(client);
	disconnect(client);
	assert_closed(server);
	assert_false(pool->failing);
	assert_true(fake_logged("closing because: replication client was closed"));
}

static void test_client_that_cannot_receive_the_welcome_is_closed_with_its_server(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	pool_forget_welcome(pool);
	client = replication_client();
	server = launched_for(client);
	scripted_break(client->script);
	complete_login(server);
	assert_closed(client);
	assert_closed(server);
}

static void test_cancelled_query_closes_the_server_login(void **state)
{
	struct endpoint *client = replication_client(), *asker, *server;
	struct buffer request;

	(void)state;
	send_letters(client, "Q");
	server = launched_for(client);
	asker = fake_accept(-1);
	buffer_init(&request);
	startup_write_cancel(
		&request, endpoint_client(client)->key, endpoint_client(client)->key_length);
	send_buffer(asker, &request);
	assert_closed_silently(asker);
	assert_received(client, "EZ");
	assert_state(client, CLIENT_IDLE);
	assert_closed(server);
}

static void test_server_login_closed_by_reconnect_is_repeated(void **state)
{
	struct endpoint *client = replication_client(), *server;

	(void)state;
	send_letters(client, "Q");
	server = launched_for(client);
	control_reconnect(&fake_registry, NULL);
	assert_closed(server);
	assert_state(client, CLIENT_LAUNCHING);
	fake_turn();
	complete_login(launched_for(client));
	assert_state(client, CLIENT_PAIRED);
}

/* --- the ends of a stream ----------------------------------------------------------------- */

static void test_stream_is_not_timed_as_a_query(void **state)
{
	struct endpoint *server, *client = begin_stream(&server);

	(void)state;
	assert_int_equal(endpoint_client(client)->query_start, 0);
	assert_int_equal(endpoint_client(client)->transaction_start, 0);
	assert_true(replication_is_endless(endpoint_server(server)));
}

static void test_client_may_end_the_stream(void **state)
{
	struct endpoint *server, *client = begin_stream(&server);

	(void)state;
	send_letters(client, "dc");
	assert_received(server, "dc");
	send_letters(server, "dcCZ");
	assert_received(client, "dcCZ");
	assert_nothing_in_flight(server);
}

static void test_server_may_end_the_stream_with_several_results(void **state)
{
	struct endpoint *server, *client = begin_stream(&server);

	(void)state;
	send_letters(server, "c");
	send_letters(client, "dc");
	assert_received(server, "dc");
	send_letters(server, "TDCC");
	assert_false(server_is_clean(endpoint_server(server)));
	send_letters(server, "Z");
	assert_received(client, "cTDCCZ");
	assert_nothing_in_flight(server);
}

static void test_late_copy_messages_after_an_error_are_ignored(void **state)
{
	static const char *const late[] = {"c", "f", "d", "ddc"};

	(void)state;
	for (size_t i = 0; i < COUNT(late); i++) {
		struct endpoint *server, *client = begin_stream(&server);

		send_letters(server, "E");
		send_letters(client, late[i]);
		send_letters(server, "Z");
		assert_received(client, "EZ");
		assert_nothing_in_flight(server);
		send_letters(client, late[i]);
		read_letters(server);
		send_letters(client, "Q");
		assert_received(server, "Q");
		send_letters(server, "TDCZ");
		assert_received(client, "TDCZ");
		assert_nothing_in_flight(server);
		disconnect(client);
		fake_turn();
	}
}

static void test_copy_into_a_table_is_not_a_stream(void **state)
{
	struct endpoint *server, *client = begin_stream(&server);

	(void)state;
	send_letters(client, "c");
	send_letters(server, "cCZ");
	send_letters(client, "Q");
	send_letters(server, "G");
	assert_false(replication_is_endless(endpoint_server(server)));
}

static void test_closing_either_side_of_a_stream_closes_the_other(void **state)
{
	struct endpoint *server, *client = begin_stream(&server);

	(void)state;
	disconnect(client);
	assert_received(server, "X");
	assert_closed(server);
	assert_true(fake_logged("closing because: replication client disconnected"));
	client = begin_stream(&server);
	disconnect(server);
	assert_closed_with_error(client, "08006", "server conn crashed?");
	/* No server was drained or returned to the pool. */
	assert_int_equal(pool_servers(pool), 0);
}

static void test_transaction_of_a_replication_client_is_not_endless(void **state)
{
	struct endpoint *client = replication_client(), *server;

	(void)state;
	send_letters(client, "Q");
	server = launched_for(client);
	complete_login(server);
	send_letters(server, "C>");
	assert_false(replication_is_endless(endpoint_server(server)));
	send_letters(client, "Q");
	send_letters(server, "CZ");
	assert_true(replication_is_endless(endpoint_server(server)));
}

/* When the process waits for its last client: replication clients would stay for ever. */
static void test_streams_are_closed_when_no_other_client_is_left(void **state)
{
	struct endpoint *server, *client = begin_stream(&server), *idle = replication_client();
	struct endpoint *other = fake_client(pool);

	(void)state;
	replication_end_last(&fake_registry, fake_process.limits.clients);
	assert_false(is_closed(client));
	assert_false(is_closed(idle));
	disconnect(other);
	replication_end_last(&fake_registry, fake_process.limits.clients);
	fake_turn();
	assert_closed(client);
	assert_closed(idle);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, fake_end)
#define TEST_SMALL(name) cmocka_unit_test_setup_teardown(name, start_small, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_server_is_launched_for_the_first_query),
		TEST(test_server_is_launched_at_the_login_without_a_welcome),
		TEST(test_ordinary_login_does_not_use_the_replication_server),
		TEST(test_each_client_gets_a_login_at_the_same_time),
		TEST(test_server_login_concurrency_1_is_one_login_at_a_time),
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
