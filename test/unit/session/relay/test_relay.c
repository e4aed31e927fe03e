/* SPDX-License-Identifier: ISC */
/*
 * Forwarding of bytes: unchanged wherever the input is cut; a server is taken for whole
 * messages only; reading stops while the receiver is slow; and what happens when one side
 * disconnects.
 */
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;
static struct endpoint *client, *server;

static void start_with(const char *settings)
{
	pool = fake_start_pool(settings);
	client = fake_client(pool);
	server = fake_server(pool);
}

/* Of a text that it has not seen whole, the pooler would ask what it has left in the session. */
static int start(void **state)
{
	(void)state;
	start_with("session_state = ignore\n");
	return 0;
}

static int start_session(void **state)
{
	(void)state;
	start_with("pool_mode = session\n");
	return 0;
}

/* --- what was sent ------------------------------------------------------------------------ */

static struct buffer messages_of(enum sender sender, const char *letters)
{
	struct buffer buffer;

	buffer_init(&buffer);
	letters_write(&buffer, sender, letters);
	return buffer;
}

static void assert_received_exactly(struct endpoint *endpoint, const struct buffer *expected)
{
	size_t length;
	const uint8_t *output = scripted_output(endpoint->script, &length);

	assert_int_equal(length, expected->length);
	assert_memory_equal(output, expected->data, length);
	scripted_forget_output(endpoint->script);
	endpoint->read_offset = endpoint->answered_offset = 0;
}

/* A message of this type and total size. Adjacent bytes of its body differ. */
static struct buffer large_message(uint8_t type, size_t total)
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

static void send_part(
	struct endpoint *endpoint, const struct buffer *buffer, size_t from, size_t to)
{
	send_bytes(endpoint, buffer->data + from, to - from);
}

/* --- byte for byte ------------------------------------------------------------------------ */

static const char all_requests[] = "QPBDESFPBHESQ";
static const char all_answers[] = "TDDCZ12TDCZVZ12NDCSZAIZ";

static void test_requests_cut_anywhere_are_forwarded_unchanged(void **state)
{
	struct buffer requests = messages_of(FROM_CLIENT, all_requests);
	struct buffer answers = messages_of(FROM_SERVER, all_answers);

	(void)state;
	for (size_t cut = 0; cut <= requests.length; cut++) {
		send_part(client, &requests, 0, cut);
		send_part(client, &requests, cut, requests.length);
		assert_received_exactly(server, &requests);
		send_part(server, &answers, 0, answers.length);
		assert_received_exactly(client, &answers);
		assert_state(
			client, pool->mode == POOL_MODE_SESSION ? CLIENT_PAIRED : CLIENT_IDLE);
	}
	buffer_free(&requests);
	buffer_free(&answers);
}

static void test_answers_cut_anywhere_are_forwarded_unchanged(void **state)
{
	struct buffer requests = messages_of(FROM_CLIENT, all_requests);
	struct buffer answers = messages_of(FROM_SERVER, all_answers);

	(void)state;
	for (size_t cut = 0; cut <= answers.length; cut++) {
		send_part(client, &requests, 0, requests.length);
		assert_received_exactly(server, &requests);
		send_part(server, &answers, 0, cut);
		if (cut > 0 && cut < answers.length)
			assert_state(server, SERVER_PAIRED);
		send_part(server, &answers, cut, answers.length);
		assert_received_exactly(client, &answers);
		assert_state(client, CLIENT_IDLE);
	}
	buffer_free(&requests);
	buffer_free(&answers);
}

static void test_single_bytes_are_forwarded_unchanged(void **state)
{
	struct buffer requests = messages_of(FROM_CLIENT, all_requests);
	struct buffer answers = messages_of(FROM_SERVER, all_answers);

	(void)state;
	for (size_t i = 0; i < requests.length; i++)
		send_part(client, &requests, i, i + 1);
	assert_received_exactly(server, &requests);
	for (size_t i = 0; i < answers.length; i++)
		send_part(server, &answers, i, i + 1);
	assert_received_exactly(client, &answers);
	assert_state(client, CLIENT_IDLE);
	assert_int_equal(fake_registry.helds.used, 0);
	buffer_free(&requests);
	buffer_free(&answers);
}

