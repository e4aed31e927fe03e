/* SPDX-License-Identifier: ISC */
/*
 * The way of bytes: exact, wherever they are cut; whole before a server is taken; held back where
 * the receiver is slow; and what happens when one side breaks or goes.
 */
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;
static struct actor *client, *server;

static void start_with(const char *settings)
{
	pool = fake_start_pool(settings);
	client = fake_client(pool);
	server = fake_server(pool);
}

static int start(void **state)
{
	(void)state;
	start_with("");
	return 0;
}

static int start_session(void **state)
{
	(void)state;
	start_with("pool_mode = session\n");
	return 0;
}

/* --- what was sent ------------------------------------------------------------------------ */

static struct buffer written(enum speaker speaker, const char *letters)
{
	struct buffer buffer;

	buffer_init(&buffer);
	letters_write(&buffer, speaker, letters);
	return buffer;
}

static void assert_got(struct actor *actor, const struct buffer *expected)
{
	size_t length;
	const uint8_t *output = scripted_output(actor->script, &length);

	assert_int_equal(length, expected->length);
	assert_memory_equal(output, expected->data, length);
	scripted_forget_output(actor->script);
	actor->heard = actor->served = 0;
}

/* A message of this type and whole size, with no two bytes in a row alike. */
static struct buffer large(uint8_t type, size_t total)
{
	struct buffer buffer;
	uint8_t *body;

	buffer_init(&buffer);
	writer_byte(&buffer, type);
	writer_int32(&buffer, (uint32_t)total - 1);
	body = buffer_extend(&buffer, total - 5);
	assert_non_null(body);
	for (size_t i = 0; i < total - 5; i++)
		body[i] = (uint8_t)(i * 131 + (i >> 8));
	return buffer;
}

static void say_part(struct actor *actor, const struct buffer *buffer, size_t from, size_t to)
{
	say_bytes(actor, buffer->data + from, to - from);
}

/* --- byte for byte ------------------------------------------------------------------------ */

static const char asked[] = "QPBDESFPBHESQ";
static const char answered[] = "TDDCZ12TDCZVZ12NDCSZAIZ";

static void test_requests_arrive_exactly_wherever_they_are_cut(void **state)
{
	struct buffer requests = written(CLIENT_SPEAKS, asked);
	struct buffer answers = written(SERVER_SPEAKS, answered);

	(void)state;
	for (size_t cut = 0; cut <= requests.length; cut++) {
		say_part(client, &requests, 0, cut);
		say_part(client, &requests, cut, requests.length);
		assert_got(server, &requests);
		say_part(server, &answers, 0, answers.length);
		assert_got(client, &answers);
		assert_state(
			client, pool->mode == POOL_MODE_SESSION ? CLIENT_PAIRED : CLIENT_IDLE);
	}
	buffer_free(&requests);
	buffer_free(&answers);
}

static void test_answers_arrive_exactly_wherever_they_are_cut(void **state)
{
	struct buffer requests = written(CLIENT_SPEAKS, asked);
	struct buffer answers = written(SERVER_SPEAKS, answered);

	(void)state;
	for (size_t cut = 0; cut <= answers.length; cut++) {
		say_part(client, &requests, 0, requests.length);
		assert_got(server, &requests);
		say_part(server, &answers, 0, cut);
		if (cut > 0 && cut < answers.length)
			assert_state(server, SERVER_PAIRED);
		say_part(server, &answers, cut, answers.length);
		assert_got(client, &answers);
		assert_state(client, CLIENT_IDLE);
	}
	buffer_free(&requests);
	buffer_free(&answers);
}

static void test_single_bytes_arrive_exactly(void **state)
{
	struct buffer requests = written(CLIENT_SPEAKS, asked);
	struct buffer answers = written(SERVER_SPEAKS, answered);

	(void)state;
	for (size_t i = 0; i < requests.length; i++)
		say_part(client, &requests, i, i + 1);
	assert_got(server, &requests);
	for (size_t i = 0; i < answers.length; i++)
		say_part(server, &answers, i, i + 1);
	assert_got(client, &answers);
	assert_state(client, CLIENT_IDLE);
	assert_int_equal(fake_registry.helds.used, 0);
	buffer_free(&requests);
	buffer_free(&answers);
}

