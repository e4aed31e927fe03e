/* SPDX-License-Identifier: ISC */
/*
 * Questions for what a session has: what follows from each answer for the server and for its
 * client, which waits, and what a malformed answer or a closed connection does.
 */
#include "session/pool/return_to_pool.h"
#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/writer.h"

static struct pool *pool;
static struct endpoint *client, *other, *server;

static void start_with(const char *settings)
{
	pool = fake_start_pool(settings);
	client = fake_client(pool);
	other = fake_client(pool);
	server = fake_server(pool);
}

static int start(void **state)
{
	(void)state;
	start_with("default_pool_size = 1\nmax_pinned = 1\n");
	return 0;
}

/* --- messages ----------------------------------------------------------------------------- */

static void send_tag(const char *tag)
{
	struct buffer out = {0};

	writer_command_complete(&out, tag);
	send_buffer(server, &out);
	send_letters(server, "Z");
}

static void run(struct endpoint *from, const char *sql, const char *tag)
{
	send_query(from, sql);
	read_letters(server);
	send_tag(tag);
	read_letters(from);
}

static void run_and_be_asked(const char *sql, const char *tag)
{
	run(client, sql, tag);
	assert_state(server, SERVER_ASKING);
	assert_state(client, CLIENT_IDLE);
	assert_received(server, "Q");
}

/* The client runs a statement that may have changed anything. */
static void be_asked(void)
{
	run_and_be_asked("DO something", "DO");
}

/* One that may have changed settings. */
static void be_asked_for_settings(void)
{
	run_and_be_asked("SELECT set_config('work_mem', $1, false)", "SELECT 1");
}

/* A row of the answer; a NULL value is NULL. */
static void write_row(struct buffer *out, const char *const *values, unsigned count)
{
	const size_t mark = writer_begin(out, PQ_DATA_ROW);

	writer_int16(out, (uint16_t)count);
	for (unsigned i = 0; i < count; i++) {
		writer_int32(out, values[i] ? (uint32_t)strlen(values[i]) : UINT32_MAX);
		if (values[i])
			writer_bytes(out, values[i], strlen(values[i]));
	}
	writer_end(out, mark);
}

#define send_row(...)                                                                          \
	do {                                                                                   \
		const char *const send_values[] = {__VA_ARGS__};                               \
		struct buffer send_out = {0};                                                  \
                                                                                               \
		write_row(&send_out, send_values, COUNT(send_values));                         \
		send_buffer(server, &send_out);                                                \
	} while (0)

static void end_answer(void)
{
	send_letters(server, "CZ");
}

/* The text of the last Query that the server has received. */
static const char *last_query(void)
{
	size_t length;

	return (const char *)received_body(server, &length);
}

static const char *followed(const struct endpoint *endpoint, const char *name)
{
	return parameters_get_followed(endpoint_link(endpoint)->parameters, name);
}

/* --- settings ----------------------------------------------------------------------------- */