static void test_incomplete_answer_is_forwarded_at_once(void **state)
{
	struct buffer row = large_message(PQ_DATA_ROW, 300);

	(void)state;
	send_letters(client, "Q");
	send_part(server, &row, 0, 5);
	assert_int_equal(received_length(client), 5);
	send_part(server, &row, 5, 100);
	assert_int_equal(received_length(client), 100);
	send_part(server, &row, 100, 300);
	assert_received_exactly(client, &row);
	buffer_free(&row);
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_thousand_small_messages_in_one_receive_are_forwarded(void **state)
{
	struct buffer requests, answers;

	(void)state;
	buffer_init(&requests);
	buffer_init(&answers);
	for (int i = 0; i < 1000; i++) {
		letters_write(&requests, FROM_CLIENT, "PBES");
		letters_write(&answers, FROM_SERVER, "12NDCZ");
	}
	send_part(client, &requests, 0, requests.length);
	assert_received_exactly(server, &requests);
	send_part(server, &answers, 0, answers.length);
	assert_received_exactly(client, &answers);
	assert_state(client, CLIENT_IDLE);
	buffer_free(&requests);
	buffer_free(&answers);
}

static void test_dropped_messages_do_not_disturb_their_neighbours(void **state)
{
	struct buffer mixed = messages_of(FROM_CLIENT, "ddcQ");
	struct buffer query = messages_of(FROM_CLIENT, "Q");

	(void)state;
	for (size_t cut = 0; cut <= mixed.length; cut++) {
		send_part(client, &mixed, 0, cut);
		send_part(client, &mixed, cut, mixed.length);
		assert_received_exactly(server, &query);
		send_letters(server, "CZ");
		assert_state(client, CLIENT_IDLE);
	}
	buffer_free(&mixed);
	buffer_free(&query);
}

/* --- when a server is taken --------------------------------------------------------------- */

static void test_incomplete_message_takes_no_server(void **state)
{
	struct buffer query = messages_of(FROM_CLIENT, "Q");

	(void)state;
	for (size_t cut = 1; cut < query.length; cut++) {
		send_part(client, &query, 0, cut);
		assert_state(client, CLIENT_IDLE);
		assert_state(server, SERVER_IDLE);
		assert_int_equal(received_length(server), 0);
		send_part(client, &query, cut, query.length);
		assert_state(client, CLIENT_PAIRED);
		assert_received_exactly(server, &query);
		send_letters(server, "CZ");
		assert_state(server, SERVER_IDLE);
	}
	buffer_free(&query);
}

static void test_incomplete_message_after_a_query_does_not_keep_the_server(void **state)
{
	struct buffer requests = messages_of(FROM_CLIENT, "QQ");
	const size_t half = requests.length * 3 / 4;

	(void)state;
	send_part(client, &requests, 0, half);
	send_letters(server, "TDCZ");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_int_equal(received_length(server), requests.length / 2);
	send_part(client, &requests, half, requests.length);
	assert_received_exactly(server, &requests);
	send_letters(server, "TDCZ");
	buffer_free(&requests);
}

static void test_message_up_to_pkt_buf_is_gathered_before_a_server_is_taken(void **state)
{
	struct buffer message = large_message(PQ_QUERY, 4096);

	(void)state;
	send_part(client, &message, 0, 4095);
	assert_state(client, CLIENT_IDLE);
	assert_int_equal(endpoint_link(client)->held_length, 4095);
	send_part(client, &message, 4095, 4096);
	assert_received_exactly(server, &message);
	buffer_free(&message);
	send_letters(server, "CZ");
	assert_int_equal(fake_registry.helds.used, 0);
}

static void test_longer_message_takes_a_server_after_pkt_buf_bytes(void **state)
{
	struct buffer message = large_message(PQ_QUERY, 4097);

	(void)state;
	send_part(client, &message, 0, 4095);
	assert_state(client, CLIENT_IDLE);
	send_part(client, &message, 4095, 4096);
	assert_state(client, CLIENT_PAIRED);
	assert_int_equal(received_length(server), 4096);
	send_part(client, &message, 4096, 4097);
	assert_received_exactly(server, &message);
	buffer_free(&message);
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_large_messages_are_forwarded_without_being_gathered(void **state)
{
	enum { TOTAL = 3 << 20 };
	struct buffer message = large_message(PQ_QUERY, TOTAL),
		      row = large_message(PQ_DATA_ROW, TOTAL);
	size_t at = 0, step = 1;

	(void)state;
	while (at < TOTAL) {
		const size_t to = at + step < TOTAL ? at + step : TOTAL;

		send_part(client, &message, at, to);
		assert_true(endpoint_link(client)->held_length <= 4096);
		at = to;
		step = step * 3 / 2 + 1;
	}
	assert_received_exactly(server, &message);
	for (at = 0, step = 1; at < TOTAL; step = step * 3 / 2 + 1) {
		const size_t to = at + step < TOTAL ? at + step : TOTAL;

		send_part(server, &row, at, to);
		assert_int_equal(endpoint_link(server)->held_length, to < 5 ? to : 0);
		at = to;
	}
	assert_received_exactly(client, &row);
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
	buffer_free(&message);
	buffer_free(&row);
}

/*
 * How many receives one readable event performs on this side, out of a message of ten receives.
 */
static size_t receives_of_one_event(struct endpoint *endpoint, const struct buffer *message)
{
	const size_t fed = 8 * LOOP_RECEIVE_SIZE;
	size_t received;

	/*
	 * The first part pairs the client with a server: what follows is forwarded as it
	 * arrives.
	 */
	send_part(endpoint, message, 0, LOOP_RECEIVE_SIZE);
	scripted_feed(endpoint->script, message->data + LOOP_RECEIVE_SIZE, fed);
	assert_true(scripted_run(endpoint->script));
	received = fed - scripted_unread(endpoint->script);
	scripted_run_all(endpoint->script);
	send_part(endpoint, message, LOOP_RECEIVE_SIZE + fed, message->length);
	return received / LOOP_RECEIVE_SIZE;
}

/* setting: sbuf_loopcnt */
static void test_sbuf_loopcnt_limits_receives_per_event(void **state)
{
	static const struct {
		const char *set;
		size_t receives;
	} cases[] = {{"1", 1}, {"3", 3}, {"5", 5}, {"0", 8}};
	struct buffer message = large_message(PQ_QUERY, 10 * LOOP_RECEIVE_SIZE);
	struct buffer row = large_message(PQ_DATA_ROW, 10 * LOOP_RECEIVE_SIZE);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		fake_set("sbuf_loopcnt", cases[i].set);
		assert_int_equal(receives_of_one_event(client, &message), cases[i].receives);
		assert_int_equal(receives_of_one_event(server, &row), cases[i].receives);
		send_letters(server, "CZ");
	}
	buffer_free(&message);
	buffer_free(&row);
}

/*
 * A receive that has emptied a small buffer of the kernel is followed by another one: the peer's
 * kernel may have filled it again. Here that one finds the end of the connection.
 */
static void test_receive_that_fills_the_socket_buffer_is_repeated(void **state)
{
	static const struct {
		const char *buffer;
		bool is_repeated;
	} cases[] = {{"0", false}, {"6000", false}, {"4096", true}, {"1", true}};
	struct buffer message = large_message(PQ_QUERY, 5000);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *other = fake_client(pool);

		fake_set("tcp_socket_buffer", cases[i].buffer);
		scripted_feed(other->script, message.data, message.length);
		scripted_end(other->script);
		assert_true(scripted_run(other->script));
		assert_int_equal(is_closed(other), cases[i].is_repeated);
		scripted_run_all(other->script);
		assert_closed(other);
		if (is_closed(server) || server->link->state != SERVER_IDLE)
			server = fake_server(pool);
	}
	buffer_free(&message);
}

