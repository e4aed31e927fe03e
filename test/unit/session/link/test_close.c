/* SPDX-License-Identifier: ISC */
/*
 * How links are closed: which side receives an error, never inside a message that is only
 * partly sent, and what is freed.
 */
#include "session/link/close.h"
#include "session/serving/control.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/startup.h"
#include "wire/writer.h"

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	pool = fake_start_pool("default_pool_size = 2\nauth_type = trust\n");
	return 0;
}

static void close_client(struct endpoint *client, enum reason reason)
{
	client_close_for(endpoint_client(client), reason);
	fake_turn();
}

static void close_server(struct endpoint *server, enum reason reason)
{
	server_close_for(endpoint_server(server), reason);
	fake_turn();
}

/* Sends the beginning of a message of this total size: so many bytes. */
static void send_beginning(struct endpoint *endpoint, uint8_t type, size_t total, size_t part)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_byte(&buffer, type);
	writer_int32(&buffer, (uint32_t)total - 1);
	memset(buffer_extend(&buffer, part - 5), 'x', part - 5);
	send_buffer(endpoint, &buffer);
}

/* --- clients ------------------------------------------------------------------------------ */

static void test_client_receives_the_reason(void **state)
{
	struct endpoint *client = fake_client(pool);

	(void)state;
	close_client(client, REASON_CLIENT_IDLE_TIMEOUT);
	assert_closed_with_error(client, "57P05", "client_idle_timeout");
	assert_true(fake_logged("pooler error: client_idle_timeout"));
	assert_true(fake_logged("closing because: client_idle_timeout (age=0s)"));
}

static void test_some_reasons_are_not_sent_to_the_client(void **state)
{
	static const enum reason silent[] = {REASON_CLIENT_CLOSE_REQUEST,
		REASON_CLIENT_UNEXPECTED_EOF, REASON_UNEXPECTED_EOF, REASON_BAD_PACKET,
		REASON_CANCEL_SENT, REASON_PROCESS_ENDS};

	(void)state;
	for (size_t i = 0; i < COUNT(silent); i++) {
		struct endpoint *client = fake_client(pool);

		close_client(client, silent[i]);
		assert_closed_silently(client);
	}
	assert_false(fake_logged("pooler error"));
}

static void test_log_lines_follow_their_settings(void **state)
{
	(void)state;
	fake_set("log_pooler_errors", "0");
	close_client(fake_client(pool), REASON_CLIENT_IDLE_TIMEOUT);
	assert_false(fake_logged("pooler error"));
	fake_set("log_disconnections", "0");
	close_client(fake_client(pool), REASON_QUERY_WAIT_TIMEOUT);
	close_server(fake_server(pool), REASON_SERVER_IDLE_TIMEOUT);
	assert_false(fake_logged("query_wait_timeout"));
	assert_false(fake_logged("server idle timeout"));
}

static void test_closed_link_is_freed_at_the_end_of_the_turn(void **state)
{
	struct endpoint *endpoint = fake_client(pool), *other = fake_server(pool);
	struct client_link *client = endpoint_client(endpoint);
	struct server_link *server = endpoint_server(other);

	(void)state;
	client_close_for(client, REASON_CLIENT_IDLE_TIMEOUT);
	server_close_for(server, REASON_SERVER_IDLE_TIMEOUT);
	assert_int_equal(client->link.state, CLIENT_CLOSED);
	assert_int_equal(server->link.state, SERVER_CLOSED);
	assert_null(client->link.peer);
	assert_null(client->group);
	assert_int_equal(client->key_length, 0);
	assert_false(stream_is_open(&client->link.stream));
	assert_int_equal(fake_registry.clients.used, 1);
	/* Closing a closed link again does nothing. */
	client_close_for(client, REASON_QUERY_TIMEOUT);
	server_close_for(server, REASON_QUERY_TIMEOUT);
	fake_check();
	fake_turn();
	assert_int_equal(fake_registry.clients.used, 0);
	assert_int_equal(fake_registry.servers.used, 0);
	assert_closed_with_error(endpoint, "57P05", "client_idle_timeout");
}

static void test_unread_bytes_are_received_before_a_client_is_closed(void **state)
{
	struct endpoint *client = fake_client(pool);

	(void)state;
	scripted_feed(client->script, "Q\0\0\0\5\0", 6);
	close_client(client, REASON_CLIENT_IDLE_TIMEOUT);
	assert_int_equal(scripted_unread(client->script), 0);
	assert_closed_with_error(client, "57P05", "client_idle_timeout");
}

