/* SPDX-License-Identifier: ISC */
/*
 * The functions that change the session: when a server is asked for them, what each answer means, and
 * which texts are suspected then.
 */
#include "session/link/close.h"
#include "session/pool/return_to_pool.h"
#include "session/state/functions.h"
#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;
static struct endpoint *client, *server;

static int start(void **state)
{
	(void)state;
	pool = fake_start_pool("default_pool_size = 2\nsession_functions_refresh = 60\n");
	client = fake_client(pool);
	server = fake_server(pool);
	return 0;
}

static struct session_functions *functions(void)
{
	return &pool->database->functions;
}

/* --- messages ----------------------------------------------------------------------------- */

static void send_row(const char *letter, const char *name, const char *topics)
{
	const char *const values[] = {letter, name, topics};
	struct buffer out = {0};
	const size_t mark = writer_begin(&out, PQ_DATA_ROW);

	writer_int16(&out, COUNT(values));
	for (unsigned i = 0; i < COUNT(values); i++) {
		writer_int32(&out, (uint32_t)strlen(values[i]));
		writer_bytes(&out, values[i], strlen(values[i]));
	}
	writer_end(&out, mark);
	send_buffer(server, &out);
}

static void be_read(void)
{
	assert_true(functions_read(server_of(endpoint_link(server))));
	assert_state(server, SERVER_ASKING);
	assert_received(server, "Q");
}