/*
 * The server rejects a large message before its end. The rest of the message is still
 * forwarded.
 */
static void test_server_stays_paired_until_the_rejected_message_ends(void **state)
{
	struct buffer message = large_message(PQ_QUERY, 9000);

	(void)state;
	send_part(client, &message, 0, 5000);
	send_letters(server, "EZ");
	assert_received(client, "EZ");
	assert_state(server, SERVER_PAIRED);
	send_part(client, &message, 5000, 9000);
	assert_state(server, SERVER_IDLE);
	assert_state(client, CLIENT_IDLE);
	assert_received_exactly(server, &message);
	buffer_free(&message);
}

/* --- slow receivers ----------------------------------------------------------------------- */

static void test_slow_client_pauses_its_server(void **state)
{
	struct buffer answers = messages_of(FROM_SERVER, "TDDDDDDDDDDCZ");

	(void)state;
	send_letters(client, "Q");
	for (size_t room = 0; room < answers.length; room++) {
		scripted_allow(client->script, room);
		send_part(server, &answers, 0, answers.length);
		assert_int_equal(received_length(client), room);
		assert_true(endpoint_link(server)->stream.paused);
		/*
		 * The server has answered everything, but stays paired until the client has
		 * taken it.
		 */
		assert_state(server, SERVER_PAIRED);
		allow_output(client, SCRIPTED_ANY);
		assert_received_exactly(client, &answers);
		assert_state(server, SERVER_IDLE);
		assert_state(client, CLIENT_IDLE);
		send_letters(client, "Q");
	}
	buffer_free(&answers);
}

