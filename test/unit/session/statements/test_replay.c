/* SPDX-License-Identifier: ISC */
/*
 * Replay: which batches are sent again after an error of a stale plan, and which errors are
 * forwarded.
 */
#include "session/statements/replay.h"
#include "support/fakes/fake_pool.h"
#include "support/messages/statement_messages.h"

static struct pool *pool;
static struct endpoint *client, *server;
static struct buffer outgoing; /* messages that the next call sends */

static void add_messages(const char *letters)
{
	letters_write(&outgoing, FROM_CLIENT, letters);
}

/*
 * The client has a statement `s`, which the server knows; the client has not asked for its
 * columns.
 */
static int start(void **state)
{
	(void)state;
	pool = fake_start_pool("max_prepared_statements = 10\n");
	client = fake_client(pool);
	server = fake_server(pool);
	buffer_init(&outgoing);
	message_parse(&outgoing, "s", "one");
	add_messages("S");
	send_buffer(client, &outgoing);
	assert_received(server, "PS");
	send_letters(server, "1Z");
	assert_received(client, "1Z");
	return 0;
}

/* --- messages ----------------------------------------------------------------------------- */

static void add_batch(uint32_t parameter)
{
	message_bind(&outgoing, "s", parameter);
	add_messages("ES");
}

static void send_batch(void)
{
	add_batch(0);
	send_buffer(client, &outgoing);
}

static void send_stale_plan_error(void)
{
	struct buffer error;

	buffer_init(&error);
	message_stale_plan_error(&error);
	send_buffer(server, &error);
}

/* The client sends the prepared messages from one offset up to another. Returns the latter. */
static size_t send_range(size_t from, size_t until)
{
	send_bytes(client, outgoing.data + from, until - from);
	return until;
}

/*
 * The statement is prepared anew on the server, and the batch, which starts with a Bind, is
 * sent again.
 */
static void assert_replayed(void)
{
	assert_received(client, "");
	assert_received(server, "CPBES");
	send_letters(server, "312CZ");
	assert_received(client, "2CZ");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
}

static void assert_error_forwarded(void)
{
	assert_received(client, "EZ");
	assert_string_equal(client->sqlstate, "0A000");
	assert_state(client, CLIENT_IDLE);
}

/* --- batches in one read ------------------------------------------------------------------ */

static void test_batch_is_replayed_wherever_its_error_is_cut(void **state)
{
	struct buffer error;

	(void)state;
	buffer_init(&error);
	message_stale_plan_error(&error);
	for (size_t cut = 1; cut < error.length; cut++) {
		send_batch();
		assert_received(server, "BES");
		send_bytes(server, error.data, cut);
		send_bytes(server, error.data + cut, error.length - cut);
		send_letters(server, "Z");
		assert_replayed();
	}
	buffer_free(&error);
}

static void test_batch_is_replayed_once(void **state)
{
	(void)state;
	send_batch();
	assert_received(server, "BES");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_received(server, "CPBES");
	send_letters(server, "31");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_error_forwarded();
}

static void test_batch_with_a_forwarded_answer_is_not_replayed(void **state)
{
	(void)state;
	message_parse(&outgoing, "", "insert");
	message_bind(&outgoing, "", 0);
	add_messages("E");
	add_batch(0);
	send_buffer(client, &outgoing);
	assert_received(server, "PBEBES");
	send_letters(server, "12C");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_received(server, "");
	assert_received(client, "12CEZ");
	assert_state(client, CLIENT_IDLE);
}

/* --- batches in several reads ------------------------------------------------------------- */

static void test_batch_cut_anywhere_is_replayed(void **state)
{
	size_t length = 2;

	(void)state;
	for (size_t cut = 1; cut < length; cut++) {
		add_batch(0);
		length = outgoing.length;
		send_range(0, cut);
		send_range(cut, length);
		buffer_clear(&outgoing);
		assert_received(server, "BES");
		send_stale_plan_error();
		send_letters(server, "Z");
		assert_replayed();
	}
	buffer_free(&outgoing);
}

/* PostgreSQL reports an error at once, and skips messages up to a Sync. */
static void test_incomplete_batch_is_replayed(void **state)
{
	size_t length = 2, bind = 1;

	(void)state;
	for (size_t cut = bind; cut < length; cut++) {
		message_bind(&outgoing, "s", 0);
		bind = outgoing.length;
		add_messages("ES");
		length = outgoing.length;
		if (cut < bind)
			cut = bind;
		send_range(0, cut);
		assert_string_equal(read_letters(server), cut < length - 5 ? "B" : "BE");
		send_stale_plan_error();
		assert_received(server, "S");
		send_letters(server, "Z");
		assert_string_equal(read_letters(server), cut < length - 5 ? "CPB" : "CPBE");
		send_range(cut, length);
		buffer_clear(&outgoing);
		assert_string_equal(read_letters(server), cut < length - 5 ? "ES" : "S");
		send_letters(server, "312CZ");
		assert_received(client, "2CZ");
		assert_state(client, CLIENT_IDLE);
	}
	buffer_free(&outgoing);
}