static void test_next_message_of_the_client_waits_for_the_answer(void **state)
{
	(void)state;
	be_asked();
	send_query(client, "mine");
	assert_received(server, "");
	send_letters(server, "T");
	assert_received(server, "");
	end_answer();
	assert_received(server, "Q");
	assert_string_equal(last_query(), "mine");
	assert_state(client, CLIENT_PAIRED);
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_another_client_does_not_get_the_server_before_the_answer(void **state)
{
	(void)state;
	be_asked();
	send_query(other, "mine");
	assert_received(server, "");
	assert_state(other, CLIENT_WAITING);
	end_answer();
	assert_received(server, "Q");
	assert_string_equal(last_query(), "mine");
}

static void test_settings_of_the_answer_follow_the_client_and_no_other(void **state)
{
	(void)state;
	be_asked_for_settings();
	send_row("S", "work_mem", "1024");
	send_row("S", "role", NULL);
	end_answer();
	assert_state(server, SERVER_IDLE);
	assert_string_equal(followed(client, "work_mem"), "1024");
	assert_null(followed(client, "role"));
	send_query(other, "mine");
	assert_received(server, "QQ");
	send_letters(server, "CCCZ");
	assert_null(followed(server, "work_mem"));
	send_letters(server, "CZ");
	assert_null(followed(other, "work_mem"));
	send_query(client, "mine");
	assert_received(server, "QQ");
	send_letters(server, "CCCZCZ");
	assert_string_equal(followed(server, "work_mem"), "1024");
}

static void test_settings_that_the_answer_does_not_have_are_gone(void **state)
{
	(void)state;
	be_asked_for_settings();
	send_row("S", "work_mem", "1024");
	end_answer();
	be_asked_for_settings();
	end_answer();
	assert_null(followed(client, "work_mem"));
	assert_null(followed(server, "work_mem"));
}

static void test_custom_settings_are_asked_for_by_their_names(void **state)
{
	(void)state;
	run_and_be_asked("SELECT set_config('App.tenant', 'x', false)", "SELECT 1");
	assert_non_null(strstr(last_query(), "current_setting('app.tenant',true)"));
	send_row("S", "app.tenant", "x");
	end_answer();
	assert_string_equal(followed(client, "app.tenant"), "x");
	be_asked_for_settings();
	assert_non_null(strstr(last_query(), "current_setting('app.tenant',true)"));
	assert_null(strstr(last_query(), "RESET ALL"));
	end_answer();
}

/* What cannot be asked for must not stay: names in a function, and more names than are noted. */
static void test_settings_of_unknown_names_are_reset(void **state)
{
	(void)state;
	be_asked();
	assert_non_null(strstr(last_query(), "; RESET ALL"));
	send_row("S", "work_mem", "1024");
	send_row("S", "role", "boss");
	end_answer();
	assert_null(followed(server, "work_mem"));
	assert_string_equal(followed(server, "role"), "boss");
	assert_string_equal(followed(client, "work_mem"), "1024");
	assert_string_equal(followed(client, "role"), "boss");
}

static void test_names_of_one_client_are_limited(void **state)
{
	char sql[100];
	int unread = 0;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		snprintf(sql, sizeof(sql), "SELECT set_config('app.name_%d', 'x', false)", i);
		run_and_be_asked(sql, "SELECT 1");
		assert_true(strlen(last_query()) < 256 * 1024);
		if (strstr(last_query(), "; RESET ALL"))
			unread++;
		end_answer();
	}
	/* One more than a set of parameters can have, so that such a client is found. */
	assert_int_equal(unread, 2000 - PARAMETERS_FOLLOWED_MAX - PARAMETERS_MAX - 1);
}

/* --- what pins ---------------------------------------------------------------------------- */

static void test_what_cannot_follow_keeps_the_server_until_it_is_gone(void **state)
{
	(void)state;
	be_asked();
	send_query(client, "mine");
	send_row("T", "table t", "");
	end_answer();
	assert_int_equal(pool->pinned, 1);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_PAIRED);
	run(client, "DROP TABLE t", "DROP TABLE");
	assert_state(server, SERVER_ASKING);
	end_answer();
	assert_state(server, SERVER_IDLE);
	assert_int_equal(pool->pinned, 0);
}

/* Settings of unknown names were reset behind the question, and with them those that are known. */
static void test_a_pinned_server_gets_its_settings_back(void **state)
{
	(void)state;
	be_asked();
	assert_non_null(strstr(last_query(), "; RESET ALL"));
	send_row("S", "work_mem", "1024");
	send_row("T", "table t", "");
	end_answer();
	assert_state(server, SERVER_PAIRED);
	assert_received(server, "");
	send_query(client, "mine");
	assert_received(server, "QQ");
	send_letters(server, "CCCZCZ");
	assert_string_equal(followed(server, "work_mem"), "1024");
	assert_received(client, "CZ");
	assert_state(server, SERVER_PAIRED);
}

/* Another server would not have the table. */
static void test_a_pinned_server_that_does_not_take_its_settings_closes_its_client(void **state)
{
	(void)state;
	be_asked();
	send_row("S", "role", "boss");
	send_row("S", "work_mem", "1024");
	send_row("T", "table t", "");
	end_answer();
	send_query(client, "mine");
	assert_received(server, "Q");
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "Z");
	assert_closed(server);
	assert_closed(client);
}