static void test_server_is_not_read_while_its_client_is_slow(void **state)
{
	struct buffer row = large_message(PQ_DATA_ROW, 100);

	(void)state;
	send_letters(client, "Q");
	scripted_allow(client->script, 10);
	send_part(server, &row, 0, 100);
	for (int i = 0; i < 50; i++)
		send_part(server, &row, 0, 100);
	assert_int_equal(scripted_unread(server->script), 5000);
	assert_int_equal(stream_backlog_length(&endpoint_link(client)->stream), 90);
	scripted_allow(client->script, 50);
	scripted_run_all(server->script);
	assert_int_equal(scripted_unread(server->script), 5000);
	/* Once the backlog is written, reading resumes. */
	scripted_allow(client->script, SCRIPTED_ANY);
	scripted_run_all(server->script);
	assert_int_equal(received_length(client), 5100);
	assert_int_equal(fake_loop.backlogs.used, 0);
	buffer_free(&row);
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_slow_server_pauses_its_client(void **state)
{
	struct buffer requests = messages_of(FROM_CLIENT, "PBDESPBDESQ");

	(void)state;
	for (size_t room = 0; room < requests.length; room++) {
		scripted_allow(server->script, room);
		send_part(client, &requests, 0, requests.length);
		assert_int_equal(received_length(server), room);
		assert_true(endpoint_link(client)->stream.paused);
		send_letters(client, "H");
		assert_int_equal(scripted_unread(client->script), 5);
		allow_output(server, SCRIPTED_ANY);
		scripted_run_all(client->script);
		assert_int_equal(scripted_unread(client->script), 0);
		assert_int_equal(received_length(server), requests.length + 5);
		scripted_forget_output(server->script);
		send_letters(server, "12TDCZ12TDCZCZ");
		assert_state(server, SERVER_IDLE);
		read_letters(client);
	}
	buffer_free(&requests);
}

/*
 * An unsolicited message arrives in pieces after ReadyForQuery. The client receives all of it
 * before its server is unpaired.
 */
static void test_notification_in_pieces_after_the_answer_is_forwarded(void **state)
{
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes);
	letters_write(&bytes, FROM_SERVER, "CZA");
	send_letters(client, "Q");
	for (size_t at = 0, next = bytes.length - 8; at < bytes.length; at = next, next += 4)
		send_bytes(server, bytes.data + at, next - at);
	assert_received_exactly(client, &bytes);
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_false(endpoint_server(server)->dirty);
	buffer_free(&bytes);
}

/*
 * The ParameterStatus or notice before it has made the server dirty, so that it is closed
 * afterwards.
 */
static void test_notice_in_pieces_of_a_dirty_server_is_forwarded_whole(void **state)
{
	struct buffer bytes;
	size_t half;

	(void)state;
	buffer_init(&bytes);
	letters_write(&bytes, FROM_SERVER, "CZ");
	send_letters(client, "Q");
	send_bytes(server, bytes.data, bytes.length);
	assert_state(client, CLIENT_IDLE);
	assert_received_exactly(client, &bytes);
	scripted_forget_output(client->script);
	send_letters(client, "Q");
	letters_write(&bytes, FROM_SERVER, "nN");
	half = bytes.length - 8;
	send_bytes(server, bytes.data, half);
	assert_true(endpoint_server(server)->dirty);
	assert_state(client, CLIENT_PAIRED);
	send_bytes(server, bytes.data + half, bytes.length - half);
	assert_received_exactly(client, &bytes);
	assert_state(client, CLIENT_IDLE);
	assert_closed(server);
	buffer_free(&bytes);
}

static void test_client_is_read_again_after_its_slow_server_was_closed(void **state)
{
	struct endpoint *other = fake_server(pool);

	(void)state;
	send_letters(client, "Q");
	send_letters(other, "G");
	allow_output(other, 5);
	send_letters(client, "dddd");
	assert_true(endpoint_link(client)->stream.paused);
	/* The COPY has failed, and the server is still blocked by the rest of the COPY data. */
	send_letters(other, "EZ");
	assert_state(client, CLIENT_PAIRED);
	send_letters(other, "E");
	assert_closed(other);
	assert_received(client, "GEZ");
	read_letters(server);
	send_letters(client, "cQ");
	assert_received(server, "Q");
	send_letters(server, "TDCZ");
	assert_received(client, "TDCZ");
	assert_state(client, CLIENT_IDLE);
}

