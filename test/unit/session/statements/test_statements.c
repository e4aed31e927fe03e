/* SPDX-License-Identifier: ISC */
/* Names of prepared statements, where answers, errors and dead servers come between. */
#include "support/fakes/fake_pool.h"
#include "support/messages/statement_messages.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;
static struct actor *client, *server;
static struct buffer words; /* what the client is about to say */

static int start(void **state)
{
	(void)state;
	pool = fake_start_pool("max_prepared_statements = 10\n");
	client = fake_client(pool);
	server = fake_server(pool);
	buffer_init(&words);
	return 0;
}

/* --- what is said ------------------------------------------------------------------------- */

/* These letters behind the words, and all of it is said. */
static void say_with(const char *letters)
{
	letters_write(&words, CLIENT_SPEAKS, letters);
	say_buffer(client, &words);
}

/* The statement that the last Bind which the server heard is for. */
static const char *last_bound(void)
{
	const char *bound = NULL;
	size_t length, total;
	const uint8_t *output = scripted_output(server->script, &length);
	char letter;

	for (size_t at = 0; (letter = letters_read(output + at, length - at, &total)) != 0;
		at += total) {
		if (letter == PQ_BIND)
			bound = (const char *)output + at + 5 + 1; /* behind an empty portal */
	}
	return bound;
}

/* The text of the Parse that the server heard last. */
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

/* The statement that the server was told last to close. */
static const char *last_closed(void)
{
	const char *closed = NULL;
	size_t length, total;
	const uint8_t *output = scripted_output(server->script, &length);
	char letter;

	for (size_t at = 0; (letter = letters_read(output + at, length - at, &total)) != 0;
		at += total) {
		if (letter == PQ_CLOSE)
			closed = (const char *)output + at + 5 + 1; /* behind the kind */
	}
	return closed;
}

/* The client has a statement `s`, which the server knows as the first. */
static void prepare_s(void)
{
	phrase_parse(&words, "s", "one");
	phrase_bind(&words, "s", 0);
	say_with("ES");
	assert_heard(server, "PBES");
	assert_string_equal(last_bound(), "PGBOUNCER_1");
	say(server, "12CZ");
	assert_heard(client, "12CZ");
}

/* --- answers of ours ---------------------------------------------------------------------- */

static void test_what_is_owed_behind_a_copy_is_told(void **state)
{
	(void)state;
	prepare_s();
	phrase_parse(&words, "", "copy");
	phrase_bind(&words, "", 0);
	letters_write(&words, CLIENT_SPEAKS, "Edc");
	phrase_close(&words, "s");
	phrase_parse(&words, "", "more");
	say_with("S");
	say(server, "12GC1Z");
	assert_heard(client, "12GC31Z");
	assert_state(client, CLIENT_IDLE);
}

static void test_what_is_owed_behind_the_end_of_no_copy_is_told(void **state)
{
	(void)state;
	prepare_s();
	letters_write(&words, CLIENT_SPEAKS, "Qc");
	phrase_close(&words, "s");
	phrase_parse(&words, "", "more");
	say_with("S");
	say(server, "TDCZ1Z");
	assert_heard(client, "TDCZ31Z");
	assert_state(client, CLIENT_IDLE);
}

static void test_a_close_is_answered_once_though_its_server_was_dead(void **state)
{
	struct actor *other = server;

	(void)state;
	server = fake_server(pool);
	prepare_s();
	scripted_break(server->script);
	phrase_close(&words, "s");
	phrase_parse(&words, "s", "two");
	say_with("S");
	assert_heard(client, "3");
	assert_gone(server);
	assert_heard(other, "PS");
	say(other, "1Z");
	assert_heard(client, "1Z");
}

/* --- batches that fail -------------------------------------------------------------------- */

/* What it did not do is undone, and what is behind it means what it says. */
static void test_a_name_is_what_the_next_batch_has_made_it(void **state)
{
	(void)state;
	prepare_s();
	letters_write(&words, CLIENT_SPEAKS, "E");
	phrase_close(&words, "s");
	phrase_parse(&words, "s", "two");
	letters_write(&words, CLIENT_SPEAKS, "S");
	phrase_close(&words, "s");
	phrase_parse(&words, "s", "three");
	say_with("H");
	say(server, "EZ1");
	assert_heard(client, "EZ31");
	phrase_bind(&words, "s", 0);
	say_with("ES");
	assert_string_equal(last_bound(), "PGBOUNCER_3");
}

