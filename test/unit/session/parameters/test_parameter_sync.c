/* SPDX-License-Identifier: ISC */
/* Parameters of a client that are set on its server: with its first messages, or before them. */
#include "session/relay/relay.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/parameter_draft.h"
#include "wire/writer.h"

static struct pool *pool;
static struct actor *client, *server;
static struct buffer words; /* what somebody is about to say */

static void start_with(const char *database, const char *settings)
{
	char config[300];

	snprintf(config, sizeof(config),
		"[databases]\ndb = host=/tmp %s\n[pgbouncer]\nserver_reset_query =\n%s",
		database, settings);
	fake_start(config);
	pool = fake_pool("db", "alice");
	client = fake_client(pool);
	server = fake_server(pool);
	buffer_init(&words);
}

static int start(void **state)
{
	(void)state;
	start_with("", "pool_mode = transaction\nmax_prepared_statements = 10\n");
	return 0;
}

static int start_session(void **state)
{
	(void)state;
	start_with("", "pool_mode = session\n");
	return 0;
}

/* --- what both know ----------------------------------------------------------------------- */

static void have(const struct actor *actor, struct parameters *set)
{
	assert_non_null(set);
	parameters_unref(actor_link(actor)->parameters);
	actor_link(actor)->parameters = set;
}

static void know(const struct actor *actor, const char *name, const char *value)
{
	struct parameter_table *table = fake_registry.parameters;

	have(actor,
		parameters_with(table, actor_link(actor)->parameters,
			(unsigned)parameter_index(table, name), value));
}

static const char *known(const struct actor *actor, const char *name)
{
	const int index = parameter_index(fake_registry.parameters, name);

	return parameters_get(actor_link(actor)->parameters, (unsigned)index);
}

static void follow(const struct actor *actor, const char *name, const char *value)
{
	struct parameter_draft draft;
	struct parameters *followed;

	parameter_draft_begin(&draft, fake_registry.parameters);
	parameter_draft_follow(&draft, name, value);
	followed = parameter_draft_end(&draft);
	have(actor,
		parameters_follow(
			fake_registry.parameters, actor_link(actor)->parameters, followed));
	parameters_unref(followed);
}

static void differ(void)
{
	know(client, "TimeZone", "UTC");
	know(server, "TimeZone", "GMT");
}

#define SET_ZONE "BEGIN;SET TimeZone='UTC';COMMIT"

/* --- what is said ------------------------------------------------------------------------- */

static void say_part(struct actor *actor, const struct buffer *buffer, size_t from, size_t to)
{
	say_bytes(actor, buffer->data + from, to - from);
}

/* The text of the first Query that it was sent since that was looked at last. */
static void assert_first_asked(struct actor *actor, const char *sql)
{
	size_t length, total;
	const uint8_t *output = scripted_output(actor->script, &length) + actor->heard;

	assert_int_equal(letters_read(output, length - actor->heard, &total), PQ_QUERY);
	assert_string_equal((const char *)output + 5, sql);
}

/* These letters, in one send, of which the first is the Query that sets this. */
static void assert_gathered(struct actor *actor, const char *sql, const char *letters)
{
	assert_first_asked(actor, sql);
	assert_heard(actor, letters);
	assert_true(server_is_syncing(actor_server(actor)));
}

/* What it says to a Query of ours, and then these letters. */
static void say_set(const char *letters)
{
	writer_command_complete(&words, "BEGIN");
	writer_command_complete(&words, "SET");
	writer_command_complete(&words, "COMMIT");
	writer_parameter_status(&words, "TimeZone", "UTC");
	letters_write(&words, SERVER_SPEAKS, "Z");
	letters_write(&words, SERVER_SPEAKS, letters);
	say_buffer(server, &words);
}

static void parse(const char *name, const char *text)
{
	const size_t mark = writer_begin(&words, PQ_PARSE);

	writer_string(&words, name);
	writer_string(&words, text);
	writer_int16(&words, 0);
	writer_end(&words, mark);
}

