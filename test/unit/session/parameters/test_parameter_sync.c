/* SPDX-License-Identifier: ISC */
/*
 * Parameters of a client that are set on its server: with its first messages, or before them.
 */
#include "session/relay/relay.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/parameter_draft.h"
#include "wire/writer.h"

static struct pool *pool;
static struct endpoint *client, *server;
static struct buffer outgoing; /* messages that the next call sends */

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
	buffer_init(&outgoing);
}

static int start(void **state)
{
	(void)state;
	start_with("", "pool_mode = transaction\nmax_prepared_statements = 10\n");
	return 0;
}

static int start_ignoring(void **state)
{
	(void)state;
	start_with("", "pool_mode = transaction\nsession_state = ignore\n");
	return 0;
}

static int start_session(void **state)
{
	(void)state;
	start_with("", "pool_mode = session\n");
	return 0;
}

/* --- parameters of client and server ------------------------------------------------------ */

static void set_parameters(const struct endpoint *endpoint, struct parameters *set)
{
	assert_non_null(set);
	parameters_unref(endpoint_link(endpoint)->parameters);
	endpoint_link(endpoint)->parameters = set;
}

static void set_parameter(const struct endpoint *endpoint, const char *name, const char *value)
{
	struct parameter_table *table = fake_registry.parameters;

	set_parameters(endpoint,
		parameters_with(table, endpoint_link(endpoint)->parameters,
			(unsigned)parameter_index(table, name), value));
}

static const char *parameter_of(const struct endpoint *endpoint, const char *name)
{
	const int index = parameter_index(fake_registry.parameters, name);

	return parameters_get(endpoint_link(endpoint)->parameters, (unsigned)index);
}

static void follow_parameter(
	const struct endpoint *endpoint, const char *name, const char *value)
{
	struct parameter_draft draft;
	struct parameters *followed;

	parameter_draft_begin(&draft, fake_registry.parameters);
	parameter_draft_follow(&draft, name, value);
	followed = parameter_draft_end(&draft);
	set_parameters(endpoint,
		parameters_follow(fake_registry.parameters, endpoint_link(endpoint)->parameters,
			followed));
	parameters_unref(followed);
}

static void make_time_zones_differ(void)
{
	set_parameter(client, "TimeZone", "UTC");
	set_parameter(server, "TimeZone", "GMT");
}

#define SET_ZONE "BEGIN;SET TimeZone='UTC';COMMIT"

/* --- messages ----------------------------------------------------------------------------- */

static void send_part(
	struct endpoint *endpoint, const struct buffer *buffer, size_t from, size_t to)
{
	send_bytes(endpoint, buffer->data + from, to - from);
}

/* The first message that was sent since the last check is a Query with this text. */
static void assert_first_query(struct endpoint *endpoint, const char *sql)
{
	size_t length, total;
	const uint8_t *output =
		scripted_output(endpoint->script, &length) + endpoint->read_offset;

	assert_int_equal(
		letters_read(output, length - endpoint->read_offset, &total), PQ_QUERY);
	assert_string_equal((const char *)output + 5, sql);
}

/* These messages were sent in one write; the first is the Query that sets the parameters. */
static void assert_sent_together(
	struct endpoint *endpoint, const char *sql, const char *letters)
{
	assert_first_query(endpoint, sql);
	assert_received(endpoint, letters);
	assert_true(server_is_syncing(endpoint_server(endpoint)));
}

/* The server's answer to our Query, and then these messages. */
static void answer_set(const char *letters)
{
	writer_command_complete(&outgoing, "BEGIN");
	writer_command_complete(&outgoing, "SET");
	writer_command_complete(&outgoing, "COMMIT");
	writer_parameter_status(&outgoing, "TimeZone", "UTC");
	letters_write(&outgoing, FROM_SERVER, "Z");
	letters_write(&outgoing, FROM_SERVER, letters);
	send_buffer(server, &outgoing);
}

static void write_parse(const char *name, const char *text)
{
	const size_t mark = writer_begin(&outgoing, PQ_PARSE);

	writer_string(&outgoing, name);
	writer_string(&outgoing, text);
	writer_int16(&outgoing, 0);
	writer_end(&outgoing, mark);
}

static void write_bind(const char *name)
{
	const size_t mark = writer_begin(&outgoing, PQ_BIND);

	writer_string(&outgoing, "");
	writer_string(&outgoing, name);
	for (int i = 0; i < 3; i++)
		writer_int16(&outgoing, 0);
	writer_end(&outgoing, mark);
}

/* The client sends the prepared messages, followed by these. */
static void send_with(const char *letters)
{
	letters_write(&outgoing, FROM_CLIENT, letters);
	send_buffer(client, &outgoing);
}

/* The client has a statement `s`, and the server has it too. */
static void prepare_s(void)
{
	write_parse("s", "one");
	write_bind("s");
	send_with("ES");
	assert_received(server, "PBES");
	send_letters(server, "12CZ");
	assert_received(client, "12CZ");
}

/* Another client prepares this statement on the server. */
static void prepare_by_another_client(const char *text)
{
	struct endpoint *const mine = client;

	client = fake_client(pool);
	write_parse("x", text);
	send_with("S");
	assert_received(server, "PS");
	send_letters(server, "1Z");
	assert_received(client, "1Z");
	client = mine;
}

/* --- SET and the client's messages in one write ------------------------------------------- */

