/* SPDX-License-Identifier: ISC */
/* Plans out of date: which batches are said again, and which errors are told. */
#include "session/statements/replay.h"
#include "support/fakes/fake_pool.h"
#include "support/messages/statement_messages.h"

static struct pool *pool;
static struct actor *client, *server;
static struct buffer words; /* what somebody is about to say */

static void add(const char *letters)
{
	letters_write(&words, CLIENT_SPEAKS, letters);
}

/* The client has a statement `s`, which the server knows; it remembers no columns. */
static int start(void **state)
{
	(void)state;
	pool = fake_start_pool("max_prepared_statements = 10\n");
	client = fake_client(pool);
	server = fake_server(pool);
	buffer_init(&words);
	phrase_parse(&words, "s", "one");
	add("S");
	say_buffer(client, &words);
	assert_heard(server, "PS");
	say(server, "1Z");
	assert_heard(client, "1Z");
	return 0;
}

/* --- what is said ------------------------------------------------------------------------- */

static void add_batch(uint32_t parameter)
{
	phrase_bind(&words, "s", parameter);
	add("ES");
}

static void say_batch(void)
{
	add_batch(0);
	say_buffer(client, &words);
}

static void say_stale(void)
{
	struct buffer error;

	buffer_init(&error);
	phrase_stale(&error);
	say_buffer(server, &error);
}

/* The client says what the words have up to here, from there. Returns how far it has come. */
static size_t say_up_to(size_t from, size_t until)
{
	say_bytes(client, words.data + from, until - from);
	return until;
}

/* The server has been asked to prepare anew, and the batch is said again, which began with a Bind. */
static void expect_healed(void)
{
	assert_heard(client, "");
	assert_heard(server, "CPBES");
	say(server, "312CZ");
	assert_heard(client, "2CZ");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
}

static void expect_told(void)
{
	assert_heard(client, "EZ");
	assert_string_equal(client->sqlstate, "0A000");
	assert_state(client, CLIENT_IDLE);
}

/* --- batches in one read ------------------------------------------------------------------ */

static void test_a_batch_is_healed_wherever_its_error_is_cut(void **state)
{
	struct buffer error;

	(void)state;
	buffer_init(&error);
	phrase_stale(&error);
	for (size_t cut = 1; cut < error.length; cut++) {
		say_batch();
		assert_heard(server, "BES");
		say_bytes(server, error.data, cut);
		say_bytes(server, error.data + cut, error.length - cut);
		say(server, "Z");
		expect_healed();
	}
	buffer_free(&error);
}

static void test_a_batch_is_healed_once(void **state)
{
	(void)state;
	say_batch();
	assert_heard(server, "BES");
	say_stale();
	say(server, "Z");
	assert_heard(server, "CPBES");
	say(server, "31");
	say_stale();
	say(server, "Z");
	expect_told();
}

static void test_what_was_answered_is_not_said_again(void **state)
{
	(void)state;
	phrase_parse(&words, "", "insert");
	phrase_bind(&words, "", 0);
	add("E");
	add_batch(0);
	say_buffer(client, &words);
	assert_heard(server, "PBEBES");
	say(server, "12C");
	say_stale();
	say(server, "Z");
	assert_heard(server, "");
	assert_heard(client, "12CEZ");
	assert_state(client, CLIENT_IDLE);
}

/* --- batches in several reads ------------------------------------------------------------- */

static void test_a_batch_is_healed_wherever_it_is_cut(void **state)
{
	size_t length = 2;

	(void)state;
	for (size_t cut = 1; cut < length; cut++) {
		add_batch(0);
		length = words.length;
		say_up_to(0, cut);
		say_up_to(cut, length);
		buffer_clear(&words);
		assert_heard(server, "BES");
		say_stale();
		say(server, "Z");
		expect_healed();
	}
	buffer_free(&words);
}

/* PostgreSQL tells of an error at once, and skips what comes up to a Sync. */
static void test_a_batch_is_healed_before_all_of_it_has_come(void **state)
{
	size_t length = 2, bind = 1;

	(void)state;
	for (size_t cut = bind; cut < length; cut++) {
		phrase_bind(&words, "s", 0);
		bind = words.length;
		add("ES");
		length = words.length;
		if (cut < bind)
			cut = bind;
		say_up_to(0, cut);
		assert_string_equal(hear(server), cut < length - 5 ? "B" : "BE");
		say_stale();
		assert_heard(server, "S");
		say(server, "Z");
		assert_string_equal(hear(server), cut < length - 5 ? "CPB" : "CPBE");
		say_up_to(cut, length);
		buffer_clear(&words);
		assert_string_equal(hear(server), cut < length - 5 ? "ES" : "S");
		say(server, "312CZ");
		assert_heard(client, "2CZ");
		assert_state(client, CLIENT_IDLE);
	}
	buffer_free(&words);
}

