/* SPDX-License-Identifier: ISC */
/*
 * Names of prepared statements of clients, with synthesized answers, failed batches and closed
 * servers in between.
 */
#include "support/fakes/fake_pool.h"
#include "support/messages/statement_messages.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;
static struct endpoint *client, *server;
static struct buffer outgoing; /* messages that the client sends next */

static int start(void **state)
{
	(void)state;
	/* Otherwise a server is asked what texts have done that are too long to be read. */
	pool = fake_start_pool("max_prepared_statements = 10\nsession_state = ignore\n");
	client = fake_client(pool);
	server = fake_server(pool);
	buffer_init(&outgoing);
	return 0;
}

/* --- messages ----------------------------------------------------------------------------- */

/* The client sends the prepared messages, followed by these. */
static void send_with(const char *letters)
{
	letters_write(&outgoing, FROM_CLIENT, letters);
	send_buffer(client, &outgoing);
}

/* The statement of the last Bind that the server received. */
static const char *last_bound(void)
{
	const char *bound = NULL;
	size_t length, total;
	const uint8_t *output = scripted_output(server->script, &length);
	char letter;

	for (size_t at = 0; (letter = letters_read(output + at, length - at, &total)) != 0;
		at += total) {
		if (letter == PQ_BIND)
			bound = (const char *)output + at + 5 +
				1; /* after the empty portal name */
	}
	return bound;
}

/* The text of the last Parse that the server received. */
static const char *last_parsed(void)
{
	const char *parsed = NULL;
	size_t length, total;
	const uint8_t *output = scripted_output(server->script, &length);
	char letter;

	for (size_t at = 0; (letter = letters_read(output + at, length - at, &total)) != 0;
		at += total) {
		if (letter == PQ_PARSE)
			parsed = (const char *)output + at + 5;
	}
	return parsed ? parsed + strlen(parsed) + 1 : NULL;
}

/* The statement of the last Close that the server received. */
static const char *last_closed(void)
{
	const char *closed = NULL;
	size_t length, total;
	const uint8_t *output = scripted_output(server->script, &length);
	char letter;

	for (size_t at = 0; (letter = letters_read(output + at, length - at, &total)) != 0;
		at += total) {
		if (letter == PQ_CLOSE)
			closed = (const char *)output + at + 5 + 1; /* after the kind */
	}
	return closed;
}

/* The client has a statement `s`, which is the first one on the server. */
static void prepare_s(void)
{
	message_parse(&outgoing, "s", "one");
	message_bind(&outgoing, "s", 0);
	send_with("ES");
	assert_received(server, "PBES");
	assert_string_equal(last_bound(), "PGBOUNCER_1");
	send_letters(server, "12CZ");
	assert_received(client, "12CZ");
}

/* --- synthesized answers ------------------------------------------------------------------ */

static void test_synthesized_answer_after_a_copy_is_sent(void **state)
{
	(void)state;
	prepare_s();
	message_parse(&outgoing, "", "copy");
	message_bind(&outgoing, "", 0);
	letters_write(&outgoing, FROM_CLIENT, "Edc");
	message_close(&outgoing, "s");
	message_parse(&outgoing, "", "more");
	send_with("S");
	send_letters(server, "12GC1Z");
	assert_received(client, "12GC31Z");
	assert_state(client, CLIENT_IDLE);
}

static void test_synthesized_answer_after_a_stray_copy_done_is_sent(void **state)
{
	(void)state;
	prepare_s();
	letters_write(&outgoing, FROM_CLIENT, "Qc");
	message_close(&outgoing, "s");
	message_parse(&outgoing, "", "more");
	send_with("S");
	send_letters(server, "TDCZ1Z");
	assert_received(client, "TDCZ31Z");
	assert_state(client, CLIENT_IDLE);
}

static void test_close_is_answered_once_when_its_server_was_closed(void **state)
{
	struct endpoint *other = server;

	(void)state;
	server = fake_server(pool);
	prepare_s();
	scripted_break(server->script);
	message_close(&outgoing, "s");
	message_parse(&outgoing, "s", "two");
	send_with("S");
	assert_received(client, "3");
	assert_closed(server);
	assert_received(other, "PS");
	send_letters(other, "1Z");
	assert_received(client, "1Z");
}

