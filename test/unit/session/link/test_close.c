/* SPDX-License-Identifier: ISC */
/* How links end: what is told to whom, what is never put inside half a message, what is let go. */
#include "session/link/close.h"
#include "session/work/control.h"
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

static void close_client(struct actor *client, enum reason reason)
{
	client_close_for(actor_client(client), reason);
	fake_turn();
}

static void close_server(struct actor *server, enum reason reason)
{
	server_close_for(actor_server(server), reason);
	fake_turn();
}

/* The beginning of a message of that size, and then so much of it. */
static void say_beginning(struct actor *actor, uint8_t type, size_t total, size_t part)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_byte(&buffer, type);
	writer_int32(&buffer, (uint32_t)total - 1);
	memset(buffer_extend(&buffer, part - 5), 'x', part - 5);
	say_buffer(actor, &buffer);
}

/* --- clients ------------------------------------------------------------------------------ */

static void test_a_client_is_told_why(void **state)
{
	struct actor *client = fake_client(pool);

	(void)state;
	close_client(client, REASON_CLIENT_IDLE_TIMEOUT);
	assert_told(client, "57P05", "client_idle_timeout");
	assert_true(fake_logged("pooler error: client_idle_timeout"));
	assert_true(fake_logged("closing because: client_idle_timeout (age=0s)"));
}

static void test_some_reasons_are_told_to_nobody(void **state)
{
	static const enum reason silent[] = {REASON_CLIENT_CLOSE_REQUEST,
		REASON_CLIENT_UNEXPECTED_EOF, REASON_UNEXPECTED_EOF, REASON_BAD_PACKET,
		REASON_CANCEL_SENT, REASON_PROCESS_ENDS};

	(void)state;
	for (size_t i = 0; i < COUNT(silent); i++) {
		struct actor *client = fake_client(pool);

		close_client(client, silent[i]);
		assert_dropped(client);
	}
	assert_false(fake_logged("pooler error"));
}

static void test_lines_can_be_left_out(void **state)
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

static void test_a_closed_link_may_be_looked_at_until_the_end_of_the_turn(void **state)
{
	struct actor *actor = fake_client(pool), *other = fake_server(pool);
	struct client_link *client = actor_client(actor);
	struct server_link *server = actor_server(other);

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
	/* Closing it again does nothing. */
	client_close_for(client, REASON_QUERY_TIMEOUT);
	server_close_for(server, REASON_QUERY_TIMEOUT);
	fake_check();
	fake_turn();
	assert_int_equal(fake_registry.clients.used, 0);
	assert_int_equal(fake_registry.servers.used, 0);
	assert_told(actor, "57P05", "client_idle_timeout");
}

static void test_what_a_client_has_sent_is_taken_so_that_it_hears_the_reason(void **state)
{
	struct actor *client = fake_client(pool);

	(void)state;
	scripted_feed(client->script, "Q\0\0\0\5\0", 6);
	close_client(client, REASON_CLIENT_IDLE_TIMEOUT);
	assert_int_equal(scripted_unread(client->script), 0);
	assert_told(client, "57P05", "client_idle_timeout");
}

static void test_a_client_that_is_broken_is_closed_all_the_same(void **state)
{
	struct actor *client = fake_client(pool);

	(void)state;
	scripted_break(client->script);
	close_client(client, REASON_CLIENT_IDLE_TIMEOUT);
	assert_dropped(client);
}

static void test_nothing_is_written_behind_what_a_client_does_not_take(void **state)
{
	struct actor *client = fake_client(pool), *server = fake_server(pool);

	(void)state;
	say(client, "Q");
	scripted_allow(client->script, 7);
	say(server, "TD");
	close_client(client, REASON_QUERY_TIMEOUT);
	assert_int_equal(heard_bytes(client), 7);
	assert_gone(client);
	assert_state(server, SERVER_DRAINING);
}