static void test_a_name_is_what_it_was_when_both_batches_have_failed(void **state)
{
	(void)state;
	prepare_s();
	for (int i = 0; i < 2; i++) {
		letters_write(&words, CLIENT_SPEAKS, "E");
		phrase_close(&words, "s");
		phrase_parse(&words, "s", i ? "three" : "two");
		letters_write(&words, CLIENT_SPEAKS, "S");
	}
	say_with("");
	say(server, "EZEZ");
	assert_heard(client, "EZEZ");
	phrase_bind(&words, "s", 0);
	say_with("ES");
	assert_string_equal(last_bound(), "PGBOUNCER_1");
}

static void test_a_name_that_was_never_there_is_not_given_back(void **state)
{
	(void)state;
	letters_write(&words, CLIENT_SPEAKS, "E");
	phrase_parse(&words, "s", "one");
	phrase_close(&words, "s");
	say_with("S");
	say(server, "EZ");
	assert_heard(client, "EZ");
	hear(server);
	phrase_bind(&words, "s", 0);
	say_with("ES");
	assert_heard(server,
		"DES"); /* Describe of what cannot be there, for an error in its place */
}

/* Not the one that was prepared first. */
static void test_what_was_used_longest_ago_makes_room(void **state)
{
	static const char *const names[] = {"a", "b"};

	(void)state;
	fake_set("max_prepared_statements", "2");
	for (size_t i = 0; i < COUNT(names); i++) {
		phrase_parse(&words, names[i], names[i]);
		say_with("S");
		say(server, "1Z");
	}
	phrase_bind(&words, "a", 0);
	say_with("ES");
	say(server, "2CZ");
	hear(server);
	phrase_parse(&words, "c", "c");
	say_with("S");
	assert_heard(server, "PCS");
	assert_string_equal(last_closed(), "PGBOUNCER_2");
	say(server, "13Z");
}

/* Of its own batch each word is certain: if the Parse fails the rest is skipped. */
static void test_what_a_batch_has_prepared_it_has(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		const char name[] = {(char)('a' + i), '\0'};

		phrase_parse(&words, name, name);
		phrase_bind(&words, name, 0);
		say_with("E");
		phrase_bind(&words, name, 0);
		say_with("ES");
		assert_heard(server, "PBEBES");
		say(server, "12C2CZ");
		assert_heard(client, "12C2CZ");
	}
}

/* Behind the end of another batch nobody knows yet whether there will be one. */
static void test_what_another_batch_may_have_prepared_is_not_counted_on(void **state)
{
	(void)state;
	phrase_parse(&words, "s", "one");
	say_with("S");
	phrase_bind(&words, "s", 0);
	say_with("ES");
	assert_heard(server, "PSCPBES");
	say(server, "1Z312CZ");
	assert_heard(client, "1Z2CZ");
}

/* Its Close was lost with its batch, and the first that is behind that is a Parse of the name. */
static void test_a_name_is_what_the_first_word_behind_a_failure_makes_it(void **state)
{
	(void)state;
	prepare_s();
	letters_write(&words, CLIENT_SPEAKS, "E");
	phrase_close(&words, "s");
	letters_write(&words, CLIENT_SPEAKS, "S");
	phrase_parse(&words, "s", "two");
	say_with("S");
	say(server, "EZ1Z");
	assert_heard(client, "EZ1Z");
	phrase_bind(&words, "s", 0);
	say_with("ES");
	assert_string_equal(last_bound(), "PGBOUNCER_2");
}

/* The client has an unnamed statement, of this text. */
static void prepare_unnamed(void)
{
	phrase_parse(&words, "", "one");
	say_with("S");
	assert_heard(server, "PS");
	say(server, "1Z");
	assert_heard(client, "1Z");
}

/* That is what the client's unnamed statement is still, whatever the server has. */
static void assert_unnamed_is_one(void)
{
	hear(server);
	phrase_bind(&words, "", 0);
	say_with("ES");
	assert_heard(server, "PBES");
	assert_string_equal(last_parsed(), "one");
}

static void test_the_unnamed_is_what_it_was_before_all_that_failed(void **state)
{
	(void)state;
	prepare_unnamed();
	letters_write(&words, CLIENT_SPEAKS, "E");
	phrase_parse(&words, "", "two");
	phrase_parse(&words, "", "three");
	say_with("S");
	say(server, "EZ");
	assert_heard(client, "EZ");
	assert_unnamed_is_one();
}