/* --- batches that fail -------------------------------------------------------------------- */

/* The changes of the failed batch are undone; those of the next batch apply. */
static void test_name_is_changed_by_the_batch_after_a_failed_one(void **state)
{
	(void)state;
	prepare_s();
	letters_write(&outgoing, FROM_CLIENT, "E");
	message_close(&outgoing, "s");
	message_parse(&outgoing, "s", "two");
	letters_write(&outgoing, FROM_CLIENT, "S");
	message_close(&outgoing, "s");
	message_parse(&outgoing, "s", "three");
	send_with("H");
	send_letters(server, "EZ1");
	assert_received(client, "EZ31");
	message_bind(&outgoing, "s", 0);
	send_with("ES");
	assert_string_equal(last_bound(), "PGBOUNCER_3");
}

static void test_name_is_restored_when_both_batches_have_failed(void **state)
{
	(void)state;
	prepare_s();
	for (int i = 0; i < 2; i++) {
		letters_write(&outgoing, FROM_CLIENT, "E");
		message_close(&outgoing, "s");
		message_parse(&outgoing, "s", i ? "three" : "two");
		letters_write(&outgoing, FROM_CLIENT, "S");
	}
	send_with("");
	send_letters(server, "EZEZ");
	assert_received(client, "EZEZ");
	message_bind(&outgoing, "s", 0);
	send_with("ES");
	assert_string_equal(last_bound(), "PGBOUNCER_1");
}

static void test_name_that_did_not_exist_is_not_restored(void **state)
{
	(void)state;
	letters_write(&outgoing, FROM_CLIENT, "E");
	message_parse(&outgoing, "s", "one");
	message_close(&outgoing, "s");
	send_with("S");
	send_letters(server, "EZ");
	assert_received(client, "EZ");
	read_letters(server);
	message_bind(&outgoing, "s", 0);
	send_with("ES");
	assert_received(server, "DES"); /* Describe of an impossible name, to get an error */
}

/* The statement used longest ago is closed, not the one prepared first. */
static void test_least_recently_used_statement_is_closed(void **state)
{
	static const char *const names[] = {"a", "b"};

	(void)state;
	fake_set("max_prepared_statements", "2");
	for (size_t i = 0; i < COUNT(names); i++) {
		message_parse(&outgoing, names[i], names[i]);
		send_with("S");
		send_letters(server, "1Z");
	}
	message_bind(&outgoing, "a", 0);
	send_with("ES");
	send_letters(server, "2CZ");
	read_letters(server);
	message_parse(&outgoing, "c", "c");
	send_with("S");
	assert_received(server, "PCS");
	assert_string_equal(last_closed(), "PGBOUNCER_2");
	send_letters(server, "13Z");
}

/* Within its own batch a Parse counts at once: if it fails the rest is skipped. */
static void test_statement_of_the_same_batch_is_not_prepared_again(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		const char name[] = {(char)('a' + i), '\0'};

		message_parse(&outgoing, name, name);
		message_bind(&outgoing, name, 0);
		send_with("E");
		message_bind(&outgoing, name, 0);
		send_with("ES");
		assert_received(server, "PBEBES");
		send_letters(server, "12C2CZ");
		assert_received(client, "12C2CZ");
	}
}

/* The result of a Parse in an earlier batch is not known yet. */
static void test_statement_of_an_unanswered_batch_is_prepared_again(void **state)
{
	(void)state;
	message_parse(&outgoing, "s", "one");
	send_with("S");
	message_bind(&outgoing, "s", 0);
	send_with("ES");
	assert_received(server, "PSCPBES");
	send_letters(server, "1Z312CZ");
	assert_received(client, "1Z2CZ");
}

/*
 * The Close was skipped with its batch; the first message for the name after that is a Parse.
 */
static void test_parse_after_a_failed_batch_sets_the_name(void **state)
{
	(void)state;
	prepare_s();
	letters_write(&outgoing, FROM_CLIENT, "E");
	message_close(&outgoing, "s");
	letters_write(&outgoing, FROM_CLIENT, "S");
	message_parse(&outgoing, "s", "two");
	send_with("S");
	send_letters(server, "EZ1Z");
	assert_received(client, "EZ1Z");
	message_bind(&outgoing, "s", 0);
	send_with("ES");
	assert_string_equal(last_bound(), "PGBOUNCER_2");
}