static void test_broken_client_is_closed_without_an_error(void **state)
{
	struct endpoint *client = fake_client(pool);

	(void)state;
	scripted_break(client->script);
	close_client(client, REASON_CLIENT_IDLE_TIMEOUT);
	assert_closed_silently(client);
}

static void test_no_error_is_sent_to_a_blocked_client(void **state)
{
	struct endpoint *client = fake_client(pool), *server = fake_server(pool);

	(void)state;
	send_letters(client, "Q");
	scripted_allow(client->script, 7);
	send_letters(server, "TD");
	close_client(client, REASON_QUERY_TIMEOUT);
	assert_int_equal(received_length(client), 7);
	assert_closed(client);
	assert_state(server, SERVER_DRAINING);
}

/* The client would read the error as the rest of the row. */
static void test_no_error_is_sent_within_a_message(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	for (int way = 0; way < 4; way++) {
		client = fake_client(pool);
		server = fake_server(pool);
		send_letters(client, "Q");
		send_beginning(server, PQ_DATA_ROW, 300, 100);
		assert_int_equal(received_length(client), 100);
		switch (way) {
		case 0:
			disconnect(server);
			break;
		case 1:
			close_server(server, REASON_QUERY_TIMEOUT);
			break;
		case 2:
			close_client(client, REASON_QUERY_TIMEOUT);
			break;
		case 3:
			control_kill(&fake_registry, NULL, false);
			fake_turn();
			pool = fake_pool("db", "alice");
			break;
		}
		assert_int_equal(received_length(client), 100);
		assert_closed(client);
		if (way == 2)
			disconnect(server); /* the server was being drained */
		assert_closed(server);
	}
}

static void test_error_is_sent_after_a_complete_message(void **state)
{
	struct endpoint *client = fake_client(pool), *server = fake_server(pool);

	(void)state;
	send_letters(client, "Q");
	send_beginning(server, PQ_DATA_ROW, 300, 100);
	{
		uint8_t rest[200] = {0};

		send_bytes(server, rest, sizeof(rest));
	}
	disconnect(server);
	assert_received(client, "DE");
	assert_string_equal(client->text, "server conn crashed?");
}

static void test_waiting_client_receives_the_reason(void **state)
{
	struct endpoint *client = fake_client(pool);

	(void)state;
	send_letters(client, "Q");
	assert_state(client, CLIENT_WAITING);
	close_client(client, REASON_QUERY_WAIT_TIMEOUT);
	assert_closed_with_error(client, "57014", "query_wait_timeout");
	assert_int_equal(pool->client_count[CLIENT_WAITING], 0);
	assert_int_equal(fake_registry.helds.used, 0);
}

static void test_console_is_notified_of_a_closed_client(void **state)
{
	struct endpoint *console = fake_accept(-1);

	(void)state;
	fake_user("boss", "");
	fake_set("admin_users", "boss");
	send_startup(console, PROTOCOL_3_0, "user", "boss", "database", "pgbouncer", NULL);
	assert_state(console, CLIENT_CONSOLE);
	close_client(console, REASON_CLOSE_REQ);
	assert_int_equal(fake_console.closed, 1);
}

static void test_aborted_login_is_not_logged(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	disconnect(client);
	assert_false(fake_logged("closing because"));
	client = fake_client(pool);
	disconnect(client);
	assert_true(fake_logged("closing because: client unexpected eof"));
}

static void test_repeated_bad_packets_are_logged_once_a_second(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		send_bytes(fake_accept(-1), "GET / HTTP/1.1\r\n", 16);
		fake_advance(USEC_PER_SEC / 10);
	}
	assert_true(fake_logged(": (nodb)/(nouser)@192.0.2.1:"));
	assert_in_range(fake_log_count("closing because: bad packet"), 4, 6);
	assert_in_range(fake_log_count("10 more like this (192.0.2.1): "), 2, 5);
}

/* --- servers ------------------------------------------------------------------------------ */

static void test_terminate_is_sent_to_a_server_that_has_logged_in(void **state)
{
	struct endpoint *idle = fake_server(pool), *stale = fake_server(pool), *busy;
	struct endpoint *client = fake_client(pool);

	(void)state;
	server_enter(endpoint_server(stale), SERVER_STALE);
	close_server(stale, REASON_SERVER_IDLE_TIMEOUT);
	assert_received(stale, "X");
	close_server(idle, REASON_SERVER_IDLE_TIMEOUT);
	assert_received(idle, "X");
	busy = fake_server(pool);
	send_letters(client, "Q");
	close_server(busy, REASON_QUERY_TIMEOUT);
	assert_received(busy, "QX");
	assert_closed_with_error(client, "57014", "query timeout");
}