static void test_nothing_is_read_before_its_beginning_is_said_again(void **state)
{
	(void)state;
	phrase_bind(&words, "s", 0);
	say_buffer(client, &words);
	assert_heard(server, "B");
	say_stale();
	assert_heard(server, "S");
	say(client, "ES");
	assert_heard(server, "");
	say(server, "Z");
	assert_heard(server, "CPB");
	scripted_run(client->script);
	assert_heard(server, "ES");
	say(server, "312CZ");
	assert_heard(client, "2CZ");
}

static void test_a_client_that_leaves_while_its_batch_is_cut_short_leaves_a_clean_server(
	void **state)
{
	(void)state;
	phrase_bind(&words, "s", 0);
	say_buffer(client, &words);
	say_stale();
	assert_heard(server, "BS");
	vanish(client);
	assert_state(server, SERVER_DRAINING);
	say(server, "Z");
	assert_state(server, SERVER_IDLE);
	assert_heard(server, "");
}

/* A parameter of so many bytes comes in pieces of so many, behind a batch that is healed. */
static void say_long_batch(uint32_t parameter, size_t piece)
{
	add_batch(parameter);
	for (size_t at = 0; at < words.length;)
		at = say_up_to(at, words.length - at < piece ? words.length : at + piece);
	buffer_free(&words);
	assert_heard(server, "BES");
	say_stale();
	say(server, "Z");
}

static void test_a_long_parameter_is_said_again(void **state)
{
	(void)state;
	say_long_batch(20000, 4500);
	expect_healed();
	say_long_batch(HEALING_KEPT_MAX - 100, 20000);
	expect_healed();
}

static void test_a_batch_that_is_too_long_is_not_kept(void **state)
{
	(void)state;
	say_long_batch(HEALING_KEPT_MAX, 20000);
	expect_told();
	assert_in_range(actor_server(server)->kept.capacity, 0, HEALING_KEPT_MAX);
	/* But its plan is made anew, and the next one is kept again. */
	say_batch();
	assert_heard(server, "CPBES");
	say(server, "312CZ");
	assert_heard(client, "2CZ");
	say_batch();
	assert_heard(server, "BES");
	say_stale();
	say(server, "Z");
	expect_healed();
}

static void test_no_batch_ends_in_the_middle_of_a_message(void **state)
{
	size_t length;

	(void)state;
	phrase_bind(&words, "s", 0);
	add("E");
	add_batch(20000);
	length = words.length;
	say_up_to(0, length - 10000);
	assert_heard(server, "BE~");
	say_stale();
	say_up_to(length - 10000, length);
	buffer_free(&words);
	say(server, "Z");
	assert_heard(server, "BES");
	expect_told();
}

static void test_what_a_flush_has_had_answered_is_not_said_again(void **state)
{
	(void)state;
	phrase_parse(&words, "", "insert");
	phrase_bind(&words, "", 0);
	add("EH");
	say_buffer(client, &words);
	assert_heard(server, "PBEH");
	say(server, "12C");
	assert_heard(client, "12C");
	say_batch();
	assert_heard(server, "BES");
	say_stale();
	say(server, "Z");
	assert_heard(server, "");
	expect_told();
}

static void test_what_another_process_has_passed_is_not_forgotten(void **state)
{
	(void)state;
	phrase_bind(&words, "s", 0);
	say_buffer(client, &words);
	assert_heard(server, "B");
	say(server, "2");
	assert_heard(client, "2");
	/* As session/takeover/adoption has it. */
	actor_server(server)->kept_requests = 0;
	assert_true(actor_server(server)->batch_open);
	say_batch();
	assert_heard(server, "BES");
	say_stale();
	say(server, "Z");
	assert_heard(server, "");
	expect_told();
}

static void test_what_a_copy_has_is_not_kept(void **state)
{
	(void)state;
	add_batch(0);
	add("dd");
	say_buffer(client, &words);
	assert_heard(server, "BESdd");
	say(server, "2G");
	for (int i = 0; i < 10; i++)
		say(client, "dddddddddd");
	assert_in_range(actor_server(server)->kept.length, 0, 100);
	say(client, "c");
	say(server, "CZ");
	assert_heard(client, "2GCZ");
	assert_state(client, CLIENT_IDLE);
}

/* --- several batches ---------------------------------------------------------------------- */

/* Two of them in so many reads; the second one fails. */
static void say_two(bool in_one_read)
{
	phrase_parse(&words, "", "first");
	phrase_bind(&words, "", 0);
	add("ES");
	if (!in_one_read)
		say_buffer(client, &words);
	say_batch();
	assert_heard(server, "PBESBES");
}

static void test_the_last_of_several_batches_is_healed(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		say_two(i);
		say(server, "12CZ");
		assert_heard(client, "12CZ");
		say_stale();
		say(server, "Z");
		expect_healed();
	}
}