/* The rest of the row would be taken out of the error's own bytes. */
static void test_an_error_never_stands_inside_half_a_message(void **state)
{
	struct actor *client, *server;

	(void)state;
	for (int way = 0; way < 4; way++) {
		client = fake_client(pool);
		server = fake_server(pool);
		say(client, "Q");
		say_beginning(server, PQ_DATA_ROW, 300, 100);
		assert_int_equal(heard_bytes(client), 100);
		switch (way) {
		case 0:
			leave(server);
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
		assert_int_equal(heard_bytes(client), 100);
		assert_gone(client);
		if (way == 2)
			leave(server); /* it was being drained */
		assert_gone(server);
	}
}

static void test_an_error_stands_behind_a_message_that_is_whole(void **state)
{
	struct actor *client = fake_client(pool), *server = fake_server(pool);

	(void)state;
	say(client, "Q");
	say_beginning(server, PQ_DATA_ROW, 300, 100);
	{
		uint8_t rest[200] = {0};

		say_bytes(server, rest, sizeof(rest));
	}
	leave(server);
	assert_heard(client, "DE");
	assert_string_equal(client->text, "server conn crashed?");
}

static void test_a_client_that_is_waiting_is_told(void **state)
{
	struct actor *client = fake_client(pool);

	(void)state;
	say(client, "Q");
	assert_state(client, CLIENT_WAITING);
	close_client(client, REASON_QUERY_WAIT_TIMEOUT);
	assert_told(client, "57014", "query_wait_timeout");
	assert_int_equal(pool->client_count[CLIENT_WAITING], 0);
	assert_int_equal(fake_registry.helds.used, 0);
}

static void test_the_console_lets_go_of_its_client(void **state)
{
	struct actor *console = fake_accept(-1);

	(void)state;
	fake_user("boss", "");
	fake_set("admin_users", "boss");
	say_startup(console, PROTOCOL_3_0, "user", "boss", "database", "pgbouncer", NULL);
	assert_state(console, CLIENT_CONSOLE);
	close_client(console, REASON_CLOSE_REQ);
	assert_int_equal(fake_console.closed, 1);
}

static void test_aborted_logins_leave_no_line(void **state)
{
	struct actor *client = fake_accept(-1);

	(void)state;
	leave(client);
	assert_false(fake_logged("closing because"));
	client = fake_client(pool);
	leave(client);
	assert_true(fake_logged("closing because: client unexpected eof"));
}

static void test_strangers_get_a_line_a_second(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		say_bytes(fake_accept(-1), "GET / HTTP/1.1\r\n", 16);
		fake_advance(USEC_PER_SEC / 10);
	}
	assert_true(fake_logged(": (nodb)/(nouser)@192.0.2.1:"));
	assert_in_range(fake_logged_times("closing because: bad packet"), 4, 6);
	assert_in_range(fake_logged_times("10 more like this (192.0.2.1): "), 2, 5);
}

/* --- servers ------------------------------------------------------------------------------ */

static void test_a_server_that_has_logged_in_is_sent_a_terminate(void **state)
{
	struct actor *idle = fake_server(pool), *stale = fake_server(pool), *busy;
	struct actor *client = fake_client(pool);

	(void)state;
	server_enter(actor_server(stale), SERVER_STALE);
	close_server(stale, REASON_SERVER_IDLE_TIMEOUT);
	assert_heard(stale, "X");
	close_server(idle, REASON_SERVER_IDLE_TIMEOUT);
	assert_heard(idle, "X");
	busy = fake_server(pool);
	say(client, "Q");
	close_server(busy, REASON_QUERY_TIMEOUT);
	assert_heard(busy, "QX");
	assert_told(client, "57014", "query timeout");
}

static void test_a_server_that_logs_in_is_just_closed(void **state)
{
	struct actor *client = fake_client(pool), *server;

	(void)state;
	say(client, "Q");
	server = fake_launched();
	close_server(server, REASON_PAUSE_MODE);
	assert_dropped(server);
	server = fake_launched();
	fake_connected(server, 0);
	close_server(server, REASON_PAUSE_MODE);
	assert_heard(server, "^");
	assert_gone(server);
	assert_false(pool->failing);
}