static void test_sets_and_the_query_are_sent_in_one_write(void **state)
{
	const size_t sends = scripted_sends(server->script);

	(void)state;
	set_parameter(client, "application_name", "it's");
	set_parameter(server, "application_name", "");
	make_time_zones_differ();
	send_letters(client, "PBES");
	assert_int_equal(scripted_sends(server->script), sends + 1);
	assert_sent_together(server,
		"BEGIN;SET TimeZone='UTC';SET application_name='it''s';COMMIT", "QPBES");
	send_parameter_status(server, "application_name", "it's");
	answer_set("");
	assert_received(client, "");
	assert_state(server, SERVER_PAIRED);
	send_letters(server, "12DCZ");
	assert_received(client, "12DCZ");
	assert_state(server, SERVER_IDLE);
	assert_ptr_equal(endpoint_link(client)->parameters, endpoint_link(server)->parameters);
	/* The parameters are not set a second time. */
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "CZ");
}

static void test_waiting_client_has_sets_and_query_sent_in_one_write(void **state)
{
	struct endpoint *other = fake_client(pool);
	const size_t sends = scripted_sends(server->script);

	(void)state;
	fake_set("default_pool_size", "1");
	send_letters(other, "Q");
	make_time_zones_differ();
	send_letters(client, "PBES");
	assert_state(client, CLIENT_WAITING);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_int_equal(scripted_sends(server->script), sends + 2);
	assert_sent_together(server, SET_ZONE, "QPBES");
	answer_set("12DCZ");
	assert_received(client, "12DCZ");
	assert_state(server, SERVER_IDLE);
}

static void test_answers_to_sets_may_be_cut_anywhere(void **state)
{
	struct buffer answer;

	(void)state;
	set_parameter(client, "TimeZone", "UTC");
	buffer_init(&answer);
	letters_write(&answer, FROM_SERVER, "CC");
	writer_parameter_status(&answer, "TimeZone", "UTC");
	letters_write(&answer, FROM_SERVER, "NCZTDCZ");
	for (size_t cut = 0; cut <= answer.length; cut++) {
		set_parameter(server, "TimeZone", "GMT");
		send_letters(client, "Q");
		assert_sent_together(server, SET_ZONE, "QQ");
		send_part(server, &answer, 0, cut);
		send_part(server, &answer, cut, answer.length);
		assert_received(client, "TDCZ");
		assert_state(server, SERVER_IDLE);
	}
	buffer_free(&answer);
}

static void test_client_is_read_again_when_its_sets_have_succeeded(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_letters(client, "PB");
	assert_received(server, "QPB");
	send_letters(client, "ES");
	assert_received(server, "");
	answer_set("");
	scripted_run_all(client->script);
	assert_received(server, "ES");
	send_letters(server, "12DCZ");
	assert_received(client, "12DCZ");
	assert_state(server, SERVER_IDLE);
}

/* The incomplete message is kept meanwhile, and joined with its rest. */
static void test_incomplete_message_after_the_sets_is_kept(void **state)
{
	(void)state;
	make_time_zones_differ();
	letters_write(&outgoing, FROM_CLIENT, "QQ");
	send_part(client, &outgoing, 0, outgoing.length - 3);
	assert_received(server, "QQ");
	send_part(client, &outgoing, outgoing.length - 3, outgoing.length);
	assert_received(server, "");
	answer_set("CZ");
	scripted_run_all(client->script);
	assert_received(client, "CZ");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
	buffer_free(&outgoing);
}

static void test_session_client_has_its_parameters_set_once(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_letters(client, "Q");
	assert_sent_together(server, SET_ZONE, "QQ");
	answer_set("CZ");
	assert_received(client, "CZ");
	assert_state(server, SERVER_PAIRED);
	send_letters(client, "Q");
	assert_received(server, "Q");
}

static void test_flush_of_an_idle_client_needs_no_server(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_letters(client, "H");
	assert_received(server, "");
	assert_state(server, SERVER_IDLE);
	assert_state(client, CLIENT_IDLE);
	assert_received(client, "");
	send_letters(client, "HQ");
	assert_sent_together(server, SET_ZONE, "QQ");
}

static void test_value_set_by_the_client_replaces_the_synchronized_one(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_query(client, "set timezone = 'CET'");
	read_letters(server);
	writer_command_complete(&outgoing, "SET");
	answer_set("");
	send_parameter_status(server, "TimeZone", "CET");
	send_letters(server, "CZ");
	assert_received(client, "SCZ");
	assert_string_equal(parameter_of(client, "TimeZone"), "CET");
	assert_state(server, SERVER_IDLE);
}