/* The client has an unnamed statement of this text. */
static void prepare_unnamed(void)
{
	message_parse(&outgoing, "", "one");
	send_with("S");
	assert_received(server, "PS");
	send_letters(server, "1Z");
	assert_received(client, "1Z");
}

/* The client's unnamed statement still has that text, whatever the server has. */
static void assert_unnamed_is_one(void)
{
	read_letters(server);
	message_bind(&outgoing, "", 0);
	send_with("ES");
	assert_received(server, "PBES");
	assert_string_equal(last_parsed(), "one");
}

static void test_unnamed_statement_is_restored_after_a_failed_batch(void **state)
{
	(void)state;
	prepare_unnamed();
	letters_write(&outgoing, FROM_CLIENT, "E");
	message_parse(&outgoing, "", "two");
	message_parse(&outgoing, "", "three");
	send_with("S");
	send_letters(server, "EZ");
	assert_received(client, "EZ");
	assert_unnamed_is_one();
}

/* A Query would drop the unnamed statement, but this one is skipped. */
static void test_unnamed_statement_survives_a_skipped_query(void **state)
{
	(void)state;
	prepare_unnamed();
	letters_write(&outgoing, FROM_CLIENT, "E");
	message_parse(&outgoing, "", "two");
	send_with("QS");
	send_letters(server, "EZ");
	assert_received(client, "EZ");
	assert_unnamed_is_one();
}

/* The server skips the Parse behind the data of a COPY that has failed. */
static void test_unnamed_statement_survives_a_failed_copy(void **state)
{
	(void)state;
	prepare_unnamed();
	send_letters(client, "E");
	send_letters(server, "G");
	assert_received(client, "G");
	letters_write(&outgoing, FROM_CLIENT, "dc");
	message_parse(&outgoing, "", "two");
	send_with("ES");
	send_letters(server, "EZ");
	assert_received(client, "EZ");
	assert_unnamed_is_one();
}

/*
 * The client's own Parse failed after another query: PostgreSQL has dropped the previous
 * statement by then.
 */
static void test_unnamed_statement_is_dropped_by_a_failed_parse(void **state)
{
	(void)state;
	prepare_unnamed();
	letters_write(&outgoing, FROM_CLIENT, "E");
	message_parse(&outgoing, "", "broken");
	send_with("S");
	send_letters(server, "CEZ");
	assert_received(client, "CEZ");
	read_letters(server);
	message_bind(&outgoing, "", 0);
	send_with("ES");
	assert_received(server, "DES"); /* a Describe, to get an error */
}

/* --- long unnamed statements -------------------------------------------------------------- */

/* The memory for statements in these tests; one client may use a quarter of it. */
enum { MEMORY = 1000000, KEPT = 200000, NOT_KEPT = 300000 };

static char long_text[NOT_KEPT + 1];

/* The client sends Parse and Sync of an unnamed statement of this length. */
static void parse_long_unnamed(size_t length)
{
	fake_set("max_prepared_memory", "1000000");
	memset(long_text, 'x', length);
	long_text[length] = '\0';
	message_parse(&outgoing, "", long_text);
	send_with("S");
	assert_received(server, "PS");
	send_letters(server, "1Z");
	assert_received(client, "1Z");
	scripted_forget_output(server->script);
	server->read_offset = server->answered_offset = 0;
}

/* The client sends Bind, Execute and Sync; the server gets these messages for them. */
static void bind_unnamed(const char *expected)
{
	message_bind(&outgoing, "", 0);
	send_with("ES");
	assert_received(server, expected);
}

static void assert_server_is_returned(void)
{
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
}

static void assert_server_stays(void)
{
	assert_ptr_equal(client->link->peer, server->link);
}

static void test_long_unnamed_statement_is_prepared_again_behind_its_sync(void **state)
{
	(void)state;
	parse_long_unnamed(KEPT);
	assert_server_is_returned();
	endpoint_server(server)->unnamed = 0; /* another client has replaced it */
	bind_unnamed("PBES");
	assert_string_equal(last_parsed(), long_text);
}