/* The server has sent its last answer, but not all of it was forwarded. */
static void test_broken_slow_client_returns_a_finished_server_to_the_pool(void **state)
{
	(void)state;
	send_letters(client, "Q");
	scripted_allow(client->script, 3);
	send_letters(server, "TDCZ");
	break_connection(client);
	assert_closed(client);
	assert_received(server, "Q");
	assert_state(server, SERVER_IDLE);
}

static void test_closed_server_of_a_slow_client_is_reported_after_its_answers(void **state)
{
	(void)state;
	send_letters(client, "Q");
	scripted_allow(client->script, 3);
	send_letters(server, "TD");
	disconnect(server);
	assert_state(client, CLIENT_PAIRED);
	allow_output(client, SCRIPTED_ANY);
	scripted_run_all(server->script);
	fake_turn();
	assert_received(client, "TDE");
	assert_string_equal(client->text, "server conn crashed?");
	assert_closed(client);
	assert_closed(server);
}

/* --- malformed messages ------------------------------------------------------------------- */

static void test_malformed_header_of_a_client_is_reported_in_hex(void **state)
{
	(void)state;
	send_bytes(client, "Q\0\0\0\3select", 11);
	assert_closed_with_error(client, "08P01", "bad packet header: '510000000373656c'");
	assert_state(server, SERVER_IDLE);
	assert_int_equal(received_length(server), 0);
}

static void test_malformed_header_cut_anywhere_is_reported(void **state)
{
	static const uint8_t bytes[] = "Q\xff\xff\xff\xff";

	(void)state;
	for (size_t i = 0; i < 5; i++)
		send_bytes(client, bytes + i, 1);
	assert_closed_with_error(client, "08P01", "bad packet header: '51ffffffff'");
}

static void test_messages_before_a_malformed_header_are_forwarded(void **state)
{
	struct buffer bytes = messages_of(FROM_CLIENT, "Q");

	(void)state;
	buffer_append(&bytes, "Q\0\0\0\0", 5);
	send_buffer(client, &bytes);
	assert_closed_with_error(client, "08P01", "bad packet header: '5100000000'");
	assert_received(server, "Q");
	assert_state(server, SERVER_DRAINING);
}

static void test_malformed_header_of_a_server_closes_both(void **state)
{
	struct buffer bytes = messages_of(FROM_SERVER, "TD");

	(void)state;
	send_letters(client, "Q");
	buffer_append(&bytes, "D\0\0\0\2", 5);
	send_buffer(server, &bytes);
	assert_received(client, "TDE");
	assert_string_equal(client->text, "bad pkt header");
	assert_string_equal(client->sqlstate, "08P01");
	assert_closed(client);
	assert_closed(server);
}

/* The sanitizers check that nothing beyond the received bytes is read. */
static void test_ready_for_query_without_a_body_closes_both(void **state)
{
	struct buffer bytes = large_message(PQ_DATA_ROW, LOOP_RECEIVE_SIZE - 5);

	(void)state;
	writer_end(&bytes, writer_begin(&bytes, PQ_READY_FOR_QUERY));
	assert_int_equal(bytes.length, LOOP_RECEIVE_SIZE);
	send_letters(client, "Q");
	send_buffer(server, &bytes);
	assert_closed(server);
	assert_closed(client);
}

static void test_message_above_max_packet_size_is_refused(void **state)
{
	struct buffer fits = large_message(PQ_QUERY, 1000),
		      row = large_message(PQ_DATA_ROW, 1001);

	(void)state;
	fake_set("max_packet_size", "1000");
	send_buffer(client, &fits);
	assert_received(server, "Q");
	send_buffer(server, &row);
	assert_closed_with_error(client, "08P01", "bad pkt header");
	assert_closed(server);
	client = fake_client(pool);
	fits = large_message(PQ_QUERY, 1001);
	send_buffer(client, &fits);
	assert_received(client, "E");
	assert_closed(client);
}

static void test_message_lengths_that_overflow_are_refused(void **state)
{
	static const char *const lengths[] = {
		"Q\xff\xff\xff\xff", "Q\x80\0\0\0", "Q\x7f\xff\xff\xff", "Q\0\0\0\1"};

	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		send_bytes(client, lengths[i], 5);
		assert_received(client, "E");
		assert_closed(client);
		client = fake_client(pool);
	}
}