static void test_spelling_of_the_server_is_stored_for_the_client(void **state)
{
	(void)state;
	set_parameter(client, "DateStyle", "iso");
	set_parameter(server, "DateStyle", "German, DMY");
	send_letters(client, "Q");
	assert_sent_together(server, "BEGIN;SET DateStyle='iso';COMMIT", "QQ");
	send_parameter_status(server, "DateStyle", "ISO, DMY");
	send_letters(server, "CZ");
	assert_string_equal(parameter_of(client, "DateStyle"), "ISO, DMY");
	assert_received(client, "");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_value_that_differs_only_in_case_is_not_set(void **state)
{
	(void)state;
	set_parameter(client, "client_encoding", "utf8");
	set_parameter(server, "client_encoding", "UTF8");
	send_letters(client, "Q");
	assert_received(server, "Q");
	assert_string_equal(parameter_of(client, "client_encoding"), "UTF8");
	send_letters(server, "CZ");
	assert_ptr_equal(endpoint_link(client)->parameters, endpoint_link(server)->parameters);
}

static void test_parameter_known_of_one_side_only_is_not_set(void **state)
{
	(void)state;
	set_parameter(client, "TimeZone", "UTC");
	set_parameter(server, "DateStyle", "ISO");
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_string_equal(parameter_of(client, "TimeZone"), "UTC");
	assert_string_equal(parameter_of(client, "DateStyle"), "ISO");
}

/* --- prepared statements ------------------------------------------------------------------ */

/* Nothing is sent to the client before the SETs have succeeded. */
static void test_synthesized_answers_are_sent_after_the_sets_succeeded(void **state)
{
	static const char *const ends[] = {"ES", "EH"};

	(void)state;
	prepare_by_another_client("one");
	prepare_by_another_client("two");
	for (size_t i = 0; i < COUNT(ends); i++) {
		make_time_zones_differ();
		write_parse(i ? "u" : "t", i ? "two" : "one");
		write_bind(i ? "u" : "t");
		send_with(ends[i]);
		assert_received(client, "");
		send_letters(server, "C");
		assert_received(client, "");
		answer_set("");
		assert_received(client, "1");
		send_letters(server, i ? "2C" : "2CZ");
		assert_received(client, i ? "2C" : "2CZ");
	}
	send_letters(client, "S");
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static void test_batch_of_synthesized_answers_waits_for_the_sets(void **state)
{
	(void)state;
	prepare_by_another_client("one");
	make_time_zones_differ();
	write_parse("t", "one");
	send_with("H");
	assert_received(server, "QH");
	assert_received(client, "");
	answer_set("");
	assert_received(client, "1");
	send_letters(client, "S");
	assert_received(server, "S");
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
}

/*
 * A server that has lost the statement prepares it again, but sets nothing again: both when
 * ReadyForQuery arrives with the error and when it arrives later.
 */
static void server_loses_s(bool at_once)
{
	make_time_zones_differ();
	write_bind("s");
	send_with("ES");
	assert_received(server, "QBES");
	answer_set("");
	send_error(server, "26000", "prepared statement does not exist");
	assert_received(client, "");
	if (!at_once)
		assert_true(endpoint_client(client)->link.stream.paused);
	send_letters(client, "Q");
	assert_received(server, "");
	send_letters(server, "Z");
	assert_received(server, "CPBES");
	assert_received(client, "");
	send_letters(server, "312CZ");
	assert_received(client, "2CZ");
	scripted_run_all(client->script);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_replayed_batch_does_not_repeat_the_sets(void **state)
{
	(void)state;
	prepare_s();
	server_loses_s(false);
}

static void test_batch_is_replayed_when_all_answers_arrive_together(void **state)
{
	(void)state;
	prepare_s();
	make_time_zones_differ();
	write_bind("s");
	send_with("ES");
	assert_received(server, "QBES");
	letters_write(&outgoing, FROM_SERVER, "CCCZ");
	writer_error(&outgoing, "ERROR", "26000", "prepared statement does not exist");
	letters_write(&outgoing, FROM_SERVER, "Z");
	send_buffer(server, &outgoing);
	assert_received(server, "CPBES");
	send_letters(server, "312CZ");
	assert_received(client, "2CZ");
	assert_state(server, SERVER_IDLE);
	server_loses_s(true);
}

/* Our Query has dropped the unnamed statement of the server's session. */
static void test_unnamed_statement_is_prepared_again_after_the_sets(void **state)
{
	(void)state;
	write_parse("", "two");
	send_with("S");
	read_letters(server);
	send_letters(server, "1Z");
	read_letters(client);
	make_time_zones_differ();
	write_bind("");
	send_with("ES");
	assert_received(server, "QPBES");
	answer_set("12CZ");
	assert_received(client, "2CZ");
}

/* --- SET before the client's messages ----------------------------------------------------- */

/* The client's message is sent after the answers to these queries. */
static void assert_set_before(const char *queries, const char *letters)
{
	assert_received(server, queries);
	assert_received(client, "");
	for (const char *each = queries; *each; each++) {
		assert_received(server, "");
		send_letters(server, "CZ");
	}
	assert_received(server, letters);
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_parameters_that_depend_on_the_session_are_set_first(void **state)
{
	static const char *const names[] = {"role", "session_authorization", "temp_buffers"};
	char sql[100];

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		follow_parameter(client, names[i], "7");
		send_letters(client, "Q");
		snprintf(sql, sizeof(sql), "SET %s='7';", names[i]);
		assert_first_query(server, sql);
		assert_set_before("Q", "Q");
		/* It is also reset before the client's messages. */
		set_parameters(client, parameters_empty(fake_registry.parameters));
		send_letters(client, "Q");
		snprintf(sql, sizeof(sql), "RESET %s;", names[i]);
		assert_first_query(server, sql);
		assert_set_before("Q", "Q");
	}
}

static void test_value_that_is_not_ascii_is_set_first(void **state)
{
	(void)state;
	set_parameter(client, "application_name", "caf\xc3\xa9");
	set_parameter(server, "application_name", "");
	send_letters(client, "Q");
	assert_first_query(server, "SET application_name='caf\xc3\xa9';");
	assert_set_before("Q", "Q");
}

static void test_value_that_is_not_ascii_is_set_after_its_encoding(void **state)
{
	(void)state;
	set_parameter(client, "application_name", "caf\xe9");
	set_parameter(server, "application_name", "");
	set_parameter(client, "client_encoding", "LATIN1");
	set_parameter(server, "client_encoding", "UTF8");
	send_letters(client, "Q");
	assert_first_query(server, "SET client_encoding='LATIN1'");
	assert_set_before("QQ", "Q");
}

static void test_reset_with_a_connect_query_is_sent_first(void **state)
{
	(void)state;
	fake_end(NULL);
	start_with("connect_query='select 1'", "pool_mode = transaction\n");
	follow_parameter(client, "work_mem", "1MB");
	send_letters(client, "Q");
	assert_sent_together(server, "BEGIN;SET work_mem='1MB';COMMIT", "QQ");
	send_letters(server, "CZCZ");
	read_letters(client);
	set_parameters(client, parameters_empty(fake_registry.parameters));
	send_letters(client, "Q");
	assert_first_query(server, "RESET work_mem;select 1\n;");
	assert_set_before("Q", "Q");
}

static void test_many_requests_follow_the_sets(void **state)
{
	const char *letters;
	size_t length;

	(void)state;
	make_time_zones_differ();
	while (outgoing.length <= RELAY_KEPT_MAX)
		letters_write(&outgoing, FROM_CLIENT, "Q");
	length = outgoing.length;
	send_buffer(client, &outgoing);
	assert_sent_together(server, SET_ZONE, "Q");
	answer_set("");
	letters = read_letters(server);
	assert_int_equal(strspn(letters, "Q"), strlen(letters));
	scripted_forget_output(server->script);
	server->read_offset = server->answered_offset = 0;
	assert_int_equal(endpoint_client(client)->link.held_length, 0);
	assert_true(length > RELAY_KEPT_MAX);
	for (uint32_t left = endpoint_server(server)->requests.count; left > 0; left--)
		send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

/* The client's messages are still held, so that another server can run them. */
static void test_server_that_closes_after_its_sets_is_replaced(void **state)
{
	struct endpoint *other = server;

	(void)state;
	server = fake_server(pool);
	follow_parameter(client, "role", "carol");
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "CZE");
	assert_closed(server);
	server = other;
	assert_set_before("Q", "Q");
}

static void test_server_left_in_a_transaction_by_sets_stays_paired(void **state)
{
	(void)state;
	follow_parameter(client, "role", "carol");
	send_letters(client, "Q");
	send_letters(server, "C>");
	/* PostgreSQL does not do this. No other client may be given such a server. */
	assert_state(server, SERVER_PAIRED);
	send_letters(client, "X");
	assert_state(server, SERVER_DRAINING);
	assert_received(server, "QQ");
	send_letters(server, "C>");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

/* --- failures ----------------------------------------------------------------------------- */

/*
 * Nothing of the client's was run, and nothing was sent to the client: the transaction of the
 * SETs has failed.
 */
static void refuse_sets(void)
{
	set_parameter(client, "TimeZone", "Nowhere");
	set_parameter(server, "TimeZone", "GMT");
	send_letters(client, "Q");
	assert_sent_together(server, "BEGIN;SET TimeZone='Nowhere';COMMIT", "QQ");
	send_letters(server, "C");
	send_error(server, "22023", "no such zone");
}

static void test_refused_parameter_closes_both_where_settings_do_not_follow(void **state)
{
	(void)state;
	refuse_sets();
	assert_closed_with_error(client, "08P01", "invalid server parameter");
	assert_received(server, "X");
	assert_closed(server);
	assert_true(fake_logged("varcache_apply failed: "));
}

/* The server has the client's message, so it is brought out of the failed transaction. */
static void test_refused_parameter_ends_the_query_with_the_servers_error(void **state)
{
	(void)state;
	fake_set("default_pool_size", "1");
	refuse_sets();
	assert_received(client, "");
	send_letters(server, "!");
	assert_state(server, SERVER_DRAINING);
	assert_state(client, CLIENT_WAITING);
	send_error(server, "25P02", "current transaction is aborted");
	send_letters(server, "!");
	assert_first_query(server, "ROLLBACK");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	/* Again, and by themselves. */
	assert_first_query(server, "SET TimeZone='Nowhere';");
	assert_received(server, "Q");
	send_error(server, "22023", "no such zone");
	send_letters(server, "Z");
	assert_received(client, "EZ");
	assert_string_equal(client->sqlstate, "22023");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_string_equal(parameter_of(client, "TimeZone"), "Nowhere");
	assert_int_equal(pool->unsent[UNSENT_SETTING_REFUSED], 1);
}

static void test_a_client_that_leaves_behind_the_refusal_closes_the_server(void **state)
{
	(void)state;
	refuse_sets();
	disconnect(client);
	assert_closed(client);
	send_letters(server, "!");
	assert_closed(server);
}

/* The client's next queries find out with one message to the server. */
static void test_refused_parameters_are_sent_alone_until_a_server_takes_them(void **state)
{
	(void)state;
	test_refused_parameter_ends_the_query_with_the_servers_error(state);
	send_letters(client, "PB");
	assert_received(server, "Q");
	send_error(server, "22023", "no such zone");
	send_letters(server, "Z");
	assert_received(client, "E");
	send_letters(client, "ESQ");
	assert_received(client, "Z");
	assert_received(server, "Q");
	send_parameter_status(server, "TimeZone", "Nowhere");
	send_letters(server, "CZ");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	set_parameter(server, "TimeZone", "GMT");
	send_letters(client, "Q");
	assert_received(server, "QQ");
}

static void test_sync_by_itself_gets_no_error(void **state)
{
	(void)state;
	test_refused_parameter_ends_the_query_with_the_servers_error(state);
	send_letters(client, "S");
	assert_received(server, "Q");
	send_error(server, "22023", "no such zone");
	send_letters(server, "Z");
	assert_received(client, "Z");
}

/* What the server has then is unknown: all of it is set for the next client. */
static void test_server_that_has_refused_a_parameter_is_set_for_its_next_client(void **state)
{
	struct endpoint *other = fake_client(pool);

	(void)state;
	fake_set("default_pool_size", "1");
	follow_parameter(client, "role", "gone");
	send_letters(client, "Q");
	assert_first_query(server, "SET role='gone';");
	assert_received(server, "Q");
	send_error(server, "22023", "no such role");
	send_letters(server, "Z");
	assert_received(client, "EZ");
	send_letters(other, "Q");
	assert_first_query(server, "RESET role;");
}

/* The server resets the role that it had, and refuses the next. */
static void refuse_role(void)
{
	assert_received(server, "Q");
	writer_command_complete(&outgoing, "RESET");
	send_buffer(server, &outgoing);
	send_error(server, "22023", "no such role");
	send_letters(server, "Z");
}

static void test_set_that_replaces_a_refused_parameter_is_run(void **state)
{
	static const char *const texts[] = {"SET ROLE alice", "set role to alice;"};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		follow_parameter(client, "role", "gone");
		send_query(client, texts[i]);
		refuse_role();
		assert_first_query(server, "RESET role;SET role='alice';");
		assert_received(server, "Q");
		send_letters(server, "CCZ");
		assert_first_query(server, texts[i]);
		assert_received(server, "Q");
		writer_command_complete(&outgoing, "SET");
		send_buffer(server, &outgoing);
		send_letters(server, "Z");
		assert_received(client, "CZ");
		assert_string_equal(
			parameters_get_followed(endpoint_link(client)->parameters, "role"),
			"alice");
		assert_state(server, SERVER_IDLE);
	}
}

/* The client keeps what it had, as after any SET that fails. */
static void test_set_to_another_refused_value_changes_nothing(void **state)
{
	(void)state;
	follow_parameter(client, "role", "gone");
	send_query(client, "SET ROLE nobody");
	refuse_role();
	refuse_role();
	assert_received(client, "EZ");
	assert_string_equal(
		parameters_get_followed(endpoint_link(client)->parameters, "role"), "gone");
	assert_state(server, SERVER_IDLE);
}

/* Another client's parameter that cannot be reset is no fault of this one. */
static void test_refused_reset_moves_the_client_to_another_server(void **state)
{
	struct endpoint *other = server;

	(void)state;
	server = fake_server(pool);
	follow_parameter(server, "role", "first");
	follow_parameter(client, "lock_timeout", "5s");
	send_letters(client, "Q");
	assert_first_query(server, "RESET role;SET lock_timeout='5s';");
	assert_received(server, "Q");
	send_error(server, "42501", "no");
	send_letters(server, "Z");
	assert_closed(server);
	assert_first_query(other, "SET lock_timeout='5s';");
}

static void test_refused_temp_buffers_moves_the_client_to_another_server(void **state)
{
	struct endpoint *other = server;

	(void)state;
	server = fake_server(pool);
	follow_parameter(server, "temp_buffers", "100");
	follow_parameter(other, "temp_buffers", "200");
	follow_parameter(client, "temp_buffers", "200");
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "EZ");
	assert_closed(server);
	assert_received(other, "Q");
	send_letters(other, "CZ");
	assert_received(client, "CZ");
}

static void test_closed_idle_server_is_replaced_before_its_sets(void **state)
{
	struct endpoint *other = server;

	(void)state;
	server = fake_server(pool);
	make_time_zones_differ();
	set_parameter(other, "TimeZone", "GMT");
	scripted_break(server->script);
	send_letters(client, "Q");
	assert_closed(server);
	assert_sent_together(other, SET_ZONE, "QQ");
	postgres_work(other);
	assert_received(client, "TDCZ");
}

/* The server may have run the client's message. */
static void test_server_closed_during_its_sets_is_reported(void **state)
{
	(void)state;
	server = fake_server(pool);
	fake_advance(USEC_PER_SEC);
	make_time_zones_differ();
	send_letters(client, "Q");
	disconnect(server);
	assert_closed_with_error(client, "08006", "server conn crashed?");
}

/*
 * The server's session ended before it reached the client's messages: another server runs all
 * of them.
 */
static void test_server_that_closes_before_its_sets_is_replaced(void **state)
{
	struct endpoint *other = server;

	(void)state;
	prepare_s();
	server = fake_server(pool);
	fake_advance(USEC_PER_SEC);
	make_time_zones_differ();
	set_parameter(other, "TimeZone", "UTC");
	write_bind("s");
	letters_write(&outgoing, FROM_CLIENT, "ESQ");
	send_part(client, &outgoing, 0, outgoing.length - 1);
	assert_received(server, "QPBES");
	send_error(server, "57P01", "terminating connection due to administrator command");
	assert_closed(server);
	assert_received(other, "BES");
	send_letters(other, "2CZ");
	assert_received(client, "2CZ");
	send_part(client, &outgoing, outgoing.length - 1, outgoing.length);
	assert_received(other, "Q");
	send_letters(other, "CZ");
	assert_received(client, "CZ");
	buffer_free(&outgoing);
}

/* An error after the answers to the SETs belongs to the client's request. */
static void test_fatal_error_after_the_sets_is_forwarded(void **state)
{
	(void)state;
	server = fake_server(pool);
	fake_advance(USEC_PER_SEC);
	make_time_zones_differ();
	send_letters(client, "Q");
	answer_set("");
	send_error(server, "57P01", "terminating connection due to administrator command");
	disconnect(server);
	assert_string_equal(read_letters(client), "EE");
	assert_closed(client);
}

static void test_cancelled_sets_cancel_the_query(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_letters(client, "PBES");
	assert_received(server, "QPBES");
	send_error(server, "57014", "canceling statement due to user request");
	assert_state(server, SERVER_PAIRED);
	send_letters(server, "!");
	assert_closed(server);
	assert_received(client, "EZ");
	assert_string_equal(client->sqlstate, "57014");
	assert_string_equal(client->severity, "ERROR");
	assert_state(client, CLIENT_IDLE);
}

/* The rest of the batch is dropped, also where it arrives later. */
static void test_cancelled_batch_ends_at_its_sync(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_letters(client, "PB");
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "!");
	assert_received(client, "E");
	send_letters(client, "ES");
	assert_received(client, "Z");
	assert_state(client, CLIENT_IDLE);
}

/* A server that is in a failed transaction would run what follows the end of that. */
static void test_messages_that_leave_a_failed_transaction_wait_for_the_sets(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_query(client, "rollback; insert");
	assert_first_query(server, SET_ZONE);
	assert_received(server, "Q");
	answer_set("");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
}

static void test_refused_sets_before_such_messages_are_rolled_back(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_query(client, "rollback; insert");
	assert_received(server, "Q");
	send_error(server, "22023", "no such zone");
	send_letters(server, "!");
	assert_first_query(server, "ROLLBACK");
	assert_received(server, "Q");
	fake_set("default_pool_size", "1");
	send_letters(server, "CZ");
	fake_turn();
	assert_received(server, "Q");
	send_error(server, "22023", "no such zone");
	send_letters(server, "Z");
	assert_received(client, "EZ");
	assert_state(server, SERVER_IDLE);
}

/* Without a failed transaction the query may have been run. */
static void test_sets_cancelled_before_begin_close_both(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_letters(client, "Q");
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "Z");
	assert_closed_with_error(client, "57014", "canceling statement due to user request");
	assert_closed(server);
}