static void test_server_in_its_login_is_closed_without_terminate(void **state)
{
	struct endpoint *client = fake_client(pool), *server;

	(void)state;
	send_letters(client, "Q");
	server = fake_launched();
	close_server(server, REASON_PAUSE_MODE);
	assert_closed_silently(server);
	server = fake_launched();
	fake_connected(server, 0);
	close_server(server, REASON_PAUSE_MODE);
	assert_received(server, "^");
	assert_closed(server);
	assert_false(pool->failing);
}

static void test_nothing_is_sent_to_a_crashed_server(void **state)
{
	struct endpoint *server = fake_server(pool);

	(void)state;
	disconnect(server);
	assert_closed_silently(server);
}

/* The server would read the Terminate as the rest of the message, and might run that. */
static void test_no_terminate_is_sent_within_a_message(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	pool->session_state = SESSION_STATE_IGNORE; /* else such a text is awaited as a whole */
	for (int way = 0; way < 4; way++) {
		client = fake_client(pool);
		server = fake_server(pool);
		send_beginning(client, PQ_QUERY, 6000, 5998);
		assert_int_equal(received_length(server), 5998);
		switch (way) {
		case 0:
			disconnect(client);
			break;
		case 1:
			close_server(server, REASON_QUERY_TIMEOUT);
			break;
		case 2:
			close_client(client, REASON_ADMIN_FORCED_DISCONNECT);
			break;
		case 3:
			control_kill(&fake_registry, NULL, false);
			fake_turn();
			pool = fake_pool("db", "alice");
			break;
		}
		assert_int_equal(received_length(server), 5998);
		assert_closed(client);
		assert_closed(server);
	}
}

static void test_terminate_is_sent_after_a_dropped_incomplete_message(void **state)
{
	struct endpoint *client = fake_client(pool), *server = fake_server(pool);

	(void)state;
	fake_set("pool_mode", "session");
	send_letters(client, "Q");
	send_letters(server, "CZ");
	/* Late COPY data of a failed COPY: none of it was sent to the server. */
	send_beginning(client, PQ_COPY_FAIL, 6000, 5998);
	assert_received(server, "Q");
	close_server(server, REASON_QUERY_TIMEOUT);
	assert_received(server, "X");
	assert_received(client, "CZE");
}

/* A part of the message was forwarded: the client receives the rest of it, or is closed. */
static void test_partly_sent_unsolicited_message_is_completed_or_closes_the_client(void **state)
{
	(void)state;
	for (int server_fails = 0; server_fails < 2; server_fails++) {
		struct endpoint *client = fake_client(pool), *server = fake_server(pool);
		struct buffer buffer;

		send_letters(client, "Q");
		buffer_init(&buffer);
		letters_write(&buffer, FROM_SERVER, "CZD");
		send_bytes(server, buffer.data, buffer.length - 3);
		assert_state(client, CLIENT_PAIRED);
		if (server_fails) {
			scripted_end(server->script);
			scripted_run(server->script);
			assert_closed(client);
			assert_int_equal(received_length(client), buffer.length - 3);
		} else {
			send_bytes(server, buffer.data + buffer.length - 3, 3);
			assert_received(client, "CZD");
			assert_state(client, CLIENT_IDLE);
		}
		assert_closed(server);
		buffer_free(&buffer);
	}
}