static void test_a_pinned_server_is_reset_when_its_client_leaves(void **state)
{
	(void)state;
	be_asked();
	send_row("L", "advisory lock 7", "");
	end_answer();
	assert_state(server, SERVER_PAIRED);
	send_query(other, "mine");
	send_letters(client, "X");
	assert_state(server, SERVER_RESETTING);
	assert_received(server, "Q");
	assert_string_equal(last_query(), "DISCARD ALL");
	assert_int_equal(pool->pinned, 0);
	send_tag("DISCARD ALL");
	assert_received(server, "Q");
	assert_string_equal(last_query(), "mine");
}

static void test_a_reset_that_fails_closes_the_server(void **state)
{
	(void)state;
	be_asked();
	send_row("L", "advisory lock 7", "");
	end_answer();
	disconnect(client);
	read_letters(server);
	send_error(server, "57014", "canceling statement due to statement timeout");
	send_letters(server, "Z");
	assert_closed(server);
}

static int start_without_pins(void **state)
{
	(void)state;
	start_with("default_pool_size = 1\nmax_pinned = 0\n");
	return 0;
}

static void test_beyond_max_pinned_the_client_is_warned_and_the_server_reset(void **state)
{
	(void)state;
	be_asked();
	send_row("T", "table t", "");
	send_row("S", "work_mem", "1024");
	end_answer();
	assert_received(client, "N");
	assert_state(server, SERVER_RESETTING);
	assert_received(server, "Q");
	send_tag("DISCARD ALL");
	assert_state(server, SERVER_IDLE);
	assert_int_equal(pool->pinned, 0);
	assert_string_equal(followed(client, "work_mem"), "1024");
	assert_null(followed(server, "work_mem"));
}

/* --- answers that are none ---------------------------------------------------------------- */

#define LOST "server was lost before it told the session state of the client"

/* Neither may go on: what the client has SET is unknown. */
static void assert_both_closed(void)
{
	assert_closed(server);
	assert_closed_with_error(client, "08006", LOST);
}

static void test_malformed_rows_close_both(void **state)
{
	(void)state;
	be_asked();
	send_row("S", "work_mem");
	end_answer();
	assert_both_closed();
}

static void test_rows_without_a_letter_close_both(void **state)
{
	(void)state;
	be_asked();
	send_row("SS", "work_mem", "1");
	end_answer();
	assert_both_closed();
}

/* Where a text ends is told by its NUL. */
static void test_rows_with_a_nul_close_both(void **state)
{
	static const uint8_t row[] = "D\0\0\0\026\0\3\0\0\0\1S\0\0\0\2\0x\0\0\0\1\0";

	(void)state;
	be_asked();
	send_bytes(server, row, sizeof(row) - 1);
	end_answer();
	assert_both_closed();
}

static void test_rows_without_a_name_close_both(void **state)
{
	(void)state;
	be_asked();
	send_row("S", NULL, "1");
	end_answer();
	assert_both_closed();
}

static void test_a_row_that_is_longer_than_it_can_be_closes_both(void **state)
{
	char *value = malloc(200000);
	const char *const values[] = {"S", "work_mem", value};
	struct buffer out = {0};

	(void)state;
	memset(value, 'x', 199999);
	value[199999] = '\0';
	be_asked();
	write_row(&out, values, COUNT(values));
	free(value);
	send_bytes(server, out.data, 5000);
	send_bytes(server, out.data + 5000, out.length - 5000);
	buffer_free(&out);
	end_answer();
	assert_both_closed();
}

static void test_lengths_of_values_beyond_the_row_close_both(void **state)
{
	static const uint8_t row[] = {
		'D', 0, 0, 0, 15, 0, 3, 0, 0, 0, 1, 'S', 0x7f, 0xff, 0xff, 0xff};

	(void)state;
	be_asked();
	send_bytes(server, row, sizeof(row));
	end_answer();
	assert_both_closed();
}