/* --- time limits that another client has left --------------------------------------------- */

/* A second server, which is used first and had another client; returns the first one. */
static struct endpoint *use_server_again(void)
{
	struct endpoint *other = server;

	server = fake_server(pool);
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	return other;
}

/* The server is closed, and the other one sets the parameters and runs the query. */
static void assert_moved_to(struct endpoint *other, const char *queries)
{
	assert_closed(server);
	assert_received(client, "");
	server = other;
	assert_received(server, queries);
}

static void test_time_limits_of_a_server_are_lifted_before_the_sets(void **state)
{
	static const char *const names[] = {
		"lock_timeout", "statement_timeout", "transaction_timeout"};
	char sql[100];

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		make_time_zones_differ();
		follow_parameter(server, names[i], "1");
		send_letters(client, "Q");
		snprintf(sql, sizeof(sql), "SET %s=0;", names[i]);
		assert_first_query(server, sql);
		assert_received(server, "QQ");
		send_letters(server, "CZ");
		assert_received(server, "");
		send_letters(server, "CCZ");
		assert_received(server, "Q");
		send_letters(server, "CZ");
		assert_received(client, "CZ");
	}
}

static void test_client_goes_on_with_another_server_after_a_time_limit(void **state)
{
	static const char *const states[] = {"57014", "55P03", "25P04"};

	(void)state;
	for (size_t i = 0; i < COUNT(states); i++) {
		struct endpoint *other = use_server_again();

		set_parameter(client, "TimeZone", "UTC");
		set_parameter(other, "TimeZone", "UTC");
		set_parameter(server, "TimeZone", "GMT");
		follow_parameter(server, "statement_timeout", "1");
		send_letters(client, "Q");
		assert_received(server, "QQ");
		send_error(server, states[i], "canceling statement due to statement timeout");
		if (strcmp(states[i], "25P04") != 0)
			send_letters(server, "Z");
		assert_moved_to(other, "Q");
		send_letters(server, "CZ");
		assert_received(client, "CZ");
	}
	assert_int_equal(fake_log_count("time limit of another client ended"), 3);
}