static void bind_to(const char *name)
{
	const size_t mark = writer_begin(&words, PQ_BIND);

	writer_string(&words, "");
	writer_string(&words, name);
	for (int i = 0; i < 3; i++)
		writer_int16(&words, 0);
	writer_end(&words, mark);
}

/* These letters behind the words, and the client says all of it. */
static void say_with(const char *letters)
{
	letters_write(&words, CLIENT_SPEAKS, letters);
	say_buffer(client, &words);
}

/* The client has a statement `s`, and the server has it too. */
static void prepare_s(void)
{
	parse("s", "one");
	bind_to("s");
	say_with("ES");
	assert_heard(server, "PBES");
	say(server, "12CZ");
	assert_heard(client, "12CZ");
}

/* Another client has prepared this. */
static void have_prepared(const char *text)
{
	struct actor *const mine = client;

	client = fake_client(pool);
	parse("x", text);
	say_with("S");
	assert_heard(server, "PS");
	say(server, "1Z");
	assert_heard(client, "1Z");
	client = mine;
}

/* --- together ----------------------------------------------------------------------------- */

static void test_sets_and_the_message_leave_in_one_write(void **state)
{
	const size_t sends = scripted_sends(server->script);

	(void)state;
	know(client, "application_name", "it's");
	know(server, "application_name", "");
	differ();
	say(client, "PBES");
	assert_int_equal(scripted_sends(server->script), sends + 1);
	assert_gathered(server, "BEGIN;SET TimeZone='UTC';SET application_name='it''s';COMMIT",
		"QPBES");
	say_parameter(server, "application_name", "it's");
	say_set("");
	assert_heard(client, "");
	assert_state(server, SERVER_PAIRED);
	say(server, "12DCZ");
	assert_heard(client, "12DCZ");
	assert_state(server, SERVER_IDLE);
	assert_ptr_equal(actor_link(client)->parameters, actor_link(server)->parameters);
	/* And not again. */
	say(client, "Q");
	assert_heard(server, "Q");
	say(server, "CZ");
}

static void test_who_waited_has_them_in_one_write_too(void **state)
{
	struct actor *other = fake_client(pool);
	const size_t sends = scripted_sends(server->script);

	(void)state;
	fake_set("default_pool_size", "1");
	say(other, "Q");
	differ();
	say(client, "PBES");
	assert_state(client, CLIENT_WAITING);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_int_equal(scripted_sends(server->script), sends + 2);
	assert_gathered(server, SET_ZONE, "QPBES");
	say_set("12DCZ");
	assert_heard(client, "12DCZ");
	assert_state(server, SERVER_IDLE);
}

static void test_answers_may_be_cut_anywhere(void **state)
{
	struct buffer answer;

	(void)state;
	know(client, "TimeZone", "UTC");
	buffer_init(&answer);
	letters_write(&answer, SERVER_SPEAKS, "CC");
	writer_parameter_status(&answer, "TimeZone", "UTC");
	letters_write(&answer, SERVER_SPEAKS, "NCZTDCZ");
	for (size_t cut = 0; cut <= answer.length; cut++) {
		know(server, "TimeZone", "GMT");
		say(client, "Q");
		assert_gathered(server, SET_ZONE, "QQ");
		say_part(server, &answer, 0, cut);
		say_part(server, &answer, cut, answer.length);
		assert_heard(client, "TDCZ");
		assert_state(server, SERVER_IDLE);
	}
	buffer_free(&answer);
}

static void test_the_client_is_read_on_when_they_have_succeeded(void **state)
{
	(void)state;
	differ();
	say(client, "PB");
	assert_heard(server, "QPB");
	say(client, "ES");
	assert_heard(server, "");
	say_set("");
	scripted_run_all(client->script);
	assert_heard(server, "ES");
	say(server, "12DCZ");
	assert_heard(client, "12DCZ");
	assert_state(server, SERVER_IDLE);
}