static void test_more_settings_than_a_set_can_have_close_the_client(void **state)
{
	char name[32];

	(void)state;
	be_asked();
	for (unsigned i = 0; i < PARAMETERS_FOLLOWED_MAX + PARAMETERS_MAX + 1; i++) {
		snprintf(name, sizeof(name), "app.name_%u", i);
		send_row("S", name, "1");
	}
	end_answer();
	assert_received(client, "E");
	assert_string_equal(client->sqlstate, "54000");
	assert_closed(client);
	assert_received(server, "Q");
	assert_string_equal(last_query(), "DISCARD ALL");
}

static void test_a_long_value_comes_in_pieces(void **state)
{
	(void)state;
	be_asked();
	send_row("S", "app.name", "one ");
	send_row("s", "app.name", "two ");
	send_row("s", "app.name", "three");
	send_row("S", "app.name_2", "x");
	end_answer();
	assert_string_equal(followed(client, "app.name"), "one two three");
	assert_string_equal(followed(client, "app.name_2"), "x");
}

static void test_a_piece_without_a_beginning_closes_both(void **state)
{
	(void)state;
	be_asked();
	send_row("s", "app.name", "one ");
	end_answer();
	assert_both_closed();
}

/* The limit is lifted before the question, and its value is not that of the question. */
static void test_a_time_limit_of_the_client_is_lifted_before_the_question(void **state)
{
	(void)state;
	run(client, "SET statement_timeout TO '1ms'", "SET");
	assert_state(server, SERVER_IDLE);
	run(client, "SELECT set_config('work_mem', $1, false)", "SELECT 1");
	assert_received(server, "QQ");
	send_row("V", "statement_timeout", "1ms", "0");
	send_letters(server, "CZ");
	send_row("S", "statement_timeout", "0");
	end_answer();
	assert_string_equal(followed(client, "statement_timeout"), "1ms");
	assert_string_equal(followed(server, "statement_timeout"), "1ms");
	assert_state(server, SERVER_IDLE);
}

static void test_a_question_that_a_time_limit_ends_is_asked_again(void **state)
{
	(void)state;
	be_asked_for_settings();
	for (int i = 0; i < 20; i++) {
		send_error(server, "57014", "canceling statement due to statement timeout");
		send_letters(server, i > 0 ? "ZZ!" : "Z");
		assert_received(server, "QQQ");
	}
	send_query(client, "mine");
	send_letters(server, "CZ");
	send_row("V", "statement_timeout", "1ms", "0");
	send_letters(server, "CZ");
	send_row("S", "statement_timeout", "0");
	end_answer();
	assert_received(server, "Q");
	assert_string_equal(last_query(), "mine");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	assert_string_equal(followed(client, "statement_timeout"), "1ms");
}

static void test_a_question_that_time_limits_end_too_often_closes_both(void **state)
{
	(void)state;
	be_asked();
	for (int i = 0; i < 20; i++) {
		send_error(server, "57014", "canceling statement due to statement timeout");
		send_letters(server, i > 0 ? "ZZ!" : "Z");
		assert_received(server, "QQQ");
	}
	send_error(server, "57014", "canceling statement due to statement timeout");
	send_letters(server, "ZZ!");
	assert_both_closed();
}

static void test_an_error_closes_both(void **state)
{
	(void)state;
	be_asked();
	send_error(server, "22023", "no");
	send_letters(server, "Z");
	assert_both_closed();
}

static void test_an_answer_that_ends_in_a_transaction_closes_both(void **state)
{
	(void)state;
	be_asked();
	send_letters(server, "C>");
	assert_both_closed();
}

static void test_a_server_that_breaks_closes_its_client(void **state)
{
	(void)state;
	be_asked();
	send_query(client, "mine");
	break_connection(server);
	assert_both_closed();
}

static void test_a_server_that_takes_no_question_closes_its_client(void **state)
{
	struct buffer out = {0};

	(void)state;
	send_query(client, "DO something");
	read_letters(server);
	writer_command_complete(&out, "DO");
	letters_write(&out, FROM_SERVER, "Z");
	scripted_feed(server->script, out.data, out.length);
	buffer_free(&out);
	scripted_break(server->script);
	scripted_run_all(server->script);
	fake_turn();
	assert_closed(server);
	assert_closed(client);
}