static void test_answers_do_not_wait_for_the_rest_of_a_message(void **state)
{
	struct buffer row = large(PQ_DATA_ROW, 300);

	(void)state;
	say(client, "Q");
	say_part(server, &row, 0, 5);
	assert_int_equal(heard_bytes(client), 5);
	say_part(server, &row, 5, 100);
	assert_int_equal(heard_bytes(client), 100);
	say_part(server, &row, 100, 300);
	assert_got(client, &row);
	buffer_free(&row);
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_thousand_small_messages_in_one_go(void **state)
{
	struct buffer requests, answers;

	(void)state;
	buffer_init(&requests);
	buffer_init(&answers);
	for (int i = 0; i < 1000; i++) {
		letters_write(&requests, CLIENT_SPEAKS, "PBES");
		letters_write(&answers, SERVER_SPEAKS, "12NDCZ");
	}
	say_part(client, &requests, 0, requests.length);
	assert_got(server, &requests);
	say_part(server, &answers, 0, answers.length);
	assert_got(client, &answers);
	assert_state(client, CLIENT_IDLE);
	buffer_free(&requests);
	buffer_free(&answers);
}

static void test_dropped_messages_leave_no_trace_between_others(void **state)
{
	struct buffer mixed = written(CLIENT_SPEAKS, "ddcQ");
	struct buffer query = written(CLIENT_SPEAKS, "Q");

	(void)state;
	for (size_t cut = 0; cut <= mixed.length; cut++) {
		say_part(client, &mixed, 0, cut);
		say_part(client, &mixed, cut, mixed.length);
		assert_got(server, &query);
		say(server, "CZ");
		assert_state(client, CLIENT_IDLE);
	}
	buffer_free(&mixed);
	buffer_free(&query);
}

/* --- when a server is taken --------------------------------------------------------------- */

static void test_half_a_message_takes_no_server(void **state)
{
	struct buffer query = written(CLIENT_SPEAKS, "Q");

	(void)state;
	for (size_t cut = 1; cut < query.length; cut++) {
		say_part(client, &query, 0, cut);
		assert_state(client, CLIENT_IDLE);
		assert_state(server, SERVER_IDLE);
		assert_int_equal(heard_bytes(server), 0);
		say_part(client, &query, cut, query.length);
		assert_state(client, CLIENT_PAIRED);
		assert_got(server, &query);
		say(server, "CZ");
		assert_state(server, SERVER_IDLE);
	}
	buffer_free(&query);
}

static void test_half_a_message_behind_a_batch_holds_no_server(void **state)
{
	struct buffer requests = written(CLIENT_SPEAKS, "QQ");
	const size_t half = requests.length * 3 / 4;

	(void)state;
	say_part(client, &requests, 0, half);
	say(server, "TDCZ");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_int_equal(heard_bytes(server), requests.length / 2);
	say_part(client, &requests, half, requests.length);
	assert_got(server, &requests);
	say(server, "TDCZ");
	buffer_free(&requests);
}

static void test_a_message_of_a_packet_buffer_is_gathered(void **state)
{
	struct buffer message = large(PQ_QUERY, 4096);

	(void)state;
	say_part(client, &message, 0, 4095);
	assert_state(client, CLIENT_IDLE);
	assert_int_equal(actor_link(client)->held_length, 4095);
	say_part(client, &message, 4095, 4096);
	assert_got(server, &message);
	buffer_free(&message);
	say(server, "CZ");
	assert_int_equal(fake_registry.helds.used, 0);
}

static void test_a_longer_message_takes_a_server_when_a_packet_buffer_is_there(void **state)
{
	struct buffer message = large(PQ_QUERY, 4097);

	(void)state;
	say_part(client, &message, 0, 4095);
	assert_state(client, CLIENT_IDLE);
	say_part(client, &message, 4095, 4096);
	assert_state(client, CLIENT_PAIRED);
	assert_int_equal(heard_bytes(server), 4096);
	say_part(client, &message, 4096, 4097);
	assert_got(server, &message);
	buffer_free(&message);
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_large_messages_are_passed_on_by_count(void **state)
{
	enum { TOTAL = 3 << 20 };
	struct buffer message = large(PQ_QUERY, TOTAL), row = large(PQ_DATA_ROW, TOTAL);
	size_t at = 0, step = 1;

	(void)state;
	while (at < TOTAL) {
		const size_t to = at + step < TOTAL ? at + step : TOTAL;

		say_part(client, &message, at, to);
		assert_true(actor_link(client)->held_length <= 4096);
		at = to;
		step = step * 3 / 2 + 1;
	}
	assert_got(server, &message);
	for (at = 0, step = 1; at < TOTAL; step = step * 3 / 2 + 1) {
		const size_t to = at + step < TOTAL ? at + step : TOTAL;

		say_part(server, &row, at, to);
		assert_int_equal(actor_link(server)->held_length, to < 5 ? to : 0);
		at = to;
	}
	assert_got(client, &row);
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
	buffer_free(&message);
	buffer_free(&row);
}

/* How many receives one event is worth to this side, of a message of ten receives. */
static size_t receives_of_one_event(struct actor *actor, const struct buffer *message)
{
	const size_t fed = 8 * LOOP_RECEIVE_SIZE;
	size_t received;

	/* Its server first: what comes behind is passed on as it is. */
	say_part(actor, message, 0, LOOP_RECEIVE_SIZE);
	scripted_feed(actor->script, message->data + LOOP_RECEIVE_SIZE, fed);
	assert_true(scripted_run(actor->script));
	received = fed - scripted_unread(actor->script);
	scripted_run_all(actor->script);
	say_part(actor, message, LOOP_RECEIVE_SIZE + fed, message->length);
	return received / LOOP_RECEIVE_SIZE;
}

/* setting: sbuf_loopcnt */
static void test_one_event_is_worth_as_many_receives_as_set(void **state)
{
	static const struct {
		const char *set;
		size_t receives;
	} cases[] = {{"1", 1}, {"3", 3}, {"5", 5}, {"0", 8}};
	struct buffer message = large(PQ_QUERY, 10 * LOOP_RECEIVE_SIZE);
	struct buffer row = large(PQ_DATA_ROW, 10 * LOOP_RECEIVE_SIZE);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		fake_set("sbuf_loopcnt", cases[i].set);
		assert_int_equal(receives_of_one_event(client, &message), cases[i].receives);
		assert_int_equal(receives_of_one_event(server, &row), cases[i].receives);
		say(server, "CZ");
	}
	buffer_free(&message);
	buffer_free(&row);
}

/* A large message whose server answers before its end: it fails, and goes on being sent. */
static void test_an_answer_before_the_end_of_a_message_frees_no_server(void **state)
{
	struct buffer message = large(PQ_QUERY, 9000);

	(void)state;
	say_part(client, &message, 0, 5000);
	say(server, "EZ");
	assert_heard(client, "EZ");
	assert_state(server, SERVER_PAIRED);
	say_part(client, &message, 5000, 9000);
	assert_state(server, SERVER_IDLE);
	assert_state(client, CLIENT_IDLE);
	assert_got(server, &message);
	buffer_free(&message);
}

/* --- slow receivers ----------------------------------------------------------------------- */

static void test_a_slow_client_pauses_its_server(void **state)
{
	struct buffer answers = written(SERVER_SPEAKS, "TDDDDDDDDDDCZ");

	(void)state;
	say(client, "Q");
	for (size_t room = 0; room < answers.length; room++) {
		scripted_allow(client->script, room);
		say_part(server, &answers, 0, answers.length);
		assert_int_equal(heard_bytes(client), room);
		assert_true(actor_link(server)->stream.paused);
		/* It has answered all, but is not free before the client has it. */
		assert_state(server, SERVER_PAIRED);
		allow(client, SCRIPTED_ANY);
		assert_got(client, &answers);
		assert_state(server, SERVER_IDLE);
		assert_state(client, CLIENT_IDLE);
		say(client, "Q");
	}
	buffer_free(&answers);
}

static void test_nothing_is_read_for_a_slow_client(void **state)
{
	struct buffer row = large(PQ_DATA_ROW, 100);

	(void)state;
	say(client, "Q");
	scripted_allow(client->script, 10);
	say_part(server, &row, 0, 100);
	for (int i = 0; i < 50; i++)
		say_part(server, &row, 0, 100);
	assert_int_equal(scripted_unread(server->script), 5000);
	assert_int_equal(stream_backlog_length(&actor_link(client)->stream), 90);
	scripted_allow(client->script, 50);
	scripted_run_all(server->script);
	assert_int_equal(scripted_unread(server->script), 5000);
	/* The backlog goes out, and reading goes on. */
	scripted_allow(client->script, SCRIPTED_ANY);
	scripted_run_all(server->script);
	assert_int_equal(heard_bytes(client), 5100);
	assert_int_equal(fake_loop.backlogs.used, 0);
	buffer_free(&row);
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_slow_server_pauses_its_client(void **state)
{
	struct buffer requests = written(CLIENT_SPEAKS, "PBDESPBDESQ");

	(void)state;
	for (size_t room = 0; room < requests.length; room++) {
		scripted_allow(server->script, room);
		say_part(client, &requests, 0, requests.length);
		assert_int_equal(heard_bytes(server), room);
		assert_true(actor_link(client)->stream.paused);
		say(client, "H");
		assert_int_equal(scripted_unread(client->script), 5);
		allow(server, SCRIPTED_ANY);
		scripted_run_all(client->script);
		assert_int_equal(scripted_unread(client->script), 0);
		assert_int_equal(heard_bytes(server), requests.length + 5);
		scripted_forget_output(server->script);
		say(server, "12TDCZ12TDCZCZ");
		assert_state(server, SERVER_IDLE);
		hear(client);
	}
	buffer_free(&requests);
}

/* What comes by itself, in pieces, when its client could go any moment: that one hears all of it. */
static void test_half_a_notification_behind_the_end_does_no_harm(void **state)
{
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes);
	letters_write(&bytes, SERVER_SPEAKS, "CZA");
	say(client, "Q");
	for (size_t at = 0, next = bytes.length - 8; at < bytes.length; at = next, next += 4)
		say_bytes(server, bytes.data + at, next - at);
	assert_got(client, &bytes);
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_false(actor_server(server)->dirty);
	buffer_free(&bytes);
}

/* What came before makes its server useless to others. */
static void test_half_a_notification_of_a_dirty_server_is_not_cut(void **state)
{
	struct buffer bytes;
	size_t half;

	(void)state;
	buffer_init(&bytes);
	letters_write(&bytes, SERVER_SPEAKS, "CZ");
	say(client, "Q");
	say_bytes(server, bytes.data, bytes.length);
	assert_state(client, CLIENT_IDLE);
	assert_got(client, &bytes);
	scripted_forget_output(client->script);
	say(client, "Q");
	letters_write(&bytes, SERVER_SPEAKS, "nA");
	half = bytes.length - 8;
	say_bytes(server, bytes.data, half);
	assert_true(actor_server(server)->dirty);
	assert_state(client, CLIENT_PAIRED);
	say_bytes(server, bytes.data + half, bytes.length - half);
	assert_got(client, &bytes);
	assert_state(client, CLIENT_IDLE);
	assert_gone(server);
	buffer_free(&bytes);
}

static void test_the_client_of_a_slow_server_that_is_dropped_is_read_again(void **state)
{
	struct actor *other = fake_server(pool);

	(void)state;
	say(client, "Q");
	say(other, "G");
	allow(other, 5);
	say(client, "dddd");
	assert_true(actor_link(client)->stream.paused);
	/* The COPY has failed, and what the server did not take of its tail holds it up. */
	say(other, "EZ");
	assert_state(client, CLIENT_PAIRED);
	say(other, "E");
	assert_gone(other);
	assert_heard(client, "GEZ");
	hear(server);
	say(client, "cQ");
	assert_heard(server, "Q");
	say(server, "TDCZ");
	assert_heard(client, "TDCZ");
	assert_state(client, CLIENT_IDLE);
}

/* Its server has finished, but not everything that it said was passed on. */
static void test_a_slow_client_that_breaks_leaves_a_finished_server(void **state)
{
	(void)state;
	say(client, "Q");
	scripted_allow(client->script, 3);
	say(server, "TDCZ");
	vanish(client);
	assert_gone(client);
	assert_heard(server, "Q");
	assert_state(server, SERVER_IDLE);
}

static void test_a_server_that_ends_while_its_client_is_slow(void **state)
{
	(void)state;
	say(client, "Q");
	scripted_allow(client->script, 3);
	say(server, "TD");
	leave(server);
	assert_state(client, CLIENT_PAIRED);
	allow(client, SCRIPTED_ANY);
	scripted_run_all(server->script);
	fake_turn();
	assert_heard(client, "TDE");
	assert_string_equal(client->text, "server conn crashed?");
	assert_gone(client);
	assert_gone(server);
}

/* --- broken messages ---------------------------------------------------------------------- */

static void test_a_clients_malformed_header_is_told_in_hex(void **state)
{
	(void)state;
	say_bytes(client, "Q\0\0\0\3select", 11);
	assert_told(client, "08P01", "bad packet header: '510000000373656c'");
	assert_state(server, SERVER_IDLE);
	assert_int_equal(heard_bytes(server), 0);
}

static void test_a_malformed_header_wherever_it_is_cut(void **state)
{
	static const uint8_t bytes[] = "Q\xff\xff\xff\xff";

	(void)state;
	for (size_t i = 0; i < 5; i++)
		say_bytes(client, bytes + i, 1);
	assert_told(client, "08P01", "bad packet header: '51ffffffff'");
}

static void test_what_stands_before_a_malformed_header_is_passed_on(void **state)
{
	struct buffer bytes = written(CLIENT_SPEAKS, "Q");

	(void)state;
	buffer_append(&bytes, "Q\0\0\0\0", 5);
	say_buffer(client, &bytes);
	assert_told(client, "08P01", "bad packet header: '5100000000'");
	assert_heard(server, "Q");
	assert_state(server, SERVER_DRAINING);
}

static void test_a_servers_malformed_header_ends_the_pair(void **state)
{
	struct buffer bytes = written(SERVER_SPEAKS, "TD");

	(void)state;
	say(client, "Q");
	buffer_append(&bytes, "D\0\0\0\2", 5);
	say_buffer(server, &bytes);
	assert_heard(client, "TDE");
	assert_string_equal(client->text, "bad pkt header");
	assert_string_equal(client->sqlstate, "08P01");
	assert_gone(client);
	assert_gone(server);
}

/* The sanitizers see to it that nothing is read behind what was received. */
static void test_a_ready_without_a_body_at_the_end_of_a_receive(void **state)
{
	struct buffer bytes = large(PQ_DATA_ROW, LOOP_RECEIVE_SIZE - 5);

	(void)state;
	writer_end(&bytes, writer_begin(&bytes, PQ_READY_FOR_QUERY));
	assert_int_equal(bytes.length, LOOP_RECEIVE_SIZE);
	say(client, "Q");
	say_buffer(server, &bytes);
	assert_gone(server);
	assert_gone(client);
}

static void test_messages_may_not_be_longer_than_allowed(void **state)
{
	struct buffer fits = large(PQ_QUERY, 1000), row = large(PQ_DATA_ROW, 1001);

	(void)state;
	fake_set("max_packet_size", "1000");
	say_buffer(client, &fits);
	assert_heard(server, "Q");
	say_buffer(server, &row);
	assert_told(client, "08P01", "bad pkt header");
	assert_gone(server);
	client = fake_client(pool);
	fits = large(PQ_QUERY, 1001);
	say_buffer(client, &fits);
	assert_heard(client, "E");
	assert_gone(client);
}

static void test_lengths_that_would_overflow_are_refused(void **state)
{
	static const char *const lengths[] = {
		"Q\xff\xff\xff\xff", "Q\x80\0\0\0", "Q\x7f\xff\xff\xff", "Q\0\0\0\1"};

	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		say_bytes(client, lengths[i], 5);
		assert_heard(client, "E");
		assert_gone(client);
		client = fake_client(pool);
	}
}

