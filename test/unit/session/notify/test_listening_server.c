/* SPDX-License-Identifier: ISC */
/*
 * The listening server of a pool: when it is launched, what it is told, what clients get and when, and
 * what its loss means for them.
 */
#include "session/notify/channels.h"
#include "session/notify/listening_server.h"
#include "session/notify/listening_takeover.h"
#include "support/fakes/fake_listening.h"

static struct pool *pool;
static struct endpoint *client, *other, *listening;

static int start_with(const char *settings)
{
	pool = fake_start_pool(settings);
	listening_know_encoding(pool);
	client = fake_client(pool);
	other = fake_client(pool);
	return 0;
}

static int start(void **state)
{
	(void)state;
	return start_with("default_pool_size = 1\n");
}

/* The client listens on channel c, by a listening server that was launched for it. */
static void listen_on_c(void)
{
	send_query(client, "LISTEN c");
	listening = listening_log_in(fake_launched());
	assert_received(listening, "^Q");
	assert_string_equal(listening_query(listening), "LISTEN c");
	listening_answer(listening, "LISTEN");
	assert_received(client, "CZ");
}

static void also_listen_on_c(struct endpoint *more)
{
	send_query(more, "LISTEN c");
	assert_received(more, "CZ");
}

/* --- LISTEN and UNLISTEN ------------------------------------------------------------------ */

static void test_a_listen_is_answered_when_the_server_has_confirmed_it(void **state)
{
	(void)state;
	send_query(client, "LISTEN c");
	listening = listening_log_in(fake_launched());
	assert_state(listening, SERVER_LISTENING);
	assert_received(listening, "^Q");
	assert_received(client, "");
	listening_answer(listening, "LISTEN");
	assert_received(client, "CZ");
	assert_null(fake_launched());
	assert_int_equal(pool_servers(pool), 0);
}

static void test_a_channel_that_is_there_needs_no_query(void **state)
{
	(void)state;
	listen_on_c();
	also_listen_on_c(other);
	also_listen_on_c(other);
	assert_received(listening, "");
	assert_int_equal(pool->hub->subscriptions, 2);
}

static void test_the_last_client_of_a_channel_ends_it(void **state)
{
	(void)state;
	listen_on_c();
	also_listen_on_c(other);
	send_query(client, "UNLISTEN c");
	assert_received(client, "CZ");
	assert_received(listening, "");
	disconnect(other);
	assert_received(listening, "Q");
	assert_string_equal(listening_query(listening), "UNLISTEN c");
	assert_false(channels_are_in_use(pool));
	listening_answer(listening, "UNLISTEN");
	assert_state(listening, SERVER_LISTENING);
}

static void test_a_channel_that_is_wanted_again_while_it_ends_is_listened_on_again(void **state)
{
	(void)state;
	listen_on_c();
	send_query(client, "UNLISTEN c");
	assert_received(client, "CZ");
	assert_received(listening, "Q");
	send_query(other, "LISTEN c");
	assert_received(other, "");
	listening_answer(listening, "UNLISTEN");
	assert_received(listening, "Q");
	assert_string_equal(listening_query(listening), "LISTEN c");
	listening_answer(listening, "LISTEN");
	assert_received(other, "CZ");
}

/* setting: server_idle_timeout */
static void test_an_unused_listening_server_goes_after_server_idle_timeout(void **state)
{
	(void)state;
	start_with("server_idle_timeout = 20\n");
	listen_on_c();
	listening_server_upkeep(pool, loop_now(&fake_loop) + 60 * USEC_PER_SEC);
	assert_state(listening, SERVER_LISTENING);
	send_query(client, "UNLISTEN *");
	assert_received(client, "CZ");
	listening_answer(listening, "UNLISTEN");
	listening_server_upkeep(pool, loop_now(&fake_loop) + 10 * USEC_PER_SEC);
	assert_state(listening, SERVER_LISTENING);
	listening_server_upkeep(pool, loop_now(&fake_loop) + 30 * USEC_PER_SEC);
	assert_closed(listening);
}