/* A function may have set the limit, which shows in no tag of a command. */
static void test_messages_behind_sets_that_hit_an_unknown_time_limit_are_taken_back(
	void **state)
{
	struct endpoint *other = use_server_again();

	(void)state;
	set_parameter(client, "TimeZone", "UTC");
	set_parameter(other, "TimeZone", "UTC");
	set_parameter(server, "TimeZone", "GMT");
	send_letters(client, "PBES");
	assert_received(server, "QPBES");
	send_error(server, "57014", "canceling statement due to statement timeout");
	send_letters(server, "!");
	assert_moved_to(other, "PBES");
	send_letters(server, "12CZ");
	assert_received(client, "12CZ");
}

static void test_cancel_request_that_hits_the_sets_is_no_time_limit(void **state)
{
	(void)state;
	use_server_again();
	set_parameter(client, "TimeZone", "UTC");
	set_parameter(server, "TimeZone", "GMT");
	send_letters(client, "PBES");
	endpoint_server(server)->sync_canceled = true;
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "!");
	assert_closed(server);
	assert_received(client, "EZ");
}

/* The answer to a SET of the client, and the row of a time limit in our SETs. */
static const uint8_t set_done[] = "C\0\0\0\010SET", no_limit[] = "D\0\0\0\013\0\1\0\0\0\0010",
		     some_limit[] = "D\0\0\0\013\0\1\0\0\0\0019";