static void test_server_stays_for_the_bind_of_a_statement_that_is_not_kept(void **state)
{
	(void)state;
	parse_long_unnamed(NOT_KEPT);
	assert_server_stays();
	message_describe(&outgoing, "");
	send_with("S");
	assert_received(server, "DS");
	send_letters(server, "tnZ");
	assert_server_stays();
	bind_unnamed("BES");
	send_letters(server, "2CZ");
	assert_server_is_returned();
}

static void test_statement_that_arrives_in_pieces_is_kept_too(void **state)
{
	const size_t piece = 50000;
	size_t at = 0;
	struct buffer whole;

	(void)state;
	fake_set("max_prepared_memory", "1000000");
	memset(long_text, 'x', KEPT);
	long_text[KEPT] = '\0';
	buffer_init(&whole);
	message_parse(&whole, "", long_text);
	letters_write(&whole, FROM_CLIENT, "S");
	for (; at < whole.length; at += piece) {
		const size_t left = whole.length - at;

		buffer_append(&outgoing, whole.data + at, left < piece ? left : piece);
		send_buffer(client, &outgoing);
	}
	buffer_free(&whole);
	assert_received(server, "PS");
	send_letters(server, "1Z");
	assert_server_is_returned();
	endpoint_server(server)->unnamed = 0;
	bind_unnamed("PBES");
}

/* Half of the memory is for named statements, a Parse of which fails without room. */
static void test_long_unnamed_statements_leave_room_for_named_ones(void **state)
{
	(void)state;
	prepare_s();
	fake_registry.statements.bytes += MEMORY / 2;
	parse_long_unnamed(KEPT);
	assert_server_stays();
	bind_unnamed("BES");
	send_letters(server, "2CZ");
	fake_registry.statements.bytes -= MEMORY / 2;
	assert_server_is_returned();
}

static void test_bind_in_the_batch_of_its_long_parse_returns_the_server(void **state)
{
	(void)state;
	fake_set("max_prepared_memory", "1000000");
	memset(long_text, 'x', NOT_KEPT);
	long_text[NOT_KEPT] = '\0';
	message_parse(&outgoing, "", long_text);
	message_bind(&outgoing, "", 0);
	send_with("ES");
	send_letters(server, "12CZ");
	assert_server_is_returned();
	scripted_forget_output(server->script);
	server->read_offset = server->answered_offset = 0;
}

static void test_server_does_not_stay_for_a_statement_that_was_replaced(void **state)
{
	static const char *const enders[] = {"Q", "PS", "QPS"};

	(void)state;
	for (size_t i = 0; i < COUNT(enders); i++) {
		parse_long_unnamed(NOT_KEPT);
		assert_server_stays();
		letters_write(&outgoing, FROM_CLIENT, enders[i]);
		send_buffer(client, &outgoing);
		send_letters(server, i == 0 ? "CZ" : i == 1 ? "1Z" : "CZ1Z");
		assert_server_is_returned();
		read_letters(server);
		read_letters(client);
	}
}

static void test_server_does_not_stay_for_a_long_parse_that_failed(void **state)
{
	(void)state;
	fake_set("max_prepared_memory", "1000000");
	memset(long_text, 'x', NOT_KEPT);
	long_text[NOT_KEPT] = '\0';
	message_parse(&outgoing, "", long_text);
	send_with("S");
	send_letters(server, "EZ");
	assert_server_is_returned();
	scripted_forget_output(server->script);
	server->read_offset = server->answered_offset = 0;
}

static void test_server_that_stays_for_a_bind_outlives_its_client(void **state)
{
	(void)state;
	parse_long_unnamed(NOT_KEPT);
	disconnect(client);
	assert_closed(client);
	assert_state(server, SERVER_IDLE);
	assert_false(endpoint_server(server)->awaits_bind);
}

static void test_client_blocked_by_a_synthesized_answer_is_not_read(void **state)
{
	(void)state;
	prepare_s();
	send_letters(client, "Q");
	send_letters(server, "C>");
	assert_received(client, "C>");
	scripted_allow(client->script, 3);
	message_close(&outgoing, "s");
	send_with("H");
	assert_true(endpoint_link(client)->stream.paused);
	allow_output(client, SCRIPTED_ANY);
	assert_received(client, "3");
	assert_false(endpoint_link(client)->stream.paused);
}