/* Its half is held meanwhile, and joined with the rest. */
static void test_half_a_message_behind_them_is_no_loss(void **state)
{
	(void)state;
	differ();
	letters_write(&words, CLIENT_SPEAKS, "QQ");
	say_part(client, &words, 0, words.length - 3);
	assert_heard(server, "QQ");
	say_part(client, &words, words.length - 3, words.length);
	assert_heard(server, "");
	say_set("CZ");
	scripted_run_all(client->script);
	assert_heard(client, "CZ");
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
	buffer_free(&words);
}

static void test_a_client_in_a_session_has_them_once(void **state)
{
	(void)state;
	differ();
	say(client, "Q");
	assert_gathered(server, SET_ZONE, "QQ");
	say_set("CZ");
	assert_heard(client, "CZ");
	assert_state(server, SERVER_PAIRED);
	say(client, "Q");
	assert_heard(server, "Q");
}

static void test_a_flush_that_nothing_answers_frees_the_server(void **state)
{
	(void)state;
	differ();
	say(client, "H");
	assert_heard(server, "QH");
	say_set("");
	assert_state(server, SERVER_IDLE);
	assert_state(client, CLIENT_IDLE);
	assert_heard(client, "");
}

static void test_what_a_client_sets_itself_is_its_own(void **state)
{
	(void)state;
	differ();
	say_query(client, "set timezone = 'CET'");
	hear(server);
	writer_command_complete(&words, "SET");
	say_set("");
	say_parameter(server, "TimeZone", "CET");
	say(server, "CZ");
	assert_heard(client, "SCZ");
	assert_string_equal(known(client, "TimeZone"), "CET");
	assert_state(server, SERVER_IDLE);
}