static void end_answer(void)
{
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

/* The server's functions are these. */
static void learn(const char *print, const char *name, const char *topics)
{
	be_read();
	send_row("F", print, "0");
	if (name)
		send_row("N", name, topics);
	end_answer();
}

static const char *last_query(void)
{
	size_t length;

	return (const char *)received_body(server, &length);
}

static void send_tag(const char *tag)
{
	struct buffer out = {0};

	writer_command_complete(&out, tag);
	send_buffer(server, &out);
	send_letters(server, "Z");
}

/* Parse with two texts, and Bind with two; then numbers that are 0. */
static void send_two_texts(uint8_t type, const char *first, const char *second)
{
	struct buffer out = {0};
	const size_t mark = writer_begin(&out, type);

	writer_string(&out, first);
	writer_string(&out, second);
	writer_int16(&out, 0);
	for (unsigned i = 0; type == PQ_BIND && i < 2; i++)
		writer_int16(&out, 0);
	writer_end(&out, mark);
	send_buffer(client, &out);
}

static void run(const char *sql, const char *tag)
{
	send_query(client, sql);
	read_letters(server);
	send_tag(tag);
	read_letters(client);
}

static void assert_asked(const char *sql)
{
	run(sql, "SELECT 1");
	assert_state(server, SERVER_ASKING);
	assert_received(server, "Q");
	send_letters(server, "CZ");
}

static void assert_not_asked(const char *sql)
{
	run(sql, "SELECT 1");
	assert_state(server, SERVER_IDLE);
	assert_received(server, "");
}

/* --- answers ------------------------------------------------------------------------------ */

static void test_text_with_a_name_is_asked_for(void **state)
{
	(void)state;
	learn("1.2", "enter", "1");
	assert_asked("SELECT enter('red')");
	assert_not_asked("SELECT leave('red')");
}

static void test_bind_of_a_text_with_a_name_is_asked_for(void **state)
{
	(void)state;
	learn("1.2", NULL, NULL);
	send_two_texts(PQ_PARSE, "one", "SELECT enter()");
	send_letters(client, "S");
	read_letters(server);
	send_letters(server, "1Z");
	read_letters(client);
	fake_advance(2 * USEC_PER_SEC);
	functions()->due = true;
	learn("1.3", "enter", "1");
	send_two_texts(PQ_BIND, "", "one");
	send_letters(client, "S");
	read_letters(server);
	send_letters(server, "2Z");
	assert_state(server, SERVER_ASKING);
}

static void test_database_without_such_functions_is_not_watched(void **state)
{
	(void)state;
	assert_int_equal(pool->pairing, CLIENT_WATCHED);
	learn("1.2", NULL, NULL);
	assert_int_equal(pool->pairing, POOL_MODE_TRANSACTION);
	assert_not_asked("SELECT enter('red')");
}

static void test_every_text_is_asked_for_before_the_answer(void **state)
{
	(void)state;
	assert_asked("SELECT 1");
}

static void test_custom_settings_of_functions_are_asked_for(void **state)
{
	(void)state;
	be_read();
	send_row("F", "1.2", "0");
	send_row("N", "enter", "1");
	send_row("S", "\"app\".tenant", "0");
	send_row("S", "no setting.", "0");
	end_answer();
	run("SELECT enter('red')", "SELECT 1");
	assert_received(server, "Q");
	assert_non_null(strstr(last_query(), "current_setting('app.tenant',true)"));
	assert_null(strstr(last_query(), "no setting"));
}

static void test_the_same_print_means_the_same_list(void **state)
{
	(void)state;
	learn("1.2", "enter", "1");
	fake_advance(2 * USEC_PER_SEC);
	functions()->due = true;
	be_read();
	assert_non_null(strstr(last_query(), "<> '1.2'"));
	send_row("F", "1.2", "0");
	end_answer();
	assert_int_equal(watched_names_count(&functions()->names), 1);
	fake_advance(2 * USEC_PER_SEC);
	functions()->due = true;
	learn("1.3", NULL, NULL);
	assert_int_equal(watched_names_count(&functions()->names), 0);
}

static void test_server_without_such_a_catalog_has_no_functions(void **state)
{
	(void)state;
	be_read();
	send_error(server, "42P01", "there is no pg_proc");
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
	assert_not_asked("SELECT enter('red')");
	assert_true(fake_logged("cannot read functions: there is no pg_proc"));
}

static void test_server_that_answers_otherwise_has_no_functions(void **state)
{
	(void)state;
	be_read();
	end_answer();
	assert_not_asked("SELECT enter('red')");
}

static void test_time_limit_of_a_client_is_no_answer(void **state)
{
	(void)state;
	be_read();
	send_error(server, "57014", "canceling statement due to statement timeout");
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
	assert_false(functions()->known);
	assert_false(functions_read(server_of(endpoint_link(server))));
	fake_advance(2 * USEC_PER_SEC);
	learn("1.2", NULL, NULL);
	assert_true(functions()->known);
}

static void test_too_many_names_make_every_text_suspicious(void **state)
{
	(void)state;
	be_read();
	send_row("F", "1.2", "0");
	for (unsigned i = 0; i <= WATCHED_NAMES_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name_%u", i);
		send_row("N", name, "1");
	}
	end_answer();
	assert_true(functions()->everything);
	assert_true(fake_logged("too many functions may change the session"));
	assert_asked("SELECT 1");
}

static void test_answers_of_other_servers_are_no_list(void **state)
{
	static const char *const rows[][3] = {
		{"F", "1.2; DROP", "0"},
		{"N", "enter", "1"},
		{"FF", "1.2", "0"},
		{"", "", ""},
	};

	(void)state;
	for (unsigned i = 0; i < COUNT(rows); i++) {
		be_read();
		send_row(rows[i][0], rows[i][1], rows[i][2]);
		end_answer();
		assert_true(functions()->known);
		assert_false(functions()->everything);
		fake_advance(2 * USEC_PER_SEC);
		functions()->due = true;
	}
	learn("1.2", NULL, NULL);
	assert_false(functions()->everything);
}

static void test_server_that_does_not_answer_makes_every_text_suspicious(void **state)
{
	(void)state;
	be_read();
	server_close_for(server_of(endpoint_link(server)), REASON_SERVER_CONN_CRASHED);
	assert_false(functions()->known);
	fake_advance(2 * USEC_PER_SEC);
	server = fake_server(pool);
	be_read();
	fake_advance(20 * USEC_PER_SEC);
	server_close_for(server_of(endpoint_link(server)), REASON_RESET_QUERY_FAILED);
	assert_true(functions()->known);
	assert_true(functions()->everything);
}

/* --- when --------------------------------------------------------------------------------- */

static void test_tags_of_definitions_raise_a_doubt_until_it_is_read_again(void **state)
{
	(void)state;
	learn("1.2", NULL, NULL);
	fake_advance(2 * USEC_PER_SEC);
	run("CREATE FUNCTION enter()", "CREATE FUNCTION");
	assert_true(functions()->doubted);
	assert_int_equal(functions()->changing, 1);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	/* Behind the question it is free, and the functions are read. */
	assert_int_equal(functions()->changing, 0);
	assert_state(server, SERVER_ASKING);
	assert_received(server, "Q");
	send_row("F", "1.3", "0");
	send_row("N", "enter", "1");
	end_answer();
	assert_false(functions()->doubted);
	assert_asked("SELECT enter()");
	assert_not_asked("SELECT 1");
}

static void test_what_is_not_committed_is_not_read(void **state)
{
	struct endpoint *other = NULL;

	(void)state;
	learn("1.2", NULL, NULL);
	fake_advance(2 * USEC_PER_SEC);
	other = fake_server(pool);
	send_query(client, "BEGIN; CREATE FUNCTION enter()");
	assert_received(other, "Q");
	{
		struct buffer out = {0};

		writer_command_complete(&out, "CREATE FUNCTION");
		send_buffer(other, &out);
	}
	send_letters(other, "T");
	assert_int_equal(functions()->changing, 1);
	assert_false(functions_read(server_of(endpoint_link(server))));
	assert_int_equal(pool->pairing, CLIENT_WATCHED);
	server_close_for(server_of(endpoint_link(other)), REASON_SERVER_CONN_CRASHED);
	assert_int_equal(functions()->changing, 0);
	be_read();
}

static void test_tags_of_other_definitions_matter_if_there_are_functions(void **state)
{
	(void)state;
	learn("1.2", NULL, NULL);
	run("CREATE TABLE one (a int)", "CREATE TABLE");
	assert_false(functions()->doubted);
	send_letters(server, "CZ");
	read_letters(server);
	fake_advance(2 * USEC_PER_SEC);
	functions()->due = true;
	learn("1.3", "enter", "1");
	run("CREATE VIEW one AS SELECT 1", "CREATE VIEW");
	assert_false(functions()->doubted);
	send_letters(server, "CZ");
	read_letters(server);
	run("CREATE VIEW one AS SELECT enter()", "CREATE VIEW");
	assert_true(functions()->doubted);
}

static void test_list_is_read_again_when_it_is_old_and_the_database_is_used(void **state)
{
	(void)state;
	learn("1.2", NULL, NULL);
	fake_advance(30 * USEC_PER_SEC);
	functions_upkeep(pool);
	assert_state(server, SERVER_IDLE);
	assert_not_asked("SELECT 1");
	fake_advance(40 * USEC_PER_SEC);
	functions_upkeep(pool);
	assert_state(server, SERVER_ASKING);
}

static void test_server_of_an_unused_database_is_left_alone(void **state)
{
	(void)state;
	learn("1.2", NULL, NULL);
	fake_advance(70 * USEC_PER_SEC);
	functions_upkeep(pool);
	assert_state(server, SERVER_IDLE);
	assert_true(functions()->doubted);
	/* The next use of it is suspected, and followed by a question and by reading. */
	assert_asked("SELECT 1");
	assert_state(server, SERVER_ASKING);
	assert_received(server, "Q");
	assert_ptr_equal(functions()->reader, endpoint_link(server));
}

static void test_busy_server_reads_when_it_is_released(void **state)
{
	(void)state;
	learn("1.2", NULL, NULL);
	fake_advance(70 * USEC_PER_SEC);
	send_query(client, "SELECT 1");
	assert_received(server, "Q");
	functions_upkeep(pool);
	send_tag("SELECT 1");
	assert_state(server, SERVER_ASKING);
	assert_state(client, CLIENT_IDLE);
	assert_ptr_equal(functions()->reader, endpoint_link(server));
}

static void test_other_database_behind_the_name_is_read_anew(void **state)
{
	(void)state;
	learn("1.2", NULL, NULL);
	session_functions_forget(pool->database);
	assert_int_equal(pool->pairing, CLIENT_WATCHED);
	be_read();
	assert_non_null(strstr(last_query(), "<> ''"));
}

/* The name of the Parse has no end in it: what is behind the message is no text of it. */
static void test_words_behind_a_broken_parse_are_not_its_text(void **state)
{
	static const char message[] = "P\0\0\0\005x"
				      "Q\001\001\001\001a\0LOAD 'm'";

	(void)state;
	learn("1.2", "enter", "1");
	pool->session_state = SESSION_STATE_ERROR;
	send_letters(client, "S");
	assert_received(server, "S");
	send_bytes(client, message, sizeof(message));
	assert_closed_with_error(client, "08P01", "failed to parse packet");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(text_with_a_name_is_asked_for),
		TEST(bind_of_a_text_with_a_name_is_asked_for),
		TEST(database_without_such_functions_is_not_watched),
		TEST(every_text_is_asked_for_before_the_answer),
		TEST(custom_settings_of_functions_are_asked_for),
		TEST(the_same_print_means_the_same_list),
		TEST(server_without_such_a_catalog_has_no_functions),
		TEST(server_that_answers_otherwise_has_no_functions),
		TEST(time_limit_of_a_client_is_no_answer),
		TEST(too_many_names_make_every_text_suspicious),
		TEST(answers_of_other_servers_are_no_list),
		TEST(server_that_does_not_answer_makes_every_text_suspicious),
		TEST(tags_of_definitions_raise_a_doubt_until_it_is_read_again),
		TEST(what_is_not_committed_is_not_read),
		TEST(tags_of_other_definitions_matter_if_there_are_functions),
		TEST(list_is_read_again_when_it_is_old_and_the_database_is_used),
		TEST(server_of_an_unused_database_is_left_alone),
		TEST(busy_server_reads_when_it_is_released),
		TEST(other_database_behind_the_name_is_read_anew),
		TEST(words_behind_a_broken_parse_are_not_its_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