static void test_no_synthesized_answer_is_sent_within_a_notification(void **state)
{
	struct buffer notification;

	(void)state;
	buffer_init(&notification);
	letters_write(&notification, FROM_SERVER, "A");
	prepare_s();
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "C>");
	assert_received(client, "C>");
	send_bytes(server, notification.data, 8);
	message_close(&outgoing, "s");
	send_with("H");
	assert_received(client, "3");
	send_bytes(server, notification.data + 8, notification.length - 8);
	assert_received(client, "A");
	send_letters(client, "S");
	send_letters(server, "Z");
	assert_received(client, "Z");
	assert_state(client, CLIENT_IDLE);
	buffer_free(&notification);
}

static void test_deallocate_all_cut_anywhere_is_recognized(void **state)
{
	static const char *const tags[] = {"DEALLOCATE ALL", "DISCARD ALL"};
	struct buffer answer;

	(void)state;
	buffer_init(&answer);
	for (size_t i = 0; i < COUNT(tags); i++) {
		for (size_t cut = 1; cut < 5 + strlen(tags[i]) + 1; cut++) {
			/*
			 * The client had no statement of that name, or this Parse would close
			 * the client.
			 */
			message_parse(&outgoing, "s", "one");
			send_with("SQ");
			assert_received(server, "PSQ");
			send_letters(server, "1Z");
			assert_received(client, "1Z");
			buffer_clear(&answer);
			writer_command_complete(&answer, tags[i]);
			send_bytes(server, answer.data, cut);
			send_bytes(server, answer.data + cut, answer.length - cut);
			send_letters(server, "Z");
			assert_received(client, "CZ");
		}
	}
	buffer_free(&answer);
}

/* --- errors of stale plans ---------------------------------------------------------------- */

static void describe(char kind, const char *name)
{
	const size_t mark = writer_begin(&outgoing, PQ_DESCRIBE);

	writer_byte(&outgoing, (uint8_t)kind);
	writer_string(&outgoing, name);
	writer_end(&outgoing, mark);
}

/* The statement was deallocated on the server, for example by a function. */
static void test_deallocated_statement_is_prepared_again(void **state)
{
	(void)state;
	prepare_s();
	message_bind(&outgoing, "s", 0);
	send_with("ES");
	assert_received(server, "BES");
	send_error(server, "26000", "prepared statement \"PGBOUNCER_1\" does not exist");
	send_letters(server, "Z");
	assert_received(server, "CPBES");
	send_letters(server, "312CZ");
	assert_received(client, "2CZ");
}

/* A Parse with a synthesized answer is part of the replayed batch. */
static void test_batch_with_a_synthesized_parse_answer_is_replayed(void **state)
{
	struct endpoint *other = fake_client(pool);
	struct buffer answer;

	(void)state;
	buffer_init(&answer);
	prepare_s();
	message_parse(&outgoing, "t", "two");
	letters_write(&outgoing, FROM_CLIENT, "S");
	send_buffer(other, &outgoing);
	send_letters(server, "1Z");
	read_letters(server);
	message_bind(&outgoing, "s", 0);
	letters_write(&outgoing, FROM_CLIENT, "E");
	message_parse(&outgoing, "u", "two");
	send_with("S");
	assert_received(server, "BES");
	message_stale_plan_error(&answer);
	letters_write(&answer, FROM_SERVER, "Z");
	send_buffer(server, &answer);
	assert_received(server, "CPBECPS");
	send_letters(server, "312C31Z");
	assert_received(client, "2C1Z");
}

/*
 * A client that remembers columns must learn that they changed, unless the batch asks for them
 * anyway.
 */
static void test_changed_columns_are_reported_unless_the_batch_describes_them(void **state)
{
	struct buffer answer;

	(void)state;
	buffer_init(&answer);
	prepare_s();
	describe('S', "s");
	send_with("S");
	send_letters(server, "tTZ");
	assert_received(client, "tTZ");
	read_letters(server);
	message_bind(&outgoing, "s", 0);
	describe('P', "");
	send_with("ES");
	assert_received(server, "BDES");
	message_stale_plan_error(&answer);
	letters_write(&answer, FROM_SERVER, "Z");
	send_buffer(server, &answer);
	assert_received(server, "CPBDES");
	send_letters(server, "312TCZ");
	assert_received(client, "2TCZ");
	message_bind(&outgoing, "s", 0);
	send_with("ES");
	message_stale_plan_error(&answer);
	letters_write(&answer, FROM_SERVER, "Z");
	send_buffer(server, &answer);
	assert_received(client, "EZ");
}