static void test_client_receives_the_reason_of_its_server(void **state)
{
	static const struct {
		enum reason reason;
		const char *sqlstate, *text;
	} cases[] = {
		{REASON_QUERY_TIMEOUT, "57014", "query timeout"},
		{REASON_IDLE_TRANSACTION_TIMEOUT, "08P01", "idle transaction timeout"},
		{REASON_TRANSACTION_TIMEOUT, "08P01", "transaction timeout"},
		{REASON_DATABASE_CONFIGURATION_CHANGED, "57P01",
			"database configuration changed"},
		{REASON_SERVER_CONN_CRASHED, "08006", "server conn crashed?"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = fake_client(pool), *server = fake_server(pool);

		send_letters(client, "Q");
		close_server(server, cases[i].reason);
		assert_closed_with_error(client, cases[i].sqlstate, cases[i].text);
		assert_closed(server);
	}
}

static void test_closed_server_makes_room_for_a_launch(void **state)
{
	struct endpoint *clients[3], *servers[2];

	(void)state;
	for (size_t i = 0; i < COUNT(servers); i++)
		servers[i] = fake_server(pool);
	for (size_t i = 0; i < COUNT(clients); i++) {
		clients[i] = fake_client(pool);
		send_letters(clients[i], "Q");
	}
	assert_null(fake_launched());
	disconnect(servers[0]);
	assert_non_null(fake_launched());
	assert_state(clients[2], CLIENT_WAITING);
}

/* --- a client disconnects from its server ------------------------------------------------- */

static void test_clean_server_is_returned_to_the_pool(void **state)
{
	struct endpoint *client = fake_client(pool), *next = fake_client(pool), *server;

	(void)state;
	fake_set("pool_mode", "session");
	fake_set("default_pool_size", "1");
	server = fake_server(pool);
	send_letters(client, "Q");
	send_letters(server, "CZ");
	send_letters(next, "Q");
	close_client(client, REASON_ADMIN_FORCED_DISCONNECT);
	assert_state(server, SERVER_PAIRED);
	assert_ptr_equal(endpoint_link(server)->peer, endpoint_link(next));
}

static void test_server_that_is_not_ready_is_drained(void **state)
{
	static const struct {
		const char *before, *expected, *after;
	} cases[] = {
		{"", "Q", "EZ"},
		{"TD", "Q", "DCZ"},
		{"C>", "QQ", "CZ"},
		{"E!", "QQ", "CZ"},
		{"G", "Qf", "EZ"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = fake_client(pool), *server = fake_server(pool);

		send_letters(client, "Q");
		send_letters(server, cases[i].before);
		close_client(client, REASON_ADMIN_FORCED_DISCONNECT);
		assert_received(server, cases[i].expected);
		assert_state(server, SERVER_DRAINING);
		send_letters(server, cases[i].after);
		assert_state(server, SERVER_IDLE);
		close_server(server, REASON_SERVER_IDLE_TIMEOUT);
	}
}

/* --- the whole process -------------------------------------------------------------------- */

static void test_end_of_the_process_is_not_sent_to_clients(void **state)
{
	struct endpoint *login = fake_accept(-1), *idle = fake_client(pool);
	struct endpoint *busy = fake_client(pool), *server = fake_server(pool);
	struct endpoint *waiting = fake_client(pool), *welcoming = fake_accept(-1);

	(void)state;
	fake_user("bob", "");
	fake_set("default_pool_size", "1");
	send_letters(busy, "Q");
	send_letters(waiting, "Q");
	send_startup(welcoming, PROTOCOL_3_0, "user", "bob", "database", "db", NULL);
	assert_state(welcoming, CLIENT_WELCOMING);
	control_close_all(&fake_registry, REASON_PROCESS_ENDS);
	fake_turn();
	assert_closed_silently(login);
	assert_closed_silently(idle);
	assert_closed_silently(busy);
	assert_closed_silently(waiting);
	assert_closed_silently(welcoming);
	assert_closed(server);
	assert_int_equal(fake_registry.process->limits.clients, 0);
}

static void test_kill_client_closes_one_client(void **state)
{
	struct endpoint *clients[3];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = fake_client(pool);
	assert_true(control_kill_client(&fake_registry, endpoint_link(clients[1])->id));
	fake_turn();
	assert_closed_with_error(clients[1], "57P01", "admin forced disconnect");
	assert_state(clients[0], CLIENT_IDLE);
	assert_state(clients[2], CLIENT_IDLE);
	assert_false(control_kill_client(&fake_registry, 4711));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(client_receives_the_reason),
		TEST(some_reasons_are_not_sent_to_the_client),
		TEST(log_lines_follow_their_settings),
		TEST(closed_link_is_freed_at_the_end_of_the_turn),
		TEST(unread_bytes_are_received_before_a_client_is_closed),
		TEST(broken_client_is_closed_without_an_error),
		TEST(no_error_is_sent_to_a_blocked_client),
		TEST(no_error_is_sent_within_a_message),
		TEST(error_is_sent_after_a_complete_message),
		TEST(waiting_client_receives_the_reason),
		TEST(console_is_notified_of_a_closed_client),
		TEST(aborted_login_is_not_logged),
		TEST(repeated_bad_packets_are_logged_once_a_second),
		TEST(terminate_is_sent_to_a_server_that_has_logged_in),
		TEST(server_in_its_login_is_closed_without_terminate),
		TEST(nothing_is_sent_to_a_crashed_server),
		TEST(no_terminate_is_sent_within_a_message),
		TEST(terminate_is_sent_after_a_dropped_incomplete_message),
		TEST(partly_sent_unsolicited_message_is_completed_or_closes_the_client),
		TEST(client_receives_the_reason_of_its_server),
		TEST(closed_server_makes_room_for_a_launch),
		TEST(clean_server_is_returned_to_the_pool),
		TEST(server_that_is_not_ready_is_drained),
		TEST(end_of_the_process_is_not_sent_to_clients),
		TEST(kill_client_closes_one_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
