/* SPDX-License-Identifier: ISC */
/*
 * Handoffs: what a client's server and the listening server of the pool are told, which of them brings
 * what to the client, and that neither client nor server waits for ever when the listening server does
 * not come.
 */
#include <errno.h>

#include "session/notify/channels.h"
#include "session/notify/handoff.h"
#include "support/fakes/fake_listening.h"

static struct pool *pool;
static struct endpoint *client, *other, *server, *listening;
static char marker[64], token[32];

static int start_with(const char *settings)
{
	pool = fake_start_pool(settings);
	listening_know_encoding(pool);
	client = fake_client(pool);
	other = fake_client(pool);
	server = fake_server(pool);
	return 0;
}

static int start(void **state)
{
	(void)state;
	return start_with("default_pool_size = 1\nmax_pinned = 1\n");
}

static void write_row(
	struct buffer *out, const char *letter, const char *name, const char *value)
{
	const char *const values[] = {letter, name, value};
	const size_t mark = writer_begin(out, PQ_DATA_ROW);

	writer_int16(out, COUNT(values));
	for (size_t i = 0; i < COUNT(values); i++) {
		writer_int32(out, (uint32_t)strlen(values[i]));
		writer_bytes(out, values[i], strlen(values[i]));
	}
	writer_end(out, mark);
}

/* The answer to the question of the pooler: the server listens on c. */
static void write_answer(struct buffer *out)
{
	write_row(out, "N", "c", "");
	writer_command_complete(out, "SELECT 1");
	writer_ready(out, READY_IDLE);
}

static void answer_question(void)
{
	struct buffer out = {0};

	write_answer(&out);
	send_buffer(server, &out);
}

/* The client LISTENs on its server, and the handoff waits for the listening server. */
static void listen_on_own_server(void)
{
	send_query(client, "SELECT 1; LISTEN c");
	read_letters(server);
	listening_answer(server, "LISTEN");
	read_letters(client);
	assert_received(server, "Q");
	answer_question();
	assert_state(server, SERVER_ASKING);
	assert_state(client, CLIENT_IDLE);
	assert_true(handoff_has(endpoint_server(server)));
}

/* The listening server has logged in and listens; the client's server got its commands. */
static void let_both_listen(void)
{
	listening = listening_log_in(fake_launched());
	assert_received(listening, "^QQ");
	listening_answer(listening, "LISTEN");
	assert_received(server, "");
	listening_answer(listening, "LISTEN");
	assert_received(server, "QQ");
	assert_string_equal(listening_query(server), "UNLISTEN *");
	snprintf(marker, sizeof(marker), "%s", pool->hub->marker->name);
	snprintf(token, sizeof(token), "%d", 1);
}

static void end_commands(void)
{
	listening_answer(server, "NOTIFY");
	listening_answer(server, "UNLISTEN");
}

/* --- which server brings what ------------------------------------------------------------- */

static void test_the_servers_own_notifications_count_until_its_token(void **state)
{
	(void)state;
	listen_on_own_server();
	listening_notify(server, "c", "1");
	assert_received(client, "A");
	let_both_listen();
	listening_notify(listening, "c", "2");
	assert_received(client, "");
	listening_notify(server, "c", "2");
	assert_received(client, "A");
	assert_string_equal(listening_payload(client), "2");
	listening_notify(server, marker, token);
	listening_notify(server, "c", "3");
	assert_received(client, "");
	end_commands();
	assert_state(server, SERVER_IDLE);
	listening_notify(listening, marker, token);
	listening_notify(listening, "c", "3");
	assert_received(client, "A");
	assert_string_equal(listening_payload(client), "3");
	assert_true(TAILQ_EMPTY(&pool->hub->handoffs));
}

static void test_the_listening_server_may_get_the_token_first(void **state)
{
	(void)state;
	listen_on_own_server();
	let_both_listen();
	listening_notify(listening, marker, token);
	listening_notify(listening, "c", "2");
	assert_received(client, "");
	listening_notify(server, "c", "1");
	assert_received(client, "A");
	assert_string_equal(listening_payload(client), "1");
	listening_notify(server, marker, token);
	assert_received(client, "A");
	assert_string_equal(listening_payload(client), "2");
	end_commands();
	assert_true(TAILQ_EMPTY(&pool->hub->handoffs));
}

static void test_a_client_goes_on_while_its_server_is_handed_over(void **state)
{
	struct endpoint *second;

	(void)state;
	start_with("default_pool_size = 2\n");
	second = fake_server(pool);
	/* The question goes to the server that was used last. */
	send_query(client, "SELECT 1; LISTEN c");
	server = endpoint_link(server)->state == SERVER_PAIRED ? server : second;
	second = fake_server(pool);
	read_letters(server);
	listening_answer(server, "LISTEN");
	read_letters(client);
	read_letters(server);
	answer_question();
	assert_state(server, SERVER_ASKING);
	send_query(client, "SELECT 2");
	assert_state(client, CLIENT_PAIRED);
	assert_true(endpoint_link(client)->peer != endpoint_link(server));
}