static void test_the_servers_spelling_is_taken_over(void **state)
{
	(void)state;
	know(client, "DateStyle", "iso");
	know(server, "DateStyle", "German, DMY");
	say(client, "Q");
	assert_gathered(server, "BEGIN;SET DateStyle='iso';COMMIT", "QQ");
	say_parameter(server, "DateStyle", "ISO, DMY");
	say(server, "CZ");
	assert_string_equal(known(client, "DateStyle"), "ISO, DMY");
	assert_heard(client, "");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_what_differs_in_letter_case_only_is_not_set(void **state)
{
	(void)state;
	know(client, "client_encoding", "utf8");
	know(server, "client_encoding", "UTF8");
	say(client, "Q");
	assert_heard(server, "Q");
	assert_string_equal(known(client, "client_encoding"), "UTF8");
	say(server, "CZ");
	assert_ptr_equal(actor_link(client)->parameters, actor_link(server)->parameters);
}

static void test_what_only_one_side_knows_is_not_set(void **state)
{
	(void)state;
	know(client, "TimeZone", "UTC");
	know(server, "DateStyle", "ISO");
	say(client, "Q");
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_string_equal(known(client, "TimeZone"), "UTC");
	assert_string_equal(known(client, "DateStyle"), "ISO");
}

/* --- prepared statements ------------------------------------------------------------------ */

/* Nothing is said to the client before the SETs have succeeded. */
static void test_answers_of_ours_come_behind_them(void **state)
{
	static const char *const ends[] = {"ES", "EH"};

	(void)state;
	have_prepared("one");
	have_prepared("two");
	for (size_t i = 0; i < COUNT(ends); i++) {
		differ();
		parse(i ? "u" : "t", i ? "two" : "one");
		bind_to(i ? "u" : "t");
		say_with(ends[i]);
		assert_heard(client, "");
		say(server, "C");
		assert_heard(client, "");
		say_set("");
		assert_heard(client, "1");
		say(server, i ? "2C" : "2CZ");
		assert_heard(client, i ? "2C" : "2CZ");
	}
	say(client, "S");
	say(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static void test_an_answer_of_ours_that_is_all_comes_behind_them(void **state)
{
	(void)state;
	have_prepared("one");
	differ();
	parse("t", "one");
	say_with("H");
	assert_heard(server, "QH");
	assert_heard(client, "");
	say_set("");
	assert_heard(client, "1");
	say(client, "S");
	assert_heard(server, "S");
	say(server, "Z");
	assert_state(server, SERVER_IDLE);
}

/* A server that has lost it is told again, and not what was set: in both orders of events. */
static void lose_s(bool at_once)
{
	differ();
	bind_to("s");
	say_with("ES");
	assert_heard(server, "QBES");
	say_set("");
	say_error(server, "26000", "prepared statement does not exist");
	assert_heard(client, "");
	if (!at_once)
		assert_true(actor_client(client)->link.stream.paused);
	say(client, "Q");
	assert_heard(server, "");
	say(server, "Z");
	assert_heard(server, "CPBES");
	assert_heard(client, "");
	say(server, "312CZ");
	assert_heard(client, "2CZ");
	scripted_run_all(client->script);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_heard(client, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_batch_that_is_said_again_sets_nothing_again(void **state)
{
	(void)state;
	prepare_s();
	lose_s(false);
}

static void test_a_batch_is_said_again_where_all_answers_come_at_once(void **state)
{
	(void)state;
	prepare_s();
	differ();
	bind_to("s");
	say_with("ES");
	assert_heard(server, "QBES");
	letters_write(&words, SERVER_SPEAKS, "CCCZ");
	writer_error(&words, "ERROR", "26000", "prepared statement does not exist");
	letters_write(&words, SERVER_SPEAKS, "Z");
	say_buffer(server, &words);
	assert_heard(server, "CPBES");
	say(server, "312CZ");
	assert_heard(client, "2CZ");
	assert_state(server, SERVER_IDLE);
	lose_s(true);
}

/* Our Query has ended the one that the server had. */
static void test_the_unnamed_statement_is_there_again(void **state)
{
	(void)state;
	parse("", "two");
	say_with("S");
	hear(server);
	say(server, "1Z");
	hear(client);
	differ();
	bind_to("");
	say_with("ES");
	assert_heard(server, "QPBES");
	say_set("12CZ");
	assert_heard(client, "2CZ");
}

/* --- alone -------------------------------------------------------------------------------- */

/* The client's message follows the answer. */
static void assert_goes_alone(const char *queries, const char *letters)
{
	assert_heard(server, queries);
	assert_heard(client, "");
	for (const char *each = queries; *each; each++) {
		assert_heard(server, "");
		say(server, "CZ");
	}
	assert_heard(server, letters);
	say(server, "CZ");
	assert_heard(client, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_what_depends_on_more_than_its_value_goes_alone(void **state)
{
	static const char *const names[] = {"role", "session_authorization", "temp_buffers"};
	char sql[100];

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		follow(client, names[i], "7");
		say(client, "Q");
		snprintf(sql, sizeof(sql), "SET %s='7';", names[i]);
		assert_first_asked(server, sql);
		assert_goes_alone("Q", "Q");
		/* It is taken back alone as well. */
		have(client, parameters_empty(fake_registry.parameters));
		say(client, "Q");
		snprintf(sql, sizeof(sql), "RESET %s;", names[i]);
		assert_first_asked(server, sql);
		assert_goes_alone("Q", "Q");
	}
}

static void test_what_is_not_ascii_goes_alone(void **state)
{
	(void)state;
	know(client, "application_name", "caf\xc3\xa9");
	know(server, "application_name", "");
	say(client, "Q");
	assert_first_asked(server, "SET application_name='caf\xc3\xa9';");
	assert_goes_alone("Q", "Q");
}

static void test_what_is_not_ascii_follows_its_encoding(void **state)
{
	(void)state;
	know(client, "application_name", "caf\xe9");
	know(server, "application_name", "");
	know(client, "client_encoding", "LATIN1");
	know(server, "client_encoding", "UTF8");
	say(client, "Q");
	assert_first_asked(server, "SET client_encoding='LATIN1'");
	assert_goes_alone("QQ", "Q");
}

static void test_resets_with_a_connect_query_go_alone(void **state)
{
	(void)state;
	fake_end(NULL);
	start_with("connect_query='select 1'", "pool_mode = transaction\n");
	follow(client, "work_mem", "1MB");
	say(client, "Q");
	assert_gathered(server, "BEGIN;SET work_mem='1MB';COMMIT", "QQ");
	say(server, "CZCZ");
	hear(client);
	have(client, parameters_empty(fake_registry.parameters));
	say(client, "Q");
	assert_first_asked(server, "RESET work_mem;select 1\n;");
	assert_goes_alone("Q", "Q");
}

static void test_much_follows_them(void **state)
{
	const char *letters;
	size_t length;

	(void)state;
	differ();
	while (words.length <= RELAY_KEPT_MAX)
		letters_write(&words, CLIENT_SPEAKS, "Q");
	length = words.length;
	say_buffer(client, &words);
	assert_gathered(server, SET_ZONE, "Q");
	say_set("");
	letters = hear(server);
	assert_int_equal(strspn(letters, "Q"), strlen(letters));
	scripted_forget_output(server->script);
	server->heard = server->served = 0;
	assert_int_equal(actor_client(client)->link.held_length, 0);
	assert_true(length > RELAY_KEPT_MAX);
	for (uint32_t left = actor_server(server)->requests.count; left > 0; left--)
		say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

/* What waits can go elsewhere when the server says sasl_final behind its answer. */
static void test_a_server_that_says_farewell_behind_them_costs_nothing(void **state)
{
	struct actor *other = server;

	(void)state;
	server = fake_server(pool);
	follow(client, "role", "carol");
	say(client, "Q");
	assert_heard(server, "Q");
	say(server, "CZE");
	assert_gone(server);
	server = other;
	assert_goes_alone("Q", "Q");
}

static void test_sets_that_leave_a_transaction_open_do_not_free_the_server(void **state)
{
	(void)state;
	follow(client, "role", "carol");
	say(client, "Q");
	say(server, "C>");
	/* No PostgreSQL does this; whatever is made of it, nobody else may get such a server. */
	assert_state(server, SERVER_PAIRED);
	say(client, "X");
	assert_state(server, SERVER_DRAINING);
	assert_heard(server, "QQ");
	say(server, "C>");
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

/* --- what goes wrong ---------------------------------------------------------------------- */

/* Nothing of the client's is run or told: the transaction of the SETs has failed. */
static void test_a_parameter_that_cannot_be_set_ends_both(void **state)
{
	(void)state;
	know(client, "TimeZone", "Nowhere");
	know(server, "TimeZone", "GMT");
	say(client, "Q");
	assert_gathered(server, "BEGIN;SET TimeZone='Nowhere';COMMIT", "QQ");
	letters_write(&words, SERVER_SPEAKS, "CE!E!");
	say_buffer(server, &words);
	assert_told(client, "08P01", "invalid server parameter");
	assert_heard(server, "X");
	assert_gone(server);
	assert_true(fake_logged("varcache_apply failed: ERROR: division by zero"));
}

static void test_one_that_may_fail_and_does_has_another_server_tried(void **state)
{
	struct actor *other = server;

	(void)state;
	server = fake_server(pool);
	follow(server, "temp_buffers", "100");
	follow(other, "temp_buffers", "200");
	follow(client, "temp_buffers", "200");
	say(client, "Q");
	assert_heard(server, "Q");
	say(server, "EZ");
	assert_gone(server);
	assert_heard(other, "Q");
	say(other, "CZ");
	assert_heard(client, "CZ");
}

static void test_a_server_that_is_dead_when_asked_to_set_costs_nothing(void **state)
{
	struct actor *other = server;

	(void)state;
	server = fake_server(pool);
	differ();
	know(other, "TimeZone", "GMT");
	scripted_break(server->script);
	say(client, "Q");
	assert_gone(server);
	assert_gathered(other, SET_ZONE, "QQ");
	postgres_work(other);
	assert_heard(client, "TDCZ");
}

/* Nobody knows whether it came to the client's message. */
static void test_a_server_that_dies_while_it_sets_is_told(void **state)
{
	(void)state;
	server = fake_server(pool);
	fake_advance(USEC_PER_SEC);
	differ();
	say(client, "Q");
	leave(server);
	assert_told(client, "08006", "server conn crashed?");
}

/* The session has ended before it came to the client's messages: all of them go elsewhere. */
static void test_a_server_that_says_farewell_before_them_costs_nothing(void **state)
{
	struct actor *other = server;

	(void)state;
	prepare_s();
	server = fake_server(pool);
	fake_advance(USEC_PER_SEC);
	differ();
	know(other, "TimeZone", "UTC");
	bind_to("s");
	letters_write(&words, CLIENT_SPEAKS, "ESQ");
	say_part(client, &words, 0, words.length - 1);
	assert_heard(server, "QPBES");
	say_error(server, "57P01", "terminating connection due to administrator command");
	assert_gone(server);
	assert_heard(other, "BES");
	say(other, "2CZ");
	assert_heard(client, "2CZ");
	say_part(client, &words, words.length - 1, words.length);
	assert_heard(other, "Q");
	say(other, "CZ");
	assert_heard(client, "CZ");
	buffer_free(&words);
}

/* What is said behind their end answers the client. */
static void test_a_farewell_behind_their_end_is_told(void **state)
{
	(void)state;
	server = fake_server(pool);
	fake_advance(USEC_PER_SEC);
	differ();
	say(client, "Q");
	say_set("");
	say_error(server, "57P01", "terminating connection due to administrator command");
	leave(server);
	assert_string_equal(hear(client), "EE");
	assert_gone(client);
}

static void test_sets_that_are_cancelled_cancel_the_query(void **state)
{
	(void)state;
	differ();
	say(client, "PBES");
	assert_heard(server, "QPBES");
	say_error(server, "57014", "canceling statement due to user request");
	assert_state(server, SERVER_PAIRED);
	say(server, "!");
	assert_gone(server);
	assert_heard(client, "EZ");
	assert_string_equal(client->sqlstate, "57014");
	assert_string_equal(client->severity, "ERROR");
	assert_state(client, CLIENT_IDLE);
}

/* The rest of the batch is skipped, wherever it is. */
static void test_a_batch_that_is_cancelled_ends_at_its_sync(void **state)
{
	(void)state;
	differ();
	say(client, "PB");
	say_error(server, "57014", "canceling statement due to user request");
	say(server, "!");
	assert_heard(client, "E");
	say(client, "ES");
	assert_heard(client, "Z");
	assert_state(client, CLIENT_IDLE);
}

/* Behind what ends the failed transaction something may have been run, as far as we see. */
static void test_what_ends_a_transaction_may_have_been_run(void **state)
{
	static const char *const texts[] = {"commit", "select 1; Rollback", "/* so */ABORT",
		"end", "prepare transaction 'x'"};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		differ();
		if (i % 2 == 0) {
			say_query(client, texts[i]);
		} else {
			parse("", texts[i]);
			say_with("BES");
		}
		say_error(server, "57014", "canceling statement due to user request");
		say(server, "!");
		hear(client);
		assert_gone(client);
		assert_gone(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

/* So it is with one that was prepared before, or that nobody knows. */
static void test_the_statement_that_a_bind_is_for_counts(void **state)
{
	static const struct {
		const char *name, *text;
		bool is_certain;
	} cases[] = {{"s", "commit", false}, {"s", "one", true}, {"", "commit", false},
		{"", "one", true}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		parse(cases[i].name, cases[i].text);
		say_with("S");
		say(server, "1Z");
		hear(client);
		differ();
		bind_to(cases[i].name);
		say_with("ES");
		say_error(server, "57014", "canceling statement due to user request");
		say(server, "!");
		assert_string_equal(hear(client), cases[i].is_certain ? "EZ" : "E");
		assert_int_equal(is_gone(client), !cases[i].is_certain);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

/* Outside of a failed transaction the query may have been run. */
static void test_sets_cancelled_before_they_began_end_both(void **state)
{
	(void)state;
	differ();
	say(client, "Q");
	say_error(server, "57014", "canceling statement due to user request");
	say(server, "Z");
	assert_told(client, "57014", "canceling statement due to user request");
	assert_gone(server);
}

static void test_sets_alone_that_are_cancelled_cancel_the_query(void **state)
{
	(void)state;
	follow(client, "role", "carol");
	say(client, "Q");
	say_error(server, "57014", "canceling statement due to user request");
	say(server, "Z");
	assert_gone(server);
	assert_heard(client, "EZ");
	assert_state(client, CLIENT_IDLE);
}

/* A PostgreSQL does not do this: there is no telling what is answered next. */
static void test_sets_that_leave_a_transaction_end_both(void **state)
{
	(void)state;
	differ();
	say(client, "Q");
	say(server, "C>");
	assert_told(client, "08P01", "invalid server parameter");
	assert_gone(server);
}

static void test_a_server_that_takes_nothing_is_waited_for(void **state)
{
	(void)state;
	differ();
	allow(server, 40);
	say(client, "Q");
	say_set("");
	say(client, "Q");
	allow(server, SCRIPTED_ANY);
	scripted_run_all(client->script);
	assert_heard(server, "QQQ");
	say(server, "CZCZ");
	assert_heard(client, "CZCZ");
	assert_state(server, SERVER_IDLE);
}

/* --- who leaves --------------------------------------------------------------------------- */

/* Our SETs are cancelled by nobody; then what went behind them is. */
static void test_a_query_that_nobody_waits_for_is_cancelled_behind_them(void **state)
{
	(void)state;
	differ();
	say_query(client, "slow");
	assert_heard(server, "QQ");
	leave(client);
	assert_gone(client);
	assert_state(server, SERVER_DRAINING);
	assert_null(fake_launched());
	say_set("");
	assert_state(server, SERVER_DRAINING);
	assert_non_null(fake_launched());
	say_error(server, "57014", "canceling statement due to user request");
	say(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static void test_what_a_client_left_open_is_ended_behind_them(void **state)
{
	(void)state;
	differ();
	say(client, "PBE");
	assert_heard(server, "QPBE");
	say(client, "X");
	assert_heard(server, "");
	say_set("");
	scripted_run_all(client->script);
	assert_gone(client);
	assert_heard(server, "QS");
	say(server, "12CCZZ");
	assert_state(server, SERVER_IDLE);
	/* What was set is known. */
	client = fake_client(pool);
	know(client, "TimeZone", "UTC");
	say(client, "Q");
	assert_heard(server, "Q");
}

static void test_a_farewell_with_the_first_messages_is_polite(void **state)
{
	(void)state;
	differ();
	say(client, "QX");
	assert_gone(client);
	assert_heard(server, "QQ");
	assert_state(server, SERVER_DRAINING);
	say_set("CZ");
	assert_state(server, SERVER_IDLE);
	assert_null(fake_launched());
}

/* What was set is known of the client alone. */
static void test_a_client_that_leaves_while_what_it_follows_is_set(void **state)
{
	(void)state;
	follow(client, "work_mem", "1MB");
	say(client, "Q");
	assert_heard(server, "QQ");
	leave(client);
	assert_gone(server);
}

static void test_a_server_that_cannot_be_asked_to_cancel_is_closed(void **state)
{
	(void)state;
	differ();
	free(actor_server(server)->cancel_key);
	actor_server(server)->cancel_key = NULL;
	say(client, "Q");
	leave(client);
	assert_gone(server);
}

static void test_sets_alone_end_by_themselves(void **state)
{
	(void)state;
	know(client, "application_name", "caf\xc3\xa9");
	know(server, "application_name", "");
	say(client, "Q");
	leave(client);
	assert_heard(server, "Q");
	assert_state(server, SERVER_DRAINING);
	say(server, "CZ");
	assert_null(fake_launched());
	assert_state(server, SERVER_IDLE);
}

/* --- what is counted ---------------------------------------------------------------------- */

static void test_a_query_is_timed_from_its_own_beginning(void **state)
{
	const struct totals *totals = &pool->stats.current;

	(void)state;
	differ();
	say(client, "Q");
	fake_advance(USEC_PER_SEC);
	say_set("");
	fake_advance(USEC_PER_SEC);
	assert_int_equal(totals->query_time, 0);
	say(server, "CZ");
	assert_int_equal(totals->queries, 1);
	assert_int_equal(totals->assignments, 1);
	letters_write(&words, CLIENT_SPEAKS, "Q");
	assert_int_equal(totals->received, words.length); /* and nothing of what was set */
	buffer_free(&words);
	assert_int_equal(totals->query_time, 2 * USEC_PER_SEC);
	assert_int_equal(totals->transaction_time, 2 * USEC_PER_SEC);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_session, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(sets_and_the_message_leave_in_one_write),
		TEST(who_waited_has_them_in_one_write_too),
		TEST(answers_may_be_cut_anywhere),
		TEST(the_client_is_read_on_when_they_have_succeeded),
		TEST(half_a_message_behind_them_is_no_loss),
		SESSION_TEST(a_client_in_a_session_has_them_once),
		TEST(a_flush_that_nothing_answers_frees_the_server),
		TEST(what_a_client_sets_itself_is_its_own),
		TEST(the_servers_spelling_is_taken_over),
		TEST(what_differs_in_letter_case_only_is_not_set),
		TEST(what_only_one_side_knows_is_not_set),
		TEST(answers_of_ours_come_behind_them),
		TEST(an_answer_of_ours_that_is_all_comes_behind_them),
		TEST(a_batch_that_is_said_again_sets_nothing_again),
		TEST(a_batch_is_said_again_where_all_answers_come_at_once),
		TEST(the_unnamed_statement_is_there_again),
		TEST(what_depends_on_more_than_its_value_goes_alone),
		TEST(what_is_not_ascii_goes_alone),
		TEST(what_is_not_ascii_follows_its_encoding),
		TEST(resets_with_a_connect_query_go_alone),
		TEST(much_follows_them),
		TEST(a_server_that_says_farewell_behind_them_costs_nothing),
		TEST(sets_that_leave_a_transaction_open_do_not_free_the_server),
		TEST(a_parameter_that_cannot_be_set_ends_both),
		TEST(one_that_may_fail_and_does_has_another_server_tried),
		TEST(a_server_that_is_dead_when_asked_to_set_costs_nothing),
		TEST(a_server_that_dies_while_it_sets_is_told),
		TEST(a_server_that_says_farewell_before_them_costs_nothing),
		TEST(a_farewell_behind_their_end_is_told),
		TEST(sets_that_are_cancelled_cancel_the_query),
		TEST(a_batch_that_is_cancelled_ends_at_its_sync),
		TEST(what_ends_a_transaction_may_have_been_run),
		TEST(the_statement_that_a_bind_is_for_counts),
		TEST(sets_cancelled_before_they_began_end_both),
		TEST(sets_alone_that_are_cancelled_cancel_the_query),
		TEST(sets_that_leave_a_transaction_end_both),
		TEST(a_server_that_takes_nothing_is_waited_for),
		TEST(a_query_that_nobody_waits_for_is_cancelled_behind_them),
		TEST(what_a_client_left_open_is_ended_behind_them),
		TEST(a_farewell_with_the_first_messages_is_polite),
		TEST(a_client_that_leaves_while_what_it_follows_is_set),
		TEST(a_server_that_cannot_be_asked_to_cancel_is_closed),
		TEST(sets_alone_end_by_themselves),
		TEST(a_query_is_timed_from_its_own_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