/* A client runs a SET on the server, the effect of which is unknown. */
static void run_set(void)
{
	send_letters(client, "Q");
	read_letters(server);
	send_bytes(server, set_done, sizeof(set_done));
	send_letters(server, "Z");
	read_letters(client);
}

/* SETs are sent alone, behind the question for the limits; these rows answer it. */
static void assert_limits_are_asked(const uint8_t row[sizeof(no_limit)])
{
	make_time_zones_differ();
	send_letters(client, "Q");
	assert_first_query(server, "SHOW statement_timeout;SHOW lock_timeout");
	assert_received(server, "QQ");
	send_bytes(server, no_limit, sizeof(no_limit) - 1);
	send_bytes(server, row, sizeof(no_limit) - 1);
	send_letters(server, "CZ");
	send_letters(server, "CZ");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
}

/* What clients have SET is not known with session_state = ignore. */
static void test_sets_wait_where_a_client_may_have_left_a_time_limit(void **state)
{
	(void)state;
	run_set();
	assert_limits_are_asked(some_limit);
	assert_limits_are_asked(no_limit);
	make_time_zones_differ();
	send_letters(client, "Q");
	assert_sent_together(server, SET_ZONE, "QQ");
	send_letters(server, "CCCZCZ");
	assert_received(client, "CZ");
}