static void test_a_server_that_crashed_is_sent_nothing(void **state)
{
	struct actor *server = fake_server(pool);

	(void)state;
	leave(server);
	assert_dropped(server);
}

/* It would be taken for the rest of the message, which the server might then run. */
static void test_a_terminate_never_stands_inside_half_a_message(void **state)
{
	struct actor *client, *server;

	(void)state;
	for (int way = 0; way < 4; way++) {
		client = fake_client(pool);
		server = fake_server(pool);
		say_beginning(client, PQ_QUERY, 6000, 5998);
		assert_int_equal(heard_bytes(server), 5998);
		switch (way) {
		case 0:
			leave(client);
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
		assert_int_equal(heard_bytes(server), 5998);
		assert_gone(client);
		assert_gone(server);
	}
}

static void test_a_half_message_that_was_dropped_is_none(void **state)
{
	struct actor *client = fake_client(pool), *server = fake_server(pool);

	(void)state;
	fake_set("pool_mode", "session");
	say(client, "Q");
	say(server, "CZ");
	/* The tail of a COPY that nobody waits for: nothing of it reached the server. */
	say_beginning(client, PQ_COPY_FAIL, 6000, 5998);
	assert_heard(server, "Q");
	close_server(server, REASON_QUERY_TIMEOUT);
	assert_heard(server, "X");
	assert_heard(client, "CZE");
}

/* The client has heard a part of it: it hears the rest, or nothing any more. */
static void test_half_an_unasked_message_is_told_whole_or_ends_its_client(void **state)
{
	(void)state;
	for (int dies = 0; dies < 2; dies++) {
		struct actor *client = fake_client(pool), *server = fake_server(pool);
		struct buffer buffer;

		say(client, "Q");
		buffer_init(&buffer);
		letters_write(&buffer, SERVER_SPEAKS, "CZD");
		say_bytes(server, buffer.data, buffer.length - 3);
		assert_state(client, CLIENT_PAIRED);
		if (dies) {
			scripted_end(server->script);
			scripted_run(server->script);
			assert_gone(client);
			assert_int_equal(heard_bytes(client), buffer.length - 3);
		} else {
			say_bytes(server, buffer.data + buffer.length - 3, 3);
			assert_heard(client, "CZD");
			assert_state(client, CLIENT_IDLE);
		}
		assert_gone(server);
		buffer_free(&buffer);
	}
}

static void test_the_clients_of_a_server_hear_its_reason(void **state)
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
		struct actor *client = fake_client(pool), *server = fake_server(pool);

		say(client, "Q");
		close_server(server, cases[i].reason);
		assert_told(client, cases[i].sqlstate, cases[i].text);
		assert_gone(server);
	}
}

static void test_a_closed_server_makes_room_for_the_next(void **state)
{
	struct actor *clients[3], *servers[2];

	(void)state;
	for (size_t i = 0; i < COUNT(servers); i++)
		servers[i] = fake_server(pool);
	for (size_t i = 0; i < COUNT(clients); i++) {
		clients[i] = fake_client(pool);
		say(clients[i], "Q");
	}
	assert_null(fake_launched());
	leave(servers[0]);
	assert_non_null(fake_launched());
	assert_state(clients[2], CLIENT_WAITING);
}

/* --- a client leaves its server ----------------------------------------------------------- */

static void test_a_clean_server_goes_on(void **state)
{
	struct actor *client = fake_client(pool), *next = fake_client(pool), *server;

	(void)state;
	fake_set("pool_mode", "session");
	fake_set("default_pool_size", "1");
	server = fake_server(pool);
	say(client, "Q");
	say(server, "CZ");
	say(next, "Q");
	close_client(client, REASON_ADMIN_FORCED_DISCONNECT);
	assert_state(server, SERVER_PAIRED);
	assert_ptr_equal(actor_link(server)->peer, actor_link(next));
}