/* --- errors ------------------------------------------------------------------------------- */

static void test_an_error_of_the_server_ends_the_listen(void **state)
{
	(void)state;
	listen_on_c();
	send_query(other, "LISTEN d");
	assert_received(listening, "Q");
	send_error(listening, "54000", "too many");
	send_letters(listening, "Z");
	assert_received(other, "EZ");
	assert_string_equal(other->sqlstate, "54000");
	assert_null(channels_find(pool->hub, "d"));
	listening_notify(listening, "c", "x");
	assert_received(client, "A");
}

static void test_a_refused_login_ends_every_listen_that_waits(void **state)
{
	struct endpoint *launched;

	(void)state;
	send_query(client, "LISTEN c");
	send_query(other, "LISTEN d");
	launched = fake_launched();
	fake_connected(launched, 0);
	send_error(launched, "53300", "too many connections");
	fake_turn();
	assert_received(client, "EZ");
	assert_string_equal(client->sqlstate, "53300");
	assert_received(other, "EZ");
	assert_int_equal(pool->hub->subscriptions, 0);
}

static void test_a_listen_ends_at_query_wait_timeout(void **state)
{
	(void)state;
	start_with("query_wait_timeout = 5\nquery_wait_timeout_action = error\n");
	send_query(client, "LISTEN c");
	fake_advance(6 * USEC_PER_SEC);
	assert_received(client, "EZ");
	assert_string_equal(client->text, "query_wait_timeout");
	assert_int_equal(pool->hub ? pool->hub->subscriptions : 0, 0);
}

static void test_without_a_place_a_listen_fails_at_once(void **state)
{
	(void)state;
	start_with("max_db_connections = 1\n");
	send_query(client, "LISTEN c");
	assert_null(fake_launched());
	assert_received(client, "EZ");
	assert_string_equal(client->sqlstate, "53300");
}

/* Else it would keep its place from servers that run queries, for as long as clients listen. */
static void test_a_limit_that_is_lowered_ends_the_listening_server(void **state)
{
	usec_t later;

	(void)state;
	start_with("max_db_connections = 2\n");
	later = loop_now(&fake_loop) + USEC_PER_SEC;
	listen_on_c();
	listening_server_upkeep(pool, later);
	assert_state(listening, SERVER_LISTENING);
	fake_set("max_db_connections", "1");
	listening_server_upkeep(pool, later);
	assert_closed(listening);
	fake_turn();
	assert_received(client, "N");
	assert_null(fake_launched());
	/* The next attempt is the next upkeep. */
	assert_false(pool->has_work);
	fake_set("max_db_connections", "2");
	listening_server_upkeep(pool, later);
	fake_turn();
	listening = listening_log_in(fake_launched());
	assert_received(listening, "^Q");
	listening_answer(listening, "LISTEN");
	listening_notify(listening, "c", "x");
	assert_received(client, "A");
}

static void test_a_listen_that_waits_goes_another_way_when_listen_changes(void **state)
{
	struct endpoint *server = fake_server(pool);

	(void)state;
	send_query(client, "LISTEN c");
	fake_set("listen", "pin");
	send_query(other, "LISTEN d");
	assert_received(server, "Q");
	listening = listening_log_in(fake_launched());
	read_letters(listening);
	listening_answer(listening, "LISTEN");
	/* It was judged again, and waits for the server of the other. */
	assert_state(client, CLIENT_WAITING);
	assert_int_equal(pool->hub->subscriptions, 0);
	listening_notify(listening, "c", "x");
	assert_received(client, "");
}

/* --- notifications ------------------------------------------------------------------------ */

static void test_a_notification_reaches_each_client_once_in_order(void **state)
{
	struct buffer both = {0};

	(void)state;
	listen_on_c();
	also_listen_on_c(other);
	listening_write_notification(&both, "c", "1");
	listening_write_notification(&both, "c", "2");
	send_buffer(listening, &both);
	assert_received(client, "AA");
	assert_string_equal(listening_payload(client), "2");
	assert_received(other, "AA");
	listening_notify(listening, "unknown", "x");
	assert_received(client, "");
	assert_int_equal(pool->notifications, 4);
}