/* The server that is handed over, and the next one of its client, both hear it. */
static void test_two_servers_of_a_client_bring_each_notification_once(void **state)
{
	struct endpoint *first;

	(void)state;
	start_with("default_pool_size = 2\n");
	listen_on_own_server();
	first = server;
	server = fake_server(pool);
	send_query(client, "SELECT 2; LISTEN c");
	read_letters(server);
	listening_answer(server, "LISTEN");
	read_letters(client);
	listening_notify(first, "c", "1");
	assert_received(client, "A");
	listening_notify(server, "c", "1");
	assert_received(client, "");
}

static void test_a_listen_during_the_handoff_is_answered_at_once(void **state)
{
	(void)state;
	listen_on_own_server();
	send_query(client, "LISTEN c");
	assert_received(client, "CZ");
	let_both_listen();
	listening_notify(server, "c", "1");
	assert_received(client, "A");
}

/* What came behind the answer to the question waits for the client, the next is in its answer. */
static void test_a_pinned_server_overtakes_nothing_that_waits_for_its_client(void **state)
{
	struct buffer out = {0};

	(void)state;
	start_with("max_db_connections = 1\ndefault_pool_size = 1\nmax_pinned = 1\n");
	send_query(client, "SELECT 1; LISTEN c");
	read_letters(server);
	listening_answer(server, "LISTEN");
	read_letters(client);
	read_letters(server);
	send_query(client, "NOTIFY c, '2'");
	write_answer(&out);
	listening_write_notification(&out, "c", "1");
	send_buffer(server, &out);
	assert_state(server, SERVER_PAIRED);
	assert_received(server, "Q");
	writer_command_complete(&out, "NOTIFY");
	listening_write_notification(&out, "c", "2");
	writer_ready(&out, READY_IDLE);
	send_buffer(server, &out);
	assert_received(client, "CZAA");
	assert_string_equal(listening_payload(client), "2");
}

/* Behind the question its settings were reset, so that they are SET again for its own client. */
static void test_a_pinned_server_loses_no_notification_while_it_is_set(void **state)
{
	struct buffer out = {0};

	(void)state;
	start_with("max_db_connections = 1\ndefault_pool_size = 1\nmax_pinned = 1\n");
	send_query(client, "DO something");
	read_letters(server);
	listening_answer(server, "DO");
	read_letters(client);
	assert_received(server, "Q");
	write_row(&out, "S", "work_mem", "1024");
	write_answer(&out);
	send_buffer(server, &out);
	assert_state(server, SERVER_PAIRED);
	send_query(client, "mine");
	assert_true(server_is_syncing(endpoint_server(server)));
	listening_notify(server, "c", "1");
	read_letters(server);
	send_letters(server, "CCCZ");
	listening_notify(server, "c", "2");
	assert_received(client, "");
	send_letters(server, "CZ");
	assert_received(client, "CZAA");
	assert_string_equal(listening_payload(client), "2");
}

static void test_a_handoff_with_a_present_channel_needs_no_wait(void **state)
{
	(void)state;
	listen_on_own_server();
	let_both_listen();
	listening_notify(server, marker, token);
	listening_notify(listening, marker, token);
	end_commands();
	send_query(other, "LISTEN c");
	assert_received(other, "CZ");
	send_query(other, "SELECT 1; LISTEN c");
	read_letters(server);
	listening_answer(server, "LISTEN");
	read_letters(other);
	read_letters(server);
	answer_question();
	assert_received(server, "QQ");
	assert_received(listening, "");
}

/* Settings of unknown names were reset behind the question, so that the two sets differ. */
static void test_a_client_whose_server_was_reset_goes_on_with_its_settings(void **state)
{
	struct buffer out = {0};

	(void)state;
	send_query(client, "DO something");
	read_letters(server);
	listening_answer(server, "DO");
	read_letters(client);
	assert_received(server, "Q");
	send_query(client, "mine");
	write_row(&out, "S", "work_mem", "1024");
	write_row(&out, "N", "c", "");
	writer_command_complete(&out, "SELECT 2");
	writer_ready(&out, READY_IDLE);
	send_buffer(server, &out);
	assert_state(client, CLIENT_WAITING);
	let_both_listen();
	listening_notify(server, marker, token);
	end_commands();
	assert_received(server, "QQ");
	assert_string_equal(listening_query(server), "mine");
	send_letters(server, "CCCZCZ");
	assert_received(client, "CZ");
}

/* --- never a hang ------------------------------------------------------------------------- */

/* The server stops listening without a token, its client is warned, and queries go on. */
static void expect_abandoned(void)
{
	assert_received(server, "Q");
	assert_string_equal(listening_query(server), "UNLISTEN *");
	assert_received(client, "");
	listening_answer(server, "UNLISTEN");
	fake_turn();
	assert_received(client, "N");
	assert_state(server, SERVER_IDLE);
	send_query(client, "SELECT 1");
	assert_received(server, "Q");
	listening_answer(server, "SELECT 1");
	assert_received(client, "CZ");
	assert_true(TAILQ_EMPTY(&pool->hub->handoffs));
	assert_int_equal(pool->hub->subscriptions, 1);
}