/* --- closing ------------------------------------------------------------------------------ */

static void test_terminate_closes_an_idle_client(void **state)
{
	(void)state;
	send_letters(client, "X");
	assert_closed_silently(client);
	assert_state(server, SERVER_IDLE);
	assert_int_equal(received_length(server), 0);
}

static void test_query_before_a_terminate_is_run(void **state)
{
	(void)state;
	send_letters(client, "QX");
	assert_closed_silently(client);
	assert_received(server, "Q");
	assert_state(server, SERVER_DRAINING);
	send_letters(server, "TDCZ");
	assert_state(server, SERVER_IDLE);
}

static void test_idle_client_that_disconnects_takes_no_server(void **state)
{
	struct buffer query = messages_of(FROM_CLIENT, "Q");

	(void)state;
	send_part(client, &query, 0, 7);
	disconnect(client);
	assert_closed_silently(client);
	assert_state(server, SERVER_IDLE);
	buffer_free(&query);
}

static void test_client_broken_during_its_answer_is_closed_and_its_server_drained(void **state)
{
	(void)state;
	send_letters(client, "Q");
	/* Writing to the client fails before its end of file is read. */
	scripted_break(client->script);
	send_letters(server, "TDC");
	assert_closed(client);
	assert_state(server, SERVER_DRAINING);
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
	client = fake_client(pool);
	send_letters(client, "Q");
	scripted_break(client->script);
	send_letters(server, "TDCZ");
	assert_closed(client);
	assert_state(server, SERVER_IDLE);
}

static void test_closed_server_is_reported_after_its_last_messages(void **state)
{
	struct buffer bytes = messages_of(FROM_SERVER, "TDE");

	(void)state;
	send_letters(client, "Q");
	scripted_feed(server->script, bytes.data, bytes.length);
	disconnect(server);
	assert_received(client, "TDEE");
	assert_string_equal(client->text, "server conn crashed?");
	assert_string_equal(client->sqlstate, "08006");
	assert_string_equal(client->severity, "FATAL");
	assert_closed(client);
	buffer_free(&bytes);
}

static void test_server_closed_within_a_message_closes_its_client(void **state)
{
	struct buffer row = large_message(PQ_DATA_ROW, 300);

	(void)state;
	send_letters(client, "Q");
	send_part(server, &row, 0, 100);
	disconnect(server);
	assert_closed(client);
	assert_closed(server);
	buffer_free(&row);
}

static void test_idle_server_that_disconnects_affects_no_client(void **state)
{
	(void)state;
	disconnect(server);
	assert_closed_silently(server);
	assert_state(client, CLIENT_IDLE);
	assert_int_equal(pool_servers(pool), 0);
}

static void test_session_client_that_disconnects_returns_its_server_to_the_pool(void **state)
{
	(void)state;
	send_letters(client, "Q");
	send_letters(server, "TDCZ");
	disconnect(client);
	assert_closed(client);
	assert_state(server, SERVER_IDLE);
}

/* --- idle servers that were already closed ------------------------------------------------ */

static void test_closed_idle_server_is_replaced_by_another_idle_server(void **state)
{
	struct endpoint *other = server;

	(void)state;
	server = fake_server(pool);
	scripted_break(server->script);
	send_letters(client, "PBES");
	assert_closed(server);
	assert_received(other, "PBES");
	send_letters(other, "12DCZ");
	assert_received(client, "12DCZ");
	assert_state(client, CLIENT_IDLE);
}

static void test_server_is_launched_when_all_idle_servers_were_closed(void **state)
{
	struct endpoint *other = server, *fresh;

	(void)state;
	server = fake_server(pool);
	scripted_break(server->script);
	scripted_break(other->script);
	send_letters(client, "Q");
	assert_closed(server);
	assert_closed(other);
	assert_state(client, CLIENT_WAITING);
	fresh = fake_launched();
	assert_non_null(fresh);
	fake_connected(fresh, 0);
	postgres_work(fresh);
	assert_received(client, "TDCZ");
	assert_state(client, CLIENT_IDLE);
}

static void test_server_closed_during_a_query_is_reported(void **state)
{
	(void)state;
	send_letters(client, "Q");
	scripted_break(server->script);
	send_letters(client, "Q");
	assert_closed_with_error(client, "08006", "server connection closed");
	assert_closed(server);
}