static void test_a_client_gets_nothing_inside_an_answer(void **state)
{
	struct endpoint *server = fake_server(pool);

	(void)state;
	listen_on_c();
	send_query(client, "SELECT 1");
	assert_received(server, "Q");
	send_letters(server, "TD");
	listening_notify(listening, "c", "x");
	assert_received(client, "TD");
	send_letters(server, "C>");
	assert_received(client, "C>");
	send_query(client, "COMMIT");
	read_letters(server);
	listening_answer(server, "COMMIT");
	assert_received(client, "CZA");
}

static void test_a_client_that_waits_for_a_server_gets_them_before_its_answer(void **state)
{
	struct endpoint *server = fake_server(pool);

	(void)state;
	listen_on_c();
	send_query(other, "SELECT 1");
	send_query(client, "SELECT 1");
	assert_state(client, CLIENT_WAITING);
	listening_notify(listening, "c", "x");
	assert_received(client, "A");
	send_letters(server, "CZ");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
}

/* setting: max_notify_backlog */
static void test_a_client_that_does_not_read_is_closed_at_max_notify_backlog(void **state)
{
	(void)state;
	start_with("max_notify_backlog = 200\n");
	listen_on_c();
	also_listen_on_c(other);
	allow_output(client, 3);
	for (unsigned i = 0; i < 3; i++)
		listening_notify(listening, "c", "payload");
	assert_false(is_closed(client));
	for (unsigned i = 0; i < 10; i++)
		listening_notify(listening, "c", "payload");
	assert_closed(client);
	assert_received(other, "AAAAAAAAAAAAA");
	assert_int_equal(pool->notify_overflows, 1);
}

static void test_a_client_that_reads_again_gets_all_in_order(void **state)
{
	(void)state;
	listen_on_c();
	allow_output(client, 3);
	listening_notify(listening, "c", "1");
	listening_notify(listening, "c", "2");
	listening_notify(listening, "c", "3");
	allow_output(client, SCRIPTED_ANY);
	assert_received(client, "AAA");
	assert_string_equal(listening_payload(client), "3");
}

/* --- loss --------------------------------------------------------------------------------- */

static void test_loss_is_told_once_and_repaired(void **state)
{
	struct endpoint *next;

	(void)state;
	listen_on_c();
	send_query(client, "LISTEN d");
	assert_received(listening, "Q");
	listening_answer(listening, "LISTEN");
	assert_received(client, "CZ");
	disconnect(listening);
	assert_received(client, "N");
	assert_received(other, "");
	assert_int_equal(pool->listening_losses, 1);
	next = listening_log_in(fake_launched());
	assert_received(next, "^QQ");
	listening_answer(next, "LISTEN");
	listening_answer(next, "LISTEN");
	listening_notify(next, "d", "x");
	assert_received(client, "A");
}

static void test_a_listen_in_flight_survives_the_loss(void **state)
{
	struct endpoint *next;

	(void)state;
	send_query(client, "LISTEN c");
	listening = listening_log_in(fake_launched());
	disconnect(listening);
	assert_received(client, "");
	next = listening_log_in(fake_launched());
	assert_received(next, "^Q");
	listening_answer(next, "LISTEN");
	assert_received(client, "CZ");
}

static void test_what_is_not_an_answer_closes_the_server(void **state)
{
	static const char *const unexpected[] = {"D", "T", "Z", ">", "G", "1"};

	for (size_t i = 0; i < COUNT(unexpected); i++) {
		if (i > 0)
			start(state);
		listen_on_c();
		send_letters(listening, unexpected[i]);
		assert_closed(listening);
		assert_received(client, "N");
		if (i + 1 < COUNT(unexpected))
			fake_end(state);
	}
}

/* --- takeover ----------------------------------------------------------------------------- */