static void test_a_refused_listening_server_ends_the_wait(void **state)
{
	struct endpoint *launched;

	(void)state;
	listen_on_own_server();
	launched = fake_launched();
	fake_connected(launched, 0);
	send_error(launched, "53300", "too many connections");
	expect_abandoned();
}

static void test_a_listening_server_that_cannot_be_reached_ends_the_wait(void **state)
{
	(void)state;
	listen_on_own_server();
	fake_connected(fake_launched(), ECONNREFUSED);
	expect_abandoned();
}

static void test_a_slow_login_ends_the_wait_sooner_if_a_client_needs_the_server(void **state)
{
	(void)state;
	listen_on_own_server();
	handoff_expire(pool->hub, loop_now(&fake_loop) + 3 * USEC_PER_SEC);
	assert_received(server, "");
	send_query(other, "SELECT 1");
	assert_state(other, CLIENT_WAITING);
	handoff_expire(pool->hub, loop_now(&fake_loop) + 3 * USEC_PER_SEC);
	assert_received(server, "Q");
	assert_string_equal(listening_query(server), "UNLISTEN *");
	listening_answer(server, "UNLISTEN");
	assert_state(other, CLIENT_PAIRED);
}

static void test_a_client_that_leaves_frees_the_server(void **state)
{
	(void)state;
	listen_on_own_server();
	disconnect(client);
	fake_turn();
	assert_received(server, "Q");
	assert_string_equal(listening_query(server), "UNLISTEN *");
	listening_answer(server, "UNLISTEN");
	assert_state(server, SERVER_IDLE);
	assert_true(!pool->hub || TAILQ_EMPTY(&pool->hub->handoffs));
}

static void test_where_no_server_may_listen_the_server_is_pinned(void **state)
{
	(void)state;
	start_with("max_db_connections = 1\ndefault_pool_size = 1\nmax_pinned = 1\n");
	send_query(client, "SELECT 1; LISTEN c");
	read_letters(server);
	listening_answer(server, "LISTEN");
	read_letters(client);
	read_letters(server);
	answer_question();
	assert_state(server, SERVER_PAIRED);
	assert_int_equal(pool->pinned, 1);
	assert_null(fake_launched());
	listening_notify(server, "c", "1");
	assert_received(client, "A");
}

/* --- losses ------------------------------------------------------------------------------- */

static void test_loss_of_the_listening_server_before_the_token_is_told_once(void **state)
{
	(void)state;
	listen_on_own_server();
	let_both_listen();
	disconnect(listening);
	assert_received(client, "N");
	listening_notify(server, marker, token);
	end_commands();
	assert_state(server, SERVER_IDLE);
	assert_received(client, "");
}

static void test_loss_of_the_listening_server_before_the_commands_loses_nothing(void **state)
{
	(void)state;
	listen_on_own_server();
	listening = listening_log_in(fake_launched());
	disconnect(listening);
	listening_notify(server, "c", "1");
	assert_received(client, "A");
	let_both_listen();
	listening_notify(server, marker, token);
	end_commands();
	listening_notify(listening, marker, token);
	listening_notify(listening, "c", "2");
	assert_received(client, "A");
}

static void test_loss_of_the_clients_server_before_its_token_is_told(void **state)
{
	(void)state;
	listen_on_own_server();
	let_both_listen();
	disconnect(server);
	fake_turn();
	assert_received(client, "N");
	listening_notify(listening, "c", "1");
	assert_received(client, "A");
}

static void test_an_error_of_the_server_closes_it(void **state)
{
	(void)state;
	listen_on_own_server();
	let_both_listen();
	send_error(server, "XX000", "no");
	send_letters(server, "Z");
	listening_answer(server, "UNLISTEN");
	assert_closed(server);
	fake_turn();
	assert_received(client, "N");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define TEST_ALONE(name) cmocka_unit_test_setup_teardown(test_##name, NULL, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_servers_own_notifications_count_until_its_token),
		TEST(the_listening_server_may_get_the_token_first),
		TEST_ALONE(a_client_goes_on_while_its_server_is_handed_over),
		TEST_ALONE(two_servers_of_a_client_bring_each_notification_once),
		TEST(a_listen_during_the_handoff_is_answered_at_once),
		TEST_ALONE(a_pinned_server_overtakes_nothing_that_waits_for_its_client),
		TEST_ALONE(a_pinned_server_loses_no_notification_while_it_is_set),
		TEST(a_handoff_with_a_present_channel_needs_no_wait),
		TEST(a_client_whose_server_was_reset_goes_on_with_its_settings),
		TEST(a_refused_listening_server_ends_the_wait),
		TEST(a_listening_server_that_cannot_be_reached_ends_the_wait),
		TEST(a_slow_login_ends_the_wait_sooner_if_a_client_needs_the_server),
		TEST(a_client_that_leaves_frees_the_server),
		TEST_ALONE(where_no_server_may_listen_the_server_is_pinned),
		TEST(loss_of_the_listening_server_before_the_token_is_told_once),
		TEST(loss_of_the_listening_server_before_the_commands_loses_nothing),
		TEST(loss_of_the_clients_server_before_its_token_is_told),
		TEST(an_error_of_the_server_closes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