static void test_answers_of_ours_before_the_last_batch_are_given_once(void **state)
{
	(void)state;
	phrase_parse(&words, "", "first");
	phrase_bind(&words, "", 0);
	add("ES");
	phrase_close(&words, "t");
	say_batch();
	assert_heard(server, "PBESBES");
	say(server, "12CZ");
	assert_heard(client, "12CZ3");
	say_stale();
	say(server, "Z");
	expect_healed();
}

static void test_a_batch_in_a_transaction_is_not_healed(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		say_two(i);
		say(server, "12C>");
		assert_heard(client, "12C>");
		say_stale();
		say(server, "!");
		assert_heard(client, "E!");
		say(client, "Q");
		say(server, "CZ");
		assert_heard(client, "CZ");
		say_batch();
		say(server, "312CZ");
		assert_heard(client, "2CZ");
		hear(server);
	}
}

static void test_a_batch_behind_a_query_is_healed_outside_of_a_transaction(void **state)
{
	(void)state;
	add("Q");
	say_batch();
	assert_heard(server, "QBES");
	say(server, "CZ");
	say_stale();
	say(server, "Z");
	assert_heard(client, "CZ");
	expect_healed();
	add("Q");
	say_batch();
	say(server, "C>");
	say_stale();
	say(server, "!");
	assert_heard(client, "C>E!");
}

static void test_a_batch_with_others_behind_it_is_not_healed(void **state)
{
	(void)state;
	add_batch(0);
	say_batch();
	assert_heard(server, "BESBES");
	say_stale();
	say(server, "Z");
	assert_heard(client, "EZ");
	/* Nor by way of what was kept of the second. */
	say_stale();
	say(server, "Z");
	expect_healed();
}

static void test_half_a_message_behind_a_batch_stays_behind_it(void **state)
{
	(void)state;
	add_batch(0);
	letters_write(&words, CLIENT_SPEAKS, "Q");
	say_up_to(0, words.length - 3);
	assert_heard(server, "BES");
	say_stale();
	say(server, "Z");
	assert_heard(server, "CPBES");
	say_up_to(words.length - 3, words.length);
	buffer_free(&words);
	assert_heard(server, "Q");
	say(server, "312CZCZ");
	assert_heard(client, "2CZCZ");
	assert_state(client, CLIENT_IDLE);
}

/* --- what it costs ------------------------------------------------------------------------ */

static void test_what_is_kept_has_one_place(void **state)
{
	const uint8_t *place;

	(void)state;
	say_batch();
	say(server, "2CZ");
	place = actor_server(server)->kept.data;
	assert_non_null(place);
	for (int i = 0; i < 100; i++) {
		say_batch();
		say(server, "2CZ");
		assert_ptr_equal(actor_server(server)->kept.data, place);
	}
}

static void test_what_cannot_fail_like_that_is_not_kept(void **state)
{
	(void)state;
	buffer_free(&actor_server(server)->kept);
	phrase_parse(&words, "", "one");
	phrase_bind(&words, "", 0);
	add("ES");
	say_buffer(client, &words);
	say(server, "12CZ");
	say(client, "QH");
	say(server, "CZ");
	say(client, "F");
	say(server, "VZ");
	say(client, "Q");
	say(server, "C>");
	say_batch();
	say(server, "2C>");
	assert_null(actor_server(server)->kept.data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_batch_is_healed_wherever_its_error_is_cut),
		TEST(a_batch_is_healed_once),
		TEST(what_was_answered_is_not_said_again),
		TEST(a_batch_is_healed_wherever_it_is_cut),
		TEST(a_batch_is_healed_before_all_of_it_has_come),
		TEST(nothing_is_read_before_its_beginning_is_said_again),
		TEST(a_client_that_leaves_while_its_batch_is_cut_short_leaves_a_clean_server),
		TEST(a_long_parameter_is_said_again),
		TEST(a_batch_that_is_too_long_is_not_kept),
		TEST(no_batch_ends_in_the_middle_of_a_message),
		TEST(what_a_flush_has_had_answered_is_not_said_again),
		TEST(what_another_process_has_passed_is_not_forgotten),
		TEST(what_a_copy_has_is_not_kept),
		TEST(the_last_of_several_batches_is_healed),
		TEST(answers_of_ours_before_the_last_batch_are_given_once),
		TEST(a_batch_in_a_transaction_is_not_healed),
		TEST(a_batch_behind_a_query_is_healed_outside_of_a_transaction),
		TEST(a_batch_with_others_behind_it_is_not_healed),
		TEST(half_a_message_behind_a_batch_stays_behind_it),
		TEST(what_is_kept_has_one_place),
		TEST(what_cannot_fail_like_that_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