static void test_a_server_that_is_not_ready_is_drained(void **state)
{
	static const struct {
		const char *before, *heard, *after;
	} cases[] = {
		{"", "Q", "EZ"},
		{"TD", "Q", "DCZ"},
		{"C>", "QQ", "CZ"},
		{"E!", "QQ", "CZ"},
		{"G", "Qf", "EZ"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct actor *client = fake_client(pool), *server = fake_server(pool);

		say(client, "Q");
		say(server, cases[i].before);
		close_client(client, REASON_ADMIN_FORCED_DISCONNECT);
		assert_heard(server, cases[i].heard);
		assert_state(server, SERVER_DRAINING);
		say(server, cases[i].after);
		assert_state(server, SERVER_IDLE);
		close_server(server, REASON_SERVER_IDLE_TIMEOUT);
	}
}

/* --- the whole ---------------------------------------------------------------------------- */

static void test_the_end_of_the_process_is_told_to_nobody(void **state)
{
	struct actor *login = fake_accept(-1), *idle = fake_client(pool);
	struct actor *busy = fake_client(pool), *server = fake_server(pool);
	struct actor *waiting = fake_client(pool), *welcoming = fake_accept(-1);

	(void)state;
	fake_user("bob", "");
	fake_set("default_pool_size", "1");
	say(busy, "Q");
	say(waiting, "Q");
	say_startup(welcoming, PROTOCOL_3_0, "user", "bob", "database", "db", NULL);
	assert_state(welcoming, CLIENT_WELCOMING);
	control_drop_all(&fake_registry, REASON_PROCESS_ENDS);
	fake_turn();
	assert_dropped(login);
	assert_dropped(idle);
	assert_dropped(busy);
	assert_dropped(waiting);
	assert_dropped(welcoming);
	assert_gone(server);
	assert_int_equal(fake_registry.process->limits.clients, 0);
}

static void test_one_client_can_be_cut(void **state)
{
	struct actor *clients[3];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = fake_client(pool);
	assert_true(control_kill_client(&fake_registry, actor_link(clients[1])->id));
	fake_turn();
	assert_told(clients[1], "57P01", "admin forced disconnect");
	assert_state(clients[0], CLIENT_IDLE);
	assert_state(clients[2], CLIENT_IDLE);
	assert_false(control_kill_client(&fake_registry, 4711));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(a_client_is_told_why),
		TEST(some_reasons_are_told_to_nobody),
		TEST(lines_can_be_left_out),
		TEST(a_closed_link_may_be_looked_at_until_the_end_of_the_turn),
		TEST(what_a_client_has_sent_is_taken_so_that_it_hears_the_reason),
		TEST(a_client_that_is_broken_is_closed_all_the_same),
		TEST(nothing_is_written_behind_what_a_client_does_not_take),
		TEST(an_error_never_stands_inside_half_a_message),
		TEST(an_error_stands_behind_a_message_that_is_whole),
		TEST(a_client_that_is_waiting_is_told),
		TEST(the_console_lets_go_of_its_client),
		TEST(aborted_logins_leave_no_line),
		TEST(strangers_get_a_line_a_second),
		TEST(a_server_that_has_logged_in_is_sent_a_terminate),
		TEST(a_server_that_logs_in_is_just_closed),
		TEST(a_server_that_crashed_is_sent_nothing),
		TEST(a_terminate_never_stands_inside_half_a_message),
		TEST(a_half_message_that_was_dropped_is_none),
		TEST(half_an_unasked_message_is_told_whole_or_ends_its_client),
		TEST(the_clients_of_a_server_hear_its_reason),
		TEST(a_closed_server_makes_room_for_the_next),
		TEST(a_clean_server_goes_on),
		TEST(a_server_that_is_not_ready_is_drained),
		TEST(the_end_of_the_process_is_told_to_nobody),
		TEST(one_client_can_be_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