/* A Query would end it; this one is skipped. */
static void test_the_unnamed_outlives_a_query_that_is_skipped(void **state)
{
	(void)state;
	prepare_unnamed();
	letters_write(&words, CLIENT_SPEAKS, "E");
	phrase_parse(&words, "", "two");
	say_with("QS");
	say(server, "EZ");
	assert_heard(client, "EZ");
	assert_unnamed_is_one();
}

/* Its own Parse has failed, behind another query: PostgreSQL has dropped the one before by then. */
static void test_the_unnamed_ends_with_a_parse_of_another_that_fails(void **state)
{
	(void)state;
	prepare_unnamed();
	letters_write(&words, CLIENT_SPEAKS, "E");
	phrase_parse(&words, "", "broken");
	say_with("S");
	say(server, "CEZ");
	assert_heard(client, "CEZ");
	hear(server);
	phrase_bind(&words, "", 0);
	say_with("ES");
	assert_heard(server, "DES"); /* an error in its place */
}

static void test_who_does_not_take_our_answers_is_not_read(void **state)
{
	(void)state;
	prepare_s();
	say(client, "Q");
	say(server, "C>");
	assert_heard(client, "C>");
	scripted_allow(client->script, 3);
	phrase_close(&words, "s");
	say_with("H");
	assert_true(actor_link(client)->stream.paused);
	allow(client, SCRIPTED_ANY);
	assert_heard(client, "3");
	assert_false(actor_link(client)->stream.paused);
}

static void test_no_answer_stands_inside_half_a_notification(void **state)
{
	struct buffer notification;

	(void)state;
	buffer_init(&notification);
	letters_write(&notification, SERVER_SPEAKS, "A");
	prepare_s();
	say(client, "Q");
	assert_heard(server, "Q");
	say(server, "C>");
	assert_heard(client, "C>");
	say_bytes(server, notification.data, 8);
	phrase_close(&words, "s");
	say_with("H");
	say_bytes(server, notification.data + 8, notification.length - 8);
	assert_heard(client, "A3");
	say(client, "S");
	say(server, "Z");
	assert_heard(client, "Z");
	assert_state(client, CLIENT_IDLE);
	buffer_free(&notification);
}

static void test_deallocate_all_is_noticed_wherever_its_answer_is_cut(void **state)
{
	static const char *const tags[] = {"DEALLOCATE ALL", "DISCARD ALL"};
	struct buffer answer;

	(void)state;
	buffer_init(&answer);
	for (size_t i = 0; i < COUNT(tags); i++) {
		for (size_t cut = 1; cut < 5 + strlen(tags[i]) + 1; cut++) {
			/* It had none of that name, or this would be its end. */
			phrase_parse(&words, "s", "one");
			say_with("SQ");
			assert_heard(server, "PSQ");
			say(server, "1Z");
			assert_heard(client, "1Z");
			buffer_clear(&answer);
			writer_command_complete(&answer, tags[i]);
			say_bytes(server, answer.data, cut);
			say_bytes(server, answer.data + cut, answer.length - cut);
			say(server, "Z");
			assert_heard(client, "CZ");
		}
	}
	buffer_free(&answer);
}

/* --- errors of plans out of date ---------------------------------------------------------- */

static void describe(char kind, const char *name)
{
	const size_t mark = writer_begin(&words, PQ_DESCRIBE);

	writer_byte(&words, (uint8_t)kind);
	writer_string(&words, name);
	writer_end(&words, mark);
}

/* Somebody has deallocated it, in a function say. */
static void test_a_statement_that_is_gone_is_prepared_again(void **state)
{
	(void)state;
	prepare_s();
	phrase_bind(&words, "s", 0);
	say_with("ES");
	assert_heard(server, "BES");
	say_error(server, "26000", "prepared statement \"PGBOUNCER_1\" does not exist");
	say(server, "Z");
	assert_heard(server, "CPBES");
	say(server, "312CZ");
	assert_heard(client, "2CZ");
}

/* A Parse that was ours to answer is a part of the batch that is said again. */
static void test_a_batch_with_a_parse_of_ours_is_healed_too(void **state)
{
	struct actor *other = fake_client(pool);
	struct buffer answer;

	(void)state;
	buffer_init(&answer);
	prepare_s();
	phrase_parse(&words, "t", "two");
	letters_write(&words, CLIENT_SPEAKS, "S");
	say_buffer(other, &words);
	say(server, "1Z");
	hear(server);
	phrase_bind(&words, "s", 0);
	letters_write(&words, CLIENT_SPEAKS, "E");
	phrase_parse(&words, "u", "two");
	say_with("S");
	assert_heard(server, "BES");
	phrase_stale(&answer);
	letters_write(&answer, SERVER_SPEAKS, "Z");
	say_buffer(server, &answer);
	assert_heard(server, "CPBECPS");
	say(server, "312C31Z");
	assert_heard(client, "2C1Z");
}