static void test_client_is_not_read_before_its_batch_is_replayed(void **state)
{
	(void)state;
	message_bind(&outgoing, "s", 0);
	send_buffer(client, &outgoing);
	assert_received(server, "B");
	send_stale_plan_error();
	assert_received(server, "S");
	send_letters(client, "ES");
	assert_received(server, "");
	send_letters(server, "Z");
	assert_received(server, "CPB");
	scripted_run(client->script);
	assert_received(server, "ES");
	send_letters(server, "312CZ");
	assert_received(client, "2CZ");
}

static void test_server_of_a_client_that_disconnects_before_a_replay_is_clean(void **state)
{
	(void)state;
	message_bind(&outgoing, "s", 0);
	send_buffer(client, &outgoing);
	send_stale_plan_error();
	assert_received(server, "BS");
	break_connection(client);
	assert_state(server, SERVER_DRAINING);
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
	assert_received(server, "");
}

/*
 * Sends a batch with a parameter of so many bytes in pieces of so many; its answer is the
 * error.
 */
static void send_long_batch(uint32_t parameter, size_t piece)
{
	add_batch(parameter);
	for (size_t at = 0; at < outgoing.length;)
		at = send_range(
			at, outgoing.length - at < piece ? outgoing.length : at + piece);
	buffer_free(&outgoing);
	assert_received(server, "BES");
	send_stale_plan_error();
	send_letters(server, "Z");
}

static void test_long_parameter_is_replayed(void **state)
{
	(void)state;
	send_long_batch(20000, 4500);
	assert_replayed();
	send_long_batch(REPLAY_KEPT_MAX - 100, 20000);
	assert_replayed();
}

static void test_batch_that_is_too_long_is_not_kept(void **state)
{
	(void)state;
	send_long_batch(REPLAY_KEPT_MAX, 20000);
	assert_error_forwarded();
	assert_in_range(endpoint_server(server)->kept.capacity, 0, REPLAY_KEPT_MAX);
	/* The statement is prepared anew all the same, and the next batch is kept again. */
	send_batch();
	assert_received(server, "CPBES");
	send_letters(server, "312CZ");
	assert_received(client, "2CZ");
	send_batch();
	assert_received(server, "BES");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_replayed();
}

static void test_error_within_a_message_of_the_client_is_forwarded(void **state)
{
	size_t length;

	(void)state;
	message_bind(&outgoing, "s", 0);
	add_messages("E");
	add_batch(20000);
	length = outgoing.length;
	send_range(0, length - 10000);
	assert_received(server, "BE~");
	send_stale_plan_error();
	send_range(length - 10000, length);
	buffer_free(&outgoing);
	send_letters(server, "Z");
	assert_received(server, "BES");
	assert_error_forwarded();
}

static void test_batch_with_an_answered_flush_is_not_replayed(void **state)
{
	(void)state;
	message_parse(&outgoing, "", "insert");
	message_bind(&outgoing, "", 0);
	add_messages("EH");
	send_buffer(client, &outgoing);
	assert_received(server, "PBEH");
	send_letters(server, "12C");
	assert_received(client, "12C");
	send_batch();
	assert_received(server, "BES");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_received(server, "");
	assert_error_forwarded();
}

static void test_batch_begun_in_another_process_is_not_replayed(void **state)
{
	(void)state;
	message_bind(&outgoing, "s", 0);
	send_buffer(client, &outgoing);
	assert_received(server, "B");
	send_letters(server, "2");
	assert_received(client, "2");
	/* As session/takeover/adoption leaves it. */
	endpoint_server(server)->kept_requests = 0;
	assert_int_equal(endpoint_server(server)->batch_progress, BATCH_OPEN);
	send_batch();
	assert_received(server, "BES");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_received(server, "");
	assert_error_forwarded();
}

static void test_copy_data_is_not_kept(void **state)
{
	(void)state;
	add_batch(0);
	add_messages("dd");
	send_buffer(client, &outgoing);
	assert_received(server, "BESdd");
	send_letters(server, "2G");
	for (int i = 0; i < 10; i++)
		send_letters(client, "dddddddddd");
	assert_in_range(endpoint_server(server)->kept.length, 0, 100);
	send_letters(client, "c");
	send_letters(server, "CZ");
	assert_received(client, "2GCZ");
	assert_state(client, CLIENT_IDLE);
}

/* --- several batches ---------------------------------------------------------------------- */

/* Two batches in one or two reads; the second one fails. */
static void send_two_batches(bool in_one_read)
{
	message_parse(&outgoing, "", "first");
	message_bind(&outgoing, "", 0);
	add_messages("ES");
	if (!in_one_read)
		send_buffer(client, &outgoing);
	send_batch();
	assert_received(server, "PBESBES");
}