static void test_sets_do_not_wait_where_the_settings_were_asked_for(void **state)
{
	(void)state;
	run_set();
	assert_state(server, SERVER_ASKING);
	assert_received(server, "Q");
	send_letters(server, "TCZ");
	make_time_zones_differ();
	send_letters(client, "Q");
	assert_sent_together(server, SET_ZONE, "QQ");
	send_letters(server, "CCCZCZ");
	assert_received(client, "CZ");
}

static void test_sets_do_not_wait_where_the_words_of_a_set_were_known(void **state)
{
	(void)state;
	send_query(client, "SET work_mem = '1MB'");
	assert_received(server, "Q");
	send_bytes(server, set_done, sizeof(set_done));
	send_letters(server, "Z");
	assert_received(client, "CZ");
	assert_state(server, SERVER_IDLE);
	make_time_zones_differ();
	send_letters(client, "Q");
	assert_sent_together(server, SET_ZONE, "QQ");
	send_letters(server, "CCCZCZ");
	assert_received(client, "CZ");
}

static void test_cancelled_sets_before_the_query_cancel_it(void **state)
{
	(void)state;
	follow_parameter(client, "role", "carol");
	send_letters(client, "Q");
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "Z");
	assert_closed(server);
	assert_received(client, "EZ");
	assert_state(client, CLIENT_IDLE);
}

/* PostgreSQL does not do this: the next answers cannot be assigned to requests. */
static void test_sets_that_leave_a_transaction_open_close_both(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_letters(client, "Q");
	send_letters(server, "C>");
	assert_closed_with_error(client, "08P01", "invalid server parameter");
	assert_closed(server);
}

static void test_blocked_server_is_waited_for(void **state)
{
	(void)state;
	make_time_zones_differ();
	allow_output(server, 40);
	send_letters(client, "Q");
	answer_set("");
	send_letters(client, "Q");
	allow_output(server, SCRIPTED_ANY);
	scripted_run_all(client->script);
	assert_received(server, "QQQ");
	send_letters(server, "CZCZ");
	assert_received(client, "CZCZ");
	assert_state(server, SERVER_IDLE);
}

/* --- clients that disconnect -------------------------------------------------------------- */