static void test_server_closed_within_a_request_is_reported(void **state)
{
	struct buffer message = large_message(PQ_QUERY, 9000);

	(void)state;
	send_part(client, &message, 0, 5000);
	scripted_break(server->script);
	send_part(client, &message, 5000, 9000);
	assert_closed_with_error(client, "08006", "server connection closed");
	buffer_free(&message);
}

/*
 * Earlier statements of the transaction were run by this server: no other server can continue.
 */
static void test_server_closed_in_a_transaction_is_reported(void **state)
{
	(void)state;
	send_letters(client, "Q");
	send_letters(server, "C>");
	assert_received(client, "C>");
	scripted_break(server->script);
	send_letters(client, "Q");
	assert_closed_with_error(client, "08006", "server connection closed");
}

static void test_large_message_to_a_closed_idle_server_goes_to_another(void **state)
{
	struct buffer message = large_message(PQ_QUERY, 200000);
	struct endpoint *other = server;

	(void)state;
	server = fake_server(pool);
	scripted_break(server->script);
	send_part(client, &message, 0, message.length);
	assert_received_exactly(other, &message);
	send_letters(other, "CZ");
	assert_received(client, "CZ");
	assert_state(client, CLIENT_IDLE);
	buffer_free(&message);
}

/* --- too many requests -------------------------------------------------------------------- */

static void test_client_is_paused_when_too_many_requests_are_unanswered(void **state)
{
	struct buffer syncs, answers;

	(void)state;
	buffer_init(&syncs);
	buffer_init(&answers);
	for (int i = 0; i < REQUESTS_MAX + 10; i++)
		letters_write(&syncs, FROM_CLIENT, "S");
	for (int i = 0; i < REQUESTS_MAX / 2; i++)
		letters_write(&answers, FROM_SERVER, "Z");
	send_part(client, &syncs, 0, syncs.length);
	scripted_run_all(client->script);
	assert_true(endpoint_client(client)->ring_full);
	assert_int_equal(endpoint_server(server)->requests.count, REQUESTS_MAX);
	assert_int_equal(received_length(server), REQUESTS_MAX * 5);
	/* Reading does not resume after one answer, but after half of them. */
	send_part(server, &answers, 0, 6);
	assert_true(endpoint_client(client)->ring_full);
	send_part(server, &answers, 6, answers.length);
	scripted_run_all(client->script);
	assert_false(endpoint_client(client)->ring_full);
	assert_received_exactly(server, &syncs);
	assert_int_equal(endpoint_server(server)->requests.count, REQUESTS_MAX / 2 + 10);
	send_part(server, &answers, 0, answers.length);
	assert_state(server, SERVER_PAIRED);
	send_part(server, &answers, 0, 60);
	assert_state(server, SERVER_IDLE);
	assert_state(client, CLIENT_IDLE);
	assert_int_equal(received_length(client), (REQUESTS_MAX + 10) * 6);
	buffer_free(&syncs);
	buffer_free(&answers);
}

static void test_client_that_disconnects_with_too_many_requests_is_closed(void **state)
{
	struct buffer syncs;

	(void)state;
	buffer_init(&syncs);
	for (int i = 0; i < REQUESTS_MAX + 10; i++)
		letters_write(&syncs, FROM_CLIENT, "S");
	send_buffer(client, &syncs);
	assert_true(endpoint_client(client)->ring_full);
	disconnect(client);
	assert_closed(client);
	assert_state(server, SERVER_DRAINING);
	for (int i = 0; i < REQUESTS_MAX / 16; i++)
		send_letters(server, "ZZZZZZZZZZZZZZZZ");
	assert_state(server, SERVER_IDLE);
}

static void test_server_closed_with_too_many_requests_is_reported(void **state)
{
	struct buffer syncs;

	(void)state;
	buffer_init(&syncs);
	for (int i = 0; i < REQUESTS_MAX + 10; i++)
		letters_write(&syncs, FROM_CLIENT, "S");
	send_buffer(client, &syncs);
	disconnect(server);
	assert_closed_with_error(client, "08006", "server conn crashed?");
}

/* --- statistics --------------------------------------------------------------------------- */