/* The beginning of a message of this total size with a body of zeros. */
static void begin_message(struct buffer *out, uint8_t type, uint32_t total, uint32_t there)
{
	buffer_clear(out);
	writer_byte(out, type);
	writer_int32(out, total - 1);
	memset(buffer_extend(out, there - 5), 0, there - 5);
}

/*
 * A description is held back because an error may follow. A description that is too long to be
 * held is forwarded as it arrives, and uses no memory.
 */
static void test_long_description_is_forwarded_without_waiting_for_an_error(void **state)
{
	enum { DESCRIPTION = 30000, PIECE = 60000, PIECES = 20 };
	struct buffer message;
	size_t length;

	(void)state;
	prepare_s();
	message_describe(&outgoing, "s");
	send_with("S");
	scripted_forget_output(client->script);
	client->read_offset = client->answered_offset = 0;
	buffer_init(&message);
	begin_message(&message, PQ_PARAMETER_DESCRIPTION, DESCRIPTION, DESCRIPTION);
	send_buffer(server, &message);
	begin_message(&message, PQ_ERROR_RESPONSE, PIECE * PIECES, PIECE);
	send_buffer(server, &message);
	assert_in_range(server->link->held_length, 0, 65536);
	for (int i = 1; i < PIECES; i++) {
		buffer_clear(&message);
		memset(buffer_extend(&message, PIECE), 0, PIECE);
		send_buffer(server, &message);
		assert_in_range(server->link->held_length, 0, 65536);
	}
	buffer_free(&message);
	scripted_output(client->script, &length);
	assert_int_equal(length, DESCRIPTION + PIECE * PIECES);
	scripted_forget_output(client->script);
	client->read_offset = client->answered_offset = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(least_recently_used_statement_is_closed),
		TEST(statement_of_the_same_batch_is_not_prepared_again),
		TEST(statement_of_an_unanswered_batch_is_prepared_again),
		TEST(parse_after_a_failed_batch_sets_the_name),
		TEST(unnamed_statement_is_restored_after_a_failed_batch),
		TEST(unnamed_statement_survives_a_skipped_query),
		TEST(unnamed_statement_survives_a_failed_copy),
		TEST(unnamed_statement_is_dropped_by_a_failed_parse),
		TEST(long_unnamed_statement_is_prepared_again_behind_its_sync),
		TEST(server_stays_for_the_bind_of_a_statement_that_is_not_kept),
		TEST(statement_that_arrives_in_pieces_is_kept_too),
		TEST(long_unnamed_statements_leave_room_for_named_ones),
		TEST(bind_in_the_batch_of_its_long_parse_returns_the_server),
		TEST(server_does_not_stay_for_a_statement_that_was_replaced),
		TEST(server_does_not_stay_for_a_long_parse_that_failed),
		TEST(server_that_stays_for_a_bind_outlives_its_client),
		TEST(client_blocked_by_a_synthesized_answer_is_not_read),
		TEST(deallocated_statement_is_prepared_again),
		TEST(batch_with_a_synthesized_parse_answer_is_replayed),
		TEST(changed_columns_are_reported_unless_the_batch_describes_them),
		TEST(no_synthesized_answer_is_sent_within_a_notification),
		TEST(deallocate_all_cut_anywhere_is_recognized),
		TEST(long_description_is_forwarded_without_waiting_for_an_error),
		TEST(synthesized_answer_after_a_copy_is_sent),
		TEST(synthesized_answer_after_a_stray_copy_done_is_sent),
		TEST(close_is_answered_once_when_its_server_was_closed),
		TEST(name_is_changed_by_the_batch_after_a_failed_one),
		TEST(name_is_restored_when_both_batches_have_failed),
		TEST(name_that_did_not_exist_is_not_restored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