/* The SETs are not cancelled; the query after them is. */
static void test_query_of_a_disconnected_client_is_cancelled_after_the_sets(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_query(client, "slow");
	assert_received(server, "QQ");
	disconnect(client);
	assert_closed(client);
	assert_state(server, SERVER_DRAINING);
	assert_null(fake_launched());
	answer_set("");
	assert_state(server, SERVER_DRAINING);
	assert_non_null(fake_launched());
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static void test_open_batch_of_a_disconnected_client_is_ended_after_the_sets(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_letters(client, "PBE");
	assert_received(server, "QPBE");
	send_letters(client, "X");
	assert_received(server, "");
	answer_set("");
	scripted_run_all(client->script);
	assert_closed(client);
	assert_received(server, "QS");
	send_letters(server, "12CCZZ");
	assert_state(server, SERVER_IDLE);
	/* The server's new value is known. */
	client = fake_client(pool);
	set_parameter(client, "TimeZone", "UTC");
	send_letters(client, "Q");
	assert_received(server, "Q");
}

static void test_terminate_with_the_first_query_cancels_nothing(void **state)
{
	(void)state;
	make_time_zones_differ();
	send_letters(client, "QX");
	assert_closed(client);
	assert_received(server, "QQ");
	assert_state(server, SERVER_DRAINING);
	answer_set("CZ");
	assert_state(server, SERVER_IDLE);
	assert_null(fake_launched());
}

/* The new values are known of the client only, so the server is closed. */
static void test_client_that_disconnects_during_followed_sets_closes_the_server(void **state)
{
	(void)state;
	follow_parameter(client, "work_mem", "1MB");
	send_letters(client, "Q");
	assert_received(server, "QQ");
	disconnect(client);
	assert_closed(server);
}

static void test_server_without_a_cancel_key_is_closed(void **state)
{
	(void)state;
	make_time_zones_differ();
	free(endpoint_server(server)->cancel_key);
	endpoint_server(server)->cancel_key = NULL;
	send_letters(client, "Q");
	disconnect(client);
	assert_closed(server);
}

static void test_sets_of_a_disconnected_client_are_not_cancelled(void **state)
{
	(void)state;
	set_parameter(client, "application_name", "caf\xc3\xa9");
	set_parameter(server, "application_name", "");
	send_letters(client, "Q");
	disconnect(client);
	assert_received(server, "Q");
	assert_state(server, SERVER_DRAINING);
	send_letters(server, "CZ");
	assert_null(fake_launched());
	assert_state(server, SERVER_IDLE);
}

/* --- statistics --------------------------------------------------------------------------- */

static void test_query_time_includes_its_sets(void **state)
{
	const struct totals *totals = &pool->stats.current;

	(void)state;
	make_time_zones_differ();
	send_letters(client, "Q");
	fake_advance(USEC_PER_SEC);
	answer_set("");
	fake_advance(USEC_PER_SEC);
	assert_int_equal(totals->query_time, 0);
	send_letters(server, "CZ");
	assert_int_equal(totals->queries, 1);
	assert_int_equal(totals->assignments, 1);
	letters_write(&outgoing, FROM_CLIENT, "Q");
	assert_int_equal(totals->received, outgoing.length); /* without the bytes of the SETs */
	buffer_free(&outgoing);
	assert_int_equal(totals->query_time, 2 * USEC_PER_SEC);
	assert_int_equal(totals->transaction_time, 2 * USEC_PER_SEC);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define IGNORING_TEST(name)                                                                    \
	cmocka_unit_test_setup_teardown(test_##name, start_ignoring, fake_end)
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_session, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(sets_and_the_query_are_sent_in_one_write),
		TEST(waiting_client_has_sets_and_query_sent_in_one_write),
		TEST(answers_to_sets_may_be_cut_anywhere),
		TEST(client_is_read_again_when_its_sets_have_succeeded),
		TEST(incomplete_message_after_the_sets_is_kept),
		SESSION_TEST(session_client_has_its_parameters_set_once),
		TEST(flush_of_an_idle_client_needs_no_server),
		TEST(value_set_by_the_client_replaces_the_synchronized_one),
		TEST(spelling_of_the_server_is_stored_for_the_client),
		TEST(value_that_differs_only_in_case_is_not_set),
		TEST(parameter_known_of_one_side_only_is_not_set),
		TEST(synthesized_answers_are_sent_after_the_sets_succeeded),
		TEST(batch_of_synthesized_answers_waits_for_the_sets),
		TEST(replayed_batch_does_not_repeat_the_sets),
		TEST(batch_is_replayed_when_all_answers_arrive_together),
		TEST(unnamed_statement_is_prepared_again_after_the_sets),
		TEST(parameters_that_depend_on_the_session_are_set_first),
		TEST(value_that_is_not_ascii_is_set_first),
		TEST(value_that_is_not_ascii_is_set_after_its_encoding),
		TEST(reset_with_a_connect_query_is_sent_first),
		TEST(many_requests_follow_the_sets),
		TEST(server_that_closes_after_its_sets_is_replaced),
		TEST(server_left_in_a_transaction_by_sets_stays_paired),
		IGNORING_TEST(refused_parameter_closes_both_where_settings_do_not_follow),
		TEST(refused_parameter_ends_the_query_with_the_servers_error),
		TEST(a_client_that_leaves_behind_the_refusal_closes_the_server),
		TEST(refused_parameters_are_sent_alone_until_a_server_takes_them),
		TEST(sync_by_itself_gets_no_error),
		TEST(server_that_has_refused_a_parameter_is_set_for_its_next_client),
		TEST(set_that_replaces_a_refused_parameter_is_run),
		TEST(set_to_another_refused_value_changes_nothing),
		TEST(refused_reset_moves_the_client_to_another_server),
		TEST(refused_temp_buffers_moves_the_client_to_another_server),
		TEST(closed_idle_server_is_replaced_before_its_sets),
		TEST(server_closed_during_its_sets_is_reported),
		TEST(server_that_closes_before_its_sets_is_replaced),
		TEST(fatal_error_after_the_sets_is_forwarded),
		TEST(cancelled_sets_cancel_the_query),
		TEST(cancelled_batch_ends_at_its_sync),
		TEST(messages_that_leave_a_failed_transaction_wait_for_the_sets),
		TEST(refused_sets_before_such_messages_are_rolled_back),
		TEST(sets_cancelled_before_begin_close_both),
		TEST(time_limits_of_a_server_are_lifted_before_the_sets),
		TEST(client_goes_on_with_another_server_after_a_time_limit),
		TEST(messages_behind_sets_that_hit_an_unknown_time_limit_are_taken_back),
		TEST(cancel_request_that_hits_the_sets_is_no_time_limit),
		IGNORING_TEST(sets_wait_where_a_client_may_have_left_a_time_limit),
		TEST(sets_do_not_wait_where_the_settings_were_asked_for),
		TEST(sets_do_not_wait_where_the_words_of_a_set_were_known),
		TEST(cancelled_sets_before_the_query_cancel_it),
		TEST(sets_that_leave_a_transaction_open_close_both),
		TEST(blocked_server_is_waited_for),
		TEST(query_of_a_disconnected_client_is_cancelled_after_the_sets),
		TEST(open_batch_of_a_disconnected_client_is_ended_after_the_sets),
		TEST(terminate_with_the_first_query_cancels_nothing),
		TEST(client_that_disconnects_during_followed_sets_closes_the_server),
		TEST(server_without_a_cancel_key_is_closed),
		TEST(sets_of_a_disconnected_client_are_not_cancelled),
		TEST(query_time_includes_its_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