static void test_channels_and_messages_are_written_for_another_process(void **state)
{
	struct buffer out = {0};

	(void)state;
	listen_on_c();
	assert_true(listening_takeover_is_settled(endpoint_server(listening)));
	send_query(other, "LISTEN d");
	assert_false(listening_takeover_is_settled(endpoint_server(listening)));
	listening_answer(listening, "LISTEN");
	listening_takeover_write_channels(endpoint_server(listening), &out);
	assert_int_equal(out.length, 4);
	assert_memory_equal(out.data, "c\0d", 4);
	buffer_clear(&out);
	allow_output(client, 0);
	listening_notify(listening, "c", "1");
	listening_notify(listening, "c", "2");
	listening_takeover_write_messages(endpoint_client(client)->listener, &out);
	/* The stream has the first one already, and is blocked. */
	assert_int_equal(out.length, 1 + 4 + 4 + 2 + 2);
	buffer_free(&out);
}

static void test_a_client_that_was_taken_over_gets_what_it_has_missed(void **state)
{
	struct buffer messages = {0};

	(void)state;
	listen_on_c();
	listening_write_notification(&messages, "c", "1");
	listening_write_notification(&messages, "c", "2");
	assert_true(listening_takeover_take_client(
		endpoint_client(other), "c", 2, messages.data, messages.length));
	listening_takeover_end(pool);
	fake_turn();
	assert_received(other, "AA");
	listening_notify(listening, "c", "3");
	assert_received(other, "A");
	assert_received(client, "A");
	/* Malformed: no NUL, an empty name, half a message, another message. */
	assert_false(listening_takeover_take_client(endpoint_client(other), "c", 1, NULL, 0));
	assert_false(listening_takeover_take_client(endpoint_client(other), "c\0", 3, NULL, 0));
	assert_false(listening_takeover_take_client(
		endpoint_client(other), "", 0, messages.data, messages.length - 1));
	assert_false(listening_takeover_take_client(
		endpoint_client(other), "", 0, (const uint8_t *)"Z\0\0\0\5I", 6));
	buffer_free(&messages);
}

static void test_clients_without_their_listening_server_are_warned_after_a_takeover(
	void **state)
{
	(void)state;
	assert_true(listening_takeover_take_client(endpoint_client(client), "c", 2, NULL, 0));
	listening_takeover_end(pool);
	fake_turn();
	assert_received(client, "N");
	listening = listening_log_in(fake_launched());
	assert_received(listening, "^Q");
	listening_answer(listening, "LISTEN");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define TEST_ALONE(name) cmocka_unit_test_setup_teardown(test_##name, NULL, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_listen_is_answered_when_the_server_has_confirmed_it),
		TEST(a_channel_that_is_there_needs_no_query),
		TEST(the_last_client_of_a_channel_ends_it),
		TEST(a_channel_that_is_wanted_again_while_it_ends_is_listened_on_again),
		TEST_ALONE(an_unused_listening_server_goes_after_server_idle_timeout),
		TEST(an_error_of_the_server_ends_the_listen),
		TEST(a_refused_login_ends_every_listen_that_waits),
		TEST_ALONE(a_listen_ends_at_query_wait_timeout),
		TEST_ALONE(without_a_place_a_listen_fails_at_once),
		TEST_ALONE(a_limit_that_is_lowered_ends_the_listening_server),
		TEST(a_listen_that_waits_goes_another_way_when_listen_changes),
		TEST(a_notification_reaches_each_client_once_in_order),
		TEST(a_client_gets_nothing_inside_an_answer),
		TEST(a_client_that_waits_for_a_server_gets_them_before_its_answer),
		TEST_ALONE(a_client_that_does_not_read_is_closed_at_max_notify_backlog),
		TEST(a_client_that_reads_again_gets_all_in_order),
		TEST(loss_is_told_once_and_repaired),
		TEST(a_listen_in_flight_survives_the_loss),
		TEST(what_is_not_an_answer_closes_the_server),
		TEST(channels_and_messages_are_written_for_another_process),
		TEST(a_client_that_was_taken_over_gets_what_it_has_missed),
		TEST(clients_without_their_listening_server_are_warned_after_a_takeover),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