static void test_last_of_several_batches_is_replayed(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		send_two_batches(i);
		send_letters(server, "12CZ");
		assert_received(client, "12CZ");
		send_stale_plan_error();
		send_letters(server, "Z");
		assert_replayed();
	}
}

static void test_synthesized_answers_before_the_last_batch_are_sent_once(void **state)
{
	(void)state;
	message_parse(&outgoing, "", "first");
	message_bind(&outgoing, "", 0);
	add_messages("ES");
	message_close(&outgoing, "t");
	send_batch();
	assert_received(server, "PBESBES");
	send_letters(server, "12CZ");
	assert_received(client, "12CZ3");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_replayed();
}

static void test_batch_in_a_transaction_is_not_replayed(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		send_two_batches(i);
		send_letters(server, "12C>");
		assert_received(client, "12C>");
		send_stale_plan_error();
		send_letters(server, "!");
		assert_received(client, "E!");
		send_letters(client, "Q");
		send_letters(server, "CZ");
		assert_received(client, "CZ");
		send_batch();
		send_letters(server, "312CZ");
		assert_received(client, "2CZ");
		read_letters(server);
	}
}

static void test_batch_after_a_query_is_replayed_outside_of_a_transaction(void **state)
{
	(void)state;
	add_messages("Q");
	send_batch();
	assert_received(server, "QBES");
	send_letters(server, "CZ");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_received(client, "CZ");
	assert_replayed();
	add_messages("Q");
	send_batch();
	send_letters(server, "C>");
	send_stale_plan_error();
	send_letters(server, "!");
	assert_received(client, "C>E!");
}

static void test_batch_with_later_batches_is_not_replayed(void **state)
{
	(void)state;
	add_batch(0);
	send_batch();
	assert_received(server, "BESBES");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_received(client, "EZ");
	/* What is kept of the second batch must not be sent for the first. */
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_replayed();
}

static void test_incomplete_message_after_a_batch_is_sent_after_its_replay(void **state)
{
	(void)state;
	add_batch(0);
	letters_write(&outgoing, FROM_CLIENT, "Q");
	send_range(0, outgoing.length - 3);
	assert_received(server, "BES");
	send_stale_plan_error();
	send_letters(server, "Z");
	assert_received(server, "CPBES");
	send_range(outgoing.length - 3, outgoing.length);
	buffer_free(&outgoing);
	assert_received(server, "Q");
	send_letters(server, "312CZCZ");
	assert_received(client, "2CZCZ");
	assert_state(client, CLIENT_IDLE);
}

/* --- memory ------------------------------------------------------------------------------- */

static void test_kept_batches_reuse_their_memory(void **state)
{
	const uint8_t *place;

	(void)state;
	send_batch();
	send_letters(server, "2CZ");
	place = endpoint_server(server)->kept.data;
	assert_non_null(place);
	for (int i = 0; i < 100; i++) {
		send_batch();
		send_letters(server, "2CZ");
		assert_ptr_equal(endpoint_server(server)->kept.data, place);
	}
}

static void test_requests_without_a_cached_plan_are_not_kept(void **state)
{
	(void)state;
	buffer_free(&endpoint_server(server)->kept);
	message_parse(&outgoing, "", "one");
	message_bind(&outgoing, "", 0);
	add_messages("ES");
	send_buffer(client, &outgoing);
	send_letters(server, "12CZ");
	send_letters(client, "QH");
	send_letters(server, "CZ");
	send_letters(client, "F");
	send_letters(server, "VZ");
	send_letters(client, "Q");
	send_letters(server, "C>");
	send_batch();
	send_letters(server, "2C>");
	assert_null(endpoint_server(server)->kept.data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(batch_is_replayed_wherever_its_error_is_cut),
		TEST(batch_is_replayed_once),
		TEST(batch_with_a_forwarded_answer_is_not_replayed),
		TEST(batch_cut_anywhere_is_replayed),
		TEST(incomplete_batch_is_replayed),
		TEST(client_is_not_read_before_its_batch_is_replayed),
		TEST(server_of_a_client_that_disconnects_before_a_replay_is_clean),
		TEST(long_parameter_is_replayed),
		TEST(batch_that_is_too_long_is_not_kept),
		TEST(error_within_a_message_of_the_client_is_forwarded),
		TEST(batch_with_an_answered_flush_is_not_replayed),
		TEST(batch_begun_in_another_process_is_not_replayed),
		TEST(copy_data_is_not_kept),
		TEST(last_of_several_batches_is_replayed),
		TEST(synthesized_answers_before_the_last_batch_are_sent_once),
		TEST(batch_in_a_transaction_is_not_replayed),
		TEST(batch_after_a_query_is_replayed_outside_of_a_transaction),
		TEST(batch_with_later_batches_is_not_replayed),
		TEST(incomplete_message_after_a_batch_is_sent_after_its_replay),
		TEST(kept_batches_reuse_their_memory),
		TEST(requests_without_a_cached_plan_are_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