/* --- clients that leave ------------------------------------------------------------------- */

static void test_a_client_that_leaves_before_the_answer_takes_nothing_along(void **state)
{
	(void)state;
	be_asked_for_settings();
	disconnect(client);
	assert_closed(client);
	assert_state(server, SERVER_ASKING);
	send_row("S", "work_mem", "1024");
	end_answer();
	assert_state(server, SERVER_IDLE);
	send_query(other, "mine");
	assert_received(server, "QQ");
	send_letters(server, "CCCZ");
	assert_null(followed(server, "work_mem"));
	send_letters(server, "CZ");
}

static void test_what_such_a_client_leaves_is_discarded(void **state)
{
	(void)state;
	be_asked();
	disconnect(client);
	send_row("T", "table t", "");
	end_answer();
	assert_state(server, SERVER_RESETTING);
	assert_received(server, "Q");
	assert_string_equal(last_query(), "DISCARD ALL");
	send_tag("DISCARD ALL");
	assert_state(server, SERVER_IDLE);
}

static void test_a_client_that_leaves_in_a_transaction_leaves_a_server_that_is_reset(
	void **state)
{
	struct buffer out = {0};

	(void)state;
	send_query(client, "BEGIN");
	read_letters(server);
	writer_command_complete(&out, "BEGIN");
	letters_write(&out, FROM_SERVER, ">");
	send_buffer(server, &out);
	send_query(client, "SELECT set_config('role', 'boss', false)");
	read_letters(server);
	send_letters(server, "C>");
	disconnect(client);
	assert_state(server, SERVER_DRAINING);
	assert_received(server, "Q");
	assert_string_equal(last_query(), "ROLLBACK");
	send_tag("ROLLBACK");
	assert_state(server, SERVER_RESETTING);
	assert_received(server, "Q");
	assert_string_equal(last_query(), "DISCARD ALL");
	send_tag("DISCARD ALL");
	assert_state(server, SERVER_IDLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(next_message_of_the_client_waits_for_the_answer),
		TEST(another_client_does_not_get_the_server_before_the_answer),
		TEST(settings_of_the_answer_follow_the_client_and_no_other),
		TEST(settings_that_the_answer_does_not_have_are_gone),
		TEST(custom_settings_are_asked_for_by_their_names),
		TEST(settings_of_unknown_names_are_reset),
		TEST(names_of_one_client_are_limited),
		TEST(what_cannot_follow_keeps_the_server_until_it_is_gone),
		TEST(a_pinned_server_gets_its_settings_back),
		TEST(a_pinned_server_that_does_not_take_its_settings_closes_its_client),
		TEST(a_pinned_server_is_reset_when_its_client_leaves),
		TEST(a_reset_that_fails_closes_the_server),
		cmocka_unit_test_setup_teardown(
			test_beyond_max_pinned_the_client_is_warned_and_the_server_reset,
			start_without_pins, fake_end),
		TEST(malformed_rows_close_both),
		TEST(rows_without_a_letter_close_both),
		TEST(rows_with_a_nul_close_both),
		TEST(rows_without_a_name_close_both),
		TEST(a_row_that_is_longer_than_it_can_be_closes_both),
		TEST(lengths_of_values_beyond_the_row_close_both),
		TEST(more_settings_than_a_set_can_have_close_the_client),
		TEST(a_long_value_comes_in_pieces),
		TEST(a_piece_without_a_beginning_closes_both),
		TEST(a_time_limit_of_the_client_is_lifted_before_the_question),
		TEST(a_question_that_a_time_limit_ends_is_asked_again),
		TEST(a_question_that_time_limits_end_too_often_closes_both),
		TEST(an_error_closes_both),
		TEST(an_answer_that_ends_in_a_transaction_closes_both),
		TEST(a_server_that_breaks_closes_its_client),
		TEST(a_server_that_takes_no_question_closes_its_client),
		TEST(a_client_that_leaves_before_the_answer_takes_nothing_along),
		TEST(what_such_a_client_leaves_is_discarded),
		TEST(a_client_that_leaves_in_a_transaction_leaves_a_server_that_is_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