static void test_queries_and_transactions_are_counted_and_timed(void **state)
{
	const struct totals *totals = &pool->stats.current;
	struct buffer requests = messages_of(FROM_CLIENT, "QPBESQ");
	struct buffer answers = messages_of(FROM_SERVER, "C>12DC>CZ");

	(void)state;
	send_letters(client, "Q");
	fake_advance(USEC_PER_SEC);
	send_letters(server, "C>");
	fake_advance(2 * USEC_PER_SEC);
	send_letters(client, "PBES");
	fake_advance(3 * USEC_PER_SEC);
	send_letters(server, "12DC>");
	send_letters(client, "Q");
	send_letters(server, "CZ");
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

static void test_lone_flush_and_late_copy_data_are_not_counted_as_queries(void **state)
{
	const struct totals *totals = &pool->stats.current;

	(void)state;
	send_letters(client, "H");
	send_letters(client, "dc");
	assert_int_equal(totals->queries, 0);
	assert_int_equal(totals->transactions, 0);
	assert_int_equal(endpoint_client(client)->query_start, 0);
	assert_state(server, SERVER_IDLE);
}

static void test_pipelined_queries_are_timed_as_one(void **state)
{
	(void)state;
	send_letters(client, "QQQ");
	send_letters(server, "CZCZCZ");
	assert_int_equal(pool->stats.current.queries, 1);
	assert_int_equal(pool->stats.current.transactions, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_session, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(requests_cut_anywhere_are_forwarded_unchanged),
		TEST(answers_cut_anywhere_are_forwarded_unchanged),
		SESSION_TEST(requests_cut_anywhere_are_forwarded_unchanged),
		TEST(single_bytes_are_forwarded_unchanged),
		TEST(incomplete_answer_is_forwarded_at_once),
		TEST(thousand_small_messages_in_one_receive_are_forwarded),
		TEST(dropped_messages_do_not_disturb_their_neighbours),
		TEST(incomplete_message_takes_no_server),
		TEST(incomplete_message_after_a_query_does_not_keep_the_server),
		TEST(message_up_to_pkt_buf_is_gathered_before_a_server_is_taken),
		TEST(longer_message_takes_a_server_after_pkt_buf_bytes),
		TEST(large_messages_are_forwarded_without_being_gathered),
		TEST(sbuf_loopcnt_limits_receives_per_event),
		TEST(receive_that_fills_the_socket_buffer_is_repeated),
		TEST(server_stays_paired_until_the_rejected_message_ends),
		TEST(slow_client_pauses_its_server),
		TEST(server_is_not_read_while_its_client_is_slow),
		TEST(slow_server_pauses_its_client),
		TEST(notification_in_pieces_after_the_answer_is_forwarded),
		TEST(notice_in_pieces_of_a_dirty_server_is_forwarded_whole),
		TEST(client_is_read_again_after_its_slow_server_was_closed),
		TEST(broken_slow_client_returns_a_finished_server_to_the_pool),
		TEST(closed_server_of_a_slow_client_is_reported_after_its_answers),
		TEST(malformed_header_of_a_client_is_reported_in_hex),
		TEST(malformed_header_cut_anywhere_is_reported),
		TEST(messages_before_a_malformed_header_are_forwarded),
		TEST(malformed_header_of_a_server_closes_both),
		TEST(ready_for_query_without_a_body_closes_both),
		TEST(message_above_max_packet_size_is_refused),
		TEST(message_lengths_that_overflow_are_refused),
		TEST(terminate_closes_an_idle_client),
		TEST(query_before_a_terminate_is_run),
		TEST(idle_client_that_disconnects_takes_no_server),
		TEST(client_broken_during_its_answer_is_closed_and_its_server_drained),
		TEST(closed_server_is_reported_after_its_last_messages),
		TEST(server_closed_within_a_message_closes_its_client),
		TEST(idle_server_that_disconnects_affects_no_client),
		SESSION_TEST(session_client_that_disconnects_returns_its_server_to_the_pool),
		TEST(closed_idle_server_is_replaced_by_another_idle_server),
		TEST(server_is_launched_when_all_idle_servers_were_closed),
		TEST(server_closed_during_a_query_is_reported),
		TEST(server_closed_within_a_request_is_reported),
		TEST(server_closed_in_a_transaction_is_reported),
		TEST(large_message_to_a_closed_idle_server_goes_to_another),
		TEST(client_is_paused_when_too_many_requests_are_unanswered),
		TEST(client_that_disconnects_with_too_many_requests_is_closed),
		TEST(server_closed_with_too_many_requests_is_reported),
		TEST(queries_and_transactions_are_counted_and_timed),
		TEST(lone_flush_and_late_copy_data_are_not_counted_as_queries),
		TEST(pipelined_queries_are_timed_as_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