/* --- ends --------------------------------------------------------------------------------- */

static void test_terminate_ends_an_idle_client(void **state)
{
	(void)state;
	say(client, "X");
	assert_dropped(client);
	assert_state(server, SERVER_IDLE);
	assert_int_equal(heard_bytes(server), 0);
}

static void test_a_query_with_a_terminate_behind_it_is_run(void **state)
{
	(void)state;
	say(client, "QX");
	assert_dropped(client);
	assert_heard(server, "Q");
	assert_state(server, SERVER_DRAINING);
	say(server, "TDCZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_client_that_leaves_idle_leaves_no_trace(void **state)
{
	struct buffer query = written(CLIENT_SPEAKS, "Q");

	(void)state;
	say_part(client, &query, 0, 7);
	leave(client);
	assert_dropped(client);
	assert_state(server, SERVER_IDLE);
	buffer_free(&query);
}

static void test_a_client_that_breaks_while_it_is_answered(void **state)
{
	(void)state;
	say(client, "Q");
	/* Writing to it fails before anybody has read its end. */
	scripted_break(client->script);
	say(server, "TDC");
	assert_gone(client);
	assert_state(server, SERVER_DRAINING);
	say(server, "Z");
	assert_state(server, SERVER_IDLE);
	client = fake_client(pool);
	say(client, "Q");
	scripted_break(client->script);
	say(server, "TDCZ");
	assert_gone(client);
	assert_state(server, SERVER_IDLE);
}

static void test_a_server_that_ends_is_told_after_what_it_said(void **state)
{
	struct buffer bytes = written(SERVER_SPEAKS, "TDE");

	(void)state;
	say(client, "Q");
	scripted_feed(server->script, bytes.data, bytes.length);
	leave(server);
	assert_heard(client, "TDEE");
	assert_string_equal(client->text, "server conn crashed?");
	assert_string_equal(client->sqlstate, "08006");
	assert_string_equal(client->severity, "FATAL");
	assert_gone(client);
	buffer_free(&bytes);
}

static void test_a_server_that_ends_in_the_middle_of_a_message(void **state)
{
	struct buffer row = large(PQ_DATA_ROW, 300);

	(void)state;
	say(client, "Q");
	say_part(server, &row, 0, 100);
	leave(server);
	assert_gone(client);
	assert_gone(server);
	buffer_free(&row);
}

static void test_a_server_that_ends_unused_is_nobodys_trouble(void **state)
{
	(void)state;
	leave(server);
	assert_dropped(server);
	assert_state(client, CLIENT_IDLE);
	assert_int_equal(pool_servers(pool), 0);
}

static void test_in_session_mode_a_client_that_leaves_gives_its_server_back(void **state)
{
	(void)state;
	say(client, "Q");
	say(server, "TDCZ");
	leave(client);
	assert_gone(client);
	assert_state(server, SERVER_IDLE);
}

/* --- servers that are dead already -------------------------------------------------------- */

static void test_a_server_that_was_dead_already_costs_nothing(void **state)
{
	struct actor *other = server;

	(void)state;
	server = fake_server(pool);
	scripted_break(server->script);
	say(client, "PBES");
	assert_gone(server);
	assert_heard(other, "PBES");
	say(other, "12DCZ");
	assert_heard(client, "12DCZ");
	assert_state(client, CLIENT_IDLE);
}

static void test_when_all_servers_were_dead_a_new_one_serves(void **state)
{
	struct actor *other = server, *fresh;

	(void)state;
	server = fake_server(pool);
	scripted_break(server->script);
	scripted_break(other->script);
	say(client, "Q");
	assert_gone(server);
	assert_gone(other);
	assert_state(client, CLIENT_WAITING);
	fresh = fake_launched();
	assert_non_null(fresh);
	fake_connected(fresh, 0);
	postgres_work(fresh);
	assert_heard(client, "TDCZ");
	assert_state(client, CLIENT_IDLE);
}

static void test_a_server_that_dies_later_is_told(void **state)
{
	(void)state;
	say(client, "Q");
	scripted_break(server->script);
	say(client, "Q");
	assert_told(client, "08006", "server connection closed");
	assert_gone(server);
}

static void test_a_server_that_dies_after_half_a_message_is_told(void **state)
{
	struct buffer message = large(PQ_QUERY, 9000);

	(void)state;
	say_part(client, &message, 0, 5000);
	scripted_break(server->script);
	say_part(client, &message, 5000, 9000);
	assert_told(client, "08006", "server connection closed");
	buffer_free(&message);
}

/* What went before it in a transaction went to that very server. */
static void test_a_server_that_dies_in_a_transaction_is_told(void **state)
{
	(void)state;
	say(client, "Q");
	say(server, "C>");
	assert_heard(client, "C>");
	scripted_break(server->script);
	say(client, "Q");
	assert_told(client, "08006", "server connection closed");
}

static void test_a_dead_server_and_a_large_message(void **state)
{
	struct buffer message = large(PQ_QUERY, 200000);
	struct actor *other = server;

	(void)state;
	server = fake_server(pool);
	scripted_break(server->script);
	say_part(client, &message, 0, message.length);
	assert_got(other, &message);
	say(other, "CZ");
	assert_heard(client, "CZ");
	assert_state(client, CLIENT_IDLE);
	buffer_free(&message);
}

/* --- too many requests -------------------------------------------------------------------- */

static void test_a_client_waits_when_too_much_is_unanswered(void **state)
{
	struct buffer syncs, answers;

	(void)state;
	buffer_init(&syncs);
	buffer_init(&answers);
	for (int i = 0; i < REQUESTS_MAX + 10; i++)
		letters_write(&syncs, CLIENT_SPEAKS, "S");
	for (int i = 0; i < REQUESTS_MAX / 2; i++)
		letters_write(&answers, SERVER_SPEAKS, "Z");
	say_part(client, &syncs, 0, syncs.length);
	scripted_run_all(client->script);
	assert_true(actor_client(client)->ring_full);
	assert_int_equal(actor_server(server)->requests.count, REQUESTS_MAX);
	assert_int_equal(heard_bytes(server), REQUESTS_MAX * 5);
	/* One answer is not enough to go on, half of them are. */
	say_part(server, &answers, 0, 6);
	assert_true(actor_client(client)->ring_full);
	say_part(server, &answers, 6, answers.length);
	scripted_run_all(client->script);
	assert_false(actor_client(client)->ring_full);
	assert_got(server, &syncs);
	assert_int_equal(actor_server(server)->requests.count, REQUESTS_MAX / 2 + 10);
	say_part(server, &answers, 0, answers.length);
	assert_state(server, SERVER_PAIRED);
	say_part(server, &answers, 0, 60);
	assert_state(server, SERVER_IDLE);
	assert_state(client, CLIENT_IDLE);
	assert_int_equal(heard_bytes(client), (REQUESTS_MAX + 10) * 6);
	buffer_free(&syncs);
	buffer_free(&answers);
}

static void test_a_client_that_leaves_with_too_much_unanswered(void **state)
{
	struct buffer syncs;

	(void)state;
	buffer_init(&syncs);
	for (int i = 0; i < REQUESTS_MAX + 10; i++)
		letters_write(&syncs, CLIENT_SPEAKS, "S");
	say_buffer(client, &syncs);
	assert_true(actor_client(client)->ring_full);
	leave(client);
	assert_gone(client);
	assert_state(server, SERVER_DRAINING);
	for (int i = 0; i < REQUESTS_MAX / 16; i++)
		say(server, "ZZZZZZZZZZZZZZZZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_server_that_ends_with_too_much_unanswered(void **state)
{
	struct buffer syncs;

	(void)state;
	buffer_init(&syncs);
	for (int i = 0; i < REQUESTS_MAX + 10; i++)
		letters_write(&syncs, CLIENT_SPEAKS, "S");
	say_buffer(client, &syncs);
	leave(server);
	assert_told(client, "08006", "server conn crashed?");
}

/* --- what is counted ---------------------------------------------------------------------- */

static void test_queries_and_transactions_are_counted_and_timed(void **state)
{
	const struct totals *totals = &pool->stats.current;
	struct buffer requests = written(CLIENT_SPEAKS, "QPBESQ");
	struct buffer answers = written(SERVER_SPEAKS, "C>12DC>CZ");

	(void)state;
	say(client, "Q");
	fake_advance(USEC_PER_SEC);
	say(server, "C>");
	fake_advance(2 * USEC_PER_SEC);
	say(client, "PBES");
	fake_advance(3 * USEC_PER_SEC);
	say(server, "12DC>");
	say(client, "Q");
	say(server, "CZ");
	assert_int_equal(totals->assignments, 1);
	assert_int_equal(totals->queries, 3);
	assert_int_equal(totals->transactions, 1);
	assert_int_equal(totals->query_time, 4 * USEC_PER_SEC);
	assert_int_equal(totals->transaction_time, 6 * USEC_PER_SEC);
	assert_int_equal(totals->wait_time, 0);
	assert_int_equal(totals->received, requests.length);
	assert_int_equal(totals->sent, answers.length);
	buffer_free(&requests);
	buffer_free(&answers);
}

static void test_a_lone_flush_and_the_tail_of_a_copy_are_no_queries(void **state)
{
	const struct totals *totals = &pool->stats.current;

	(void)state;
	say(client, "H");
	say(client, "dc");
	assert_int_equal(totals->queries, 0);
	assert_int_equal(totals->transactions, 0);
	assert_int_equal(actor_client(client)->query_start, 0);
	assert_state(server, SERVER_IDLE);
}

static void test_pipelined_queries_are_one_query_cycle(void **state)
{
	(void)state;
	say(client, "QQQ");
	say(server, "CZCZCZ");
	assert_int_equal(pool->stats.current.queries, 1);
	assert_int_equal(pool->stats.current.transactions, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_session, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(requests_arrive_exactly_wherever_they_are_cut),
		TEST(answers_arrive_exactly_wherever_they_are_cut),
		SESSION_TEST(requests_arrive_exactly_wherever_they_are_cut),
		TEST(single_bytes_arrive_exactly),
		TEST(answers_do_not_wait_for_the_rest_of_a_message),
		TEST(a_thousand_small_messages_in_one_go),
		TEST(dropped_messages_leave_no_trace_between_others),
		TEST(half_a_message_takes_no_server),
		TEST(half_a_message_behind_a_batch_holds_no_server),
		TEST(a_message_of_a_packet_buffer_is_gathered),
		TEST(a_longer_message_takes_a_server_when_a_packet_buffer_is_there),
		TEST(large_messages_are_passed_on_by_count),
		TEST(one_event_is_worth_as_many_receives_as_set),
		TEST(an_answer_before_the_end_of_a_message_frees_no_server),
		TEST(a_slow_client_pauses_its_server),
		TEST(nothing_is_read_for_a_slow_client),
		TEST(a_slow_server_pauses_its_client),
		TEST(half_a_notification_behind_the_end_does_no_harm),
		TEST(half_a_notification_of_a_dirty_server_is_not_cut),
		TEST(the_client_of_a_slow_server_that_is_dropped_is_read_again),
		TEST(a_slow_client_that_breaks_leaves_a_finished_server),
		TEST(a_server_that_ends_while_its_client_is_slow),
		TEST(a_clients_malformed_header_is_told_in_hex),
		TEST(a_malformed_header_wherever_it_is_cut),
		TEST(what_stands_before_a_malformed_header_is_passed_on),
		TEST(a_servers_malformed_header_ends_the_pair),
		TEST(a_ready_without_a_body_at_the_end_of_a_receive),
		TEST(messages_may_not_be_longer_than_allowed),
		TEST(lengths_that_would_overflow_are_refused),
		TEST(terminate_ends_an_idle_client),
		TEST(a_query_with_a_terminate_behind_it_is_run),
		TEST(a_client_that_leaves_idle_leaves_no_trace),
		TEST(a_client_that_breaks_while_it_is_answered),
		TEST(a_server_that_ends_is_told_after_what_it_said),
		TEST(a_server_that_ends_in_the_middle_of_a_message),
		TEST(a_server_that_ends_unused_is_nobodys_trouble),
		SESSION_TEST(in_session_mode_a_client_that_leaves_gives_its_server_back),
		TEST(a_server_that_was_dead_already_costs_nothing),
		TEST(when_all_servers_were_dead_a_new_one_serves),
		TEST(a_server_that_dies_later_is_told),
		TEST(a_server_that_dies_after_half_a_message_is_told),
		TEST(a_server_that_dies_in_a_transaction_is_told),
		TEST(a_dead_server_and_a_large_message),
		TEST(a_client_waits_when_too_much_is_unanswered),
		TEST(a_client_that_leaves_with_too_much_unanswered),
		TEST(a_server_that_ends_with_too_much_unanswered),
		TEST(queries_and_transactions_are_counted_and_timed),
		TEST(a_lone_flush_and_the_tail_of_a_copy_are_no_queries),
		TEST(pipelined_queries_are_one_query_cycle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