/* Who remembers columns has to hear that they are others, unless he is about to ask anyway. */
static void test_a_client_that_remembers_columns_is_told_unless_it_asks_for_them(void **state)
{
	struct buffer answer;

	(void)state;
	buffer_init(&answer);
	prepare_s();
	describe('S', "s");
	say_with("S");
	say(server, "tTZ");
	assert_heard(client, "tTZ");
	hear(server);
	phrase_bind(&words, "s", 0);
	describe('P', "");
	say_with("ES");
	assert_heard(server, "BDES");
	phrase_stale(&answer);
	letters_write(&answer, SERVER_SPEAKS, "Z");
	say_buffer(server, &answer);
	assert_heard(server, "CPBDES");
	say(server, "312TCZ");
	assert_heard(client, "2TCZ");
	phrase_bind(&words, "s", 0);
	say_with("ES");
	phrase_stale(&answer);
	letters_write(&answer, SERVER_SPEAKS, "Z");
	say_buffer(server, &answer);
	assert_heard(client, "EZ");
}

/* The beginning of a message of this size in all, whose body is zeros. */
static void begin_message(struct buffer *out, uint8_t type, uint32_t total, uint32_t there)
{
	buffer_clear(out);
	writer_byte(out, type);
	writer_int32(out, total - 1);
	memset(buffer_extend(out, there - 5), 0, there - 5);
}

/*
 * A description may have to be taken back for the error behind it. One that is too long to be waited
 * for is passed on as it comes, and nothing piles up.
 */
static void test_no_error_is_waited_for_that_is_too_long(void **state)
{
	enum { DESCRIPTION = 30000, PIECE = 60000, PIECES = 20 };
	struct buffer message;
	size_t length;

	(void)state;
	prepare_s();
	phrase_describe(&words, "s");
	say_with("S");
	scripted_forget_output(client->script);
	client->heard = client->served = 0;
	buffer_init(&message);
	begin_message(&message, PQ_PARAMETER_DESCRIPTION, DESCRIPTION, DESCRIPTION);
	say_buffer(server, &message);
	begin_message(&message, PQ_ERROR_RESPONSE, PIECE * PIECES, PIECE);
	say_buffer(server, &message);
	assert_in_range(server->link->held_length, 0, 65536);
	for (int i = 1; i < PIECES; i++) {
		buffer_clear(&message);
		memset(buffer_extend(&message, PIECE), 0, PIECE);
		say_buffer(server, &message);
		assert_in_range(server->link->held_length, 0, 65536);
	}
	buffer_free(&message);
	scripted_output(client->script, &length);
	assert_int_equal(length, DESCRIPTION + PIECE * PIECES);
	scripted_forget_output(client->script);
	client->heard = client->served = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_used_longest_ago_makes_room),
		TEST(what_a_batch_has_prepared_it_has),
		TEST(what_another_batch_may_have_prepared_is_not_counted_on),
		TEST(a_name_is_what_the_first_word_behind_a_failure_makes_it),
		TEST(the_unnamed_is_what_it_was_before_all_that_failed),
		TEST(the_unnamed_outlives_a_query_that_is_skipped),
		TEST(the_unnamed_ends_with_a_parse_of_another_that_fails),
		TEST(who_does_not_take_our_answers_is_not_read),
		TEST(a_statement_that_is_gone_is_prepared_again),
		TEST(a_batch_with_a_parse_of_ours_is_healed_too),
		TEST(a_client_that_remembers_columns_is_told_unless_it_asks_for_them),
		TEST(no_answer_stands_inside_half_a_notification),
		TEST(deallocate_all_is_noticed_wherever_its_answer_is_cut),
		TEST(no_error_is_waited_for_that_is_too_long),
		TEST(what_is_owed_behind_a_copy_is_told),
		TEST(what_is_owed_behind_the_end_of_no_copy_is_told),
		TEST(a_close_is_answered_once_though_its_server_was_dead),
		TEST(a_name_is_what_the_next_batch_has_made_it),
		TEST(a_name_is_what_it_was_when_both_batches_have_failed),
		TEST(a_name_that_was_never_there_is_not_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
