/* SPDX-License-Identifier: ISC */
/* PREPARE and EXECUTE as Querys: what servers receive, and what becomes of their answers. */
#include "support/fakes/fake_pool.h"
#include "support/messages/statement_messages.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;
static struct endpoint *client, *server;

/* What runs PREPARE on a server behind the Close of the old statement, and its answers. */
#define CARRIED "CCPBECC"
#define CARRIED_ANSWERS "3312C33"

static int start(void **state)
{
	(void)state;
	pool = fake_start_pool("max_prepared_statements = 10\nmax_pinned = 0\n");
	client = fake_client(pool);
	server = fake_server(pool);
	return 0;
}

/* The text of the last Query that the server has received. */
static const char *last_query(const struct endpoint *of)
{
	const char *query = NULL;
	size_t length, total;
	const uint8_t *output = scripted_output(of->script, &length);
	char letter;

	for (size_t at = 0; (letter = letters_read(output + at, length - at, &total)) != 0;
		at += total) {
		if (letter == PQ_QUERY)
			query = (const char *)output + at + 5;
	}
	return query;
}

static void complete(struct endpoint *of, const char *tag, char ready)
{
	struct buffer answer = {0};

	writer_command_complete(&answer, tag);
	writer_ready(&answer, (enum ready_status)ready);
	send_buffer(of, &answer);
}

/* The client has a statement `q`, which is the first one on the server. */
static void prepare_q(void)
{
	send_query(client, "PREPARE Q (int) AS SELECT $1");
	assert_received(server, "CQ");
	assert_string_equal(last_query(server), "PREPARE \"PGBOUNCER_1\" (int) AS SELECT $1");
	send_letters(server, "3");
	assert_received(client, "");
	complete(server, "PREPARE", 'I');
	assert_received(client, "CZ");
	assert_state(client, CLIENT_IDLE);
}

/* Another server comes first from now on. */
static struct endpoint *change_server(void)
{
	struct endpoint *holder = fake_client(pool);

	send_letters(holder, "Q");
	read_letters(server);
	return fake_server(pool);
}

static void test_a_server_with_the_statement_gets_the_execute_only(void **state)
{
	(void)state;
	prepare_q();
	send_query(client, "/* a */ EXECUTE q(7);");
	assert_received(server, "Q");
	assert_string_equal(last_query(server), "/* a */ EXECUTE \"PGBOUNCER_1\"(7);");
	send_letters(server, "TDCZ");
	assert_received(client, "TDCZ");
	assert_state(server, SERVER_IDLE);
}

static void test_another_server_gets_the_prepare_before(void **state)
{
	struct endpoint *other;

	(void)state;
	prepare_q();
	other = change_server();
	send_query(client, "EXECUTE q(7)");
	assert_received(other, CARRIED "SQ");
	send_letters(other, CARRIED_ANSWERS);
	assert_received(client, "");
	send_letters(other, "ZTDCZ");
	assert_received(client, "TDCZ");
	assert_state(other, SERVER_IDLE);
	send_query(client, "EXECUTE q(8)");
	assert_received(other, "Q");
	send_letters(other, "TDCZ");
	assert_received(client, "TDCZ");
}

static void test_a_failed_prepare_of_ours_is_the_only_error(void **state)
{
	struct endpoint *other;

	(void)state;
	prepare_q();
	other = change_server();
	send_query(client, "EXECUTE q(7)");
	read_letters(other);
	send_letters(other, "331");
	send_error(other, "42P01", "relation \"t\" does not exist");
	assert_received(client, "E");
	assert_string_equal(client->sqlstate, "42P01");
	send_letters(other, "Z");
	assert_received(client, "");
	send_error(other, "26000", "prepared statement \"PGBOUNCER_1\" does not exist");
	send_letters(other, "Z");
	assert_received(client, "Z");
	assert_state(other, SERVER_IDLE);
	/* The next one tries again, and no error is lost. */
	send_query(client, "EXECUTE q(7)");
	assert_received(other, CARRIED "SQ");
	send_letters(other, CARRIED_ANSWERS "Z");
	send_error(other, "22012", "division by zero");
	send_letters(other, "Z");
	assert_received(client, "EZ");
	assert_string_equal(client->sqlstate, "22012");
}

static void test_errors_have_the_clients_name_and_position(void **state)
{
	struct buffer error = {0};
	size_t mark = writer_begin(&error, PQ_ERROR_RESPONSE), length;
	const uint8_t *output;

	(void)state;
	writer_string(&error, "SERROR");
	writer_string(&error, "C42601");
	writer_string(&error, "Mnot \"PGBOUNCER_11\" but \"PGBOUNCER_1\"");
	writer_string(&error, "P25");
	writer_byte(&error, 0);
	writer_end(&error, mark);
	prepare_q();
	send_query(client, "EXECUTE \"q\"(nothing)");
	send_buffer(server, &error);
	send_letters(server, "Z");
	assert_received(client, "EZ");
	assert_string_equal(client->text, "not \"PGBOUNCER_11\" but \"q\"");
	output = scripted_output(client->script, &length);
	assert_non_null(memmem(output, length, "\0P15\0", 5));
}

static void test_a_prepare_that_fails_leaves_no_name(void **state)
{
	(void)state;
	send_query(client, "PREPARE q AS SELECT nothing");
	send_letters(server, "3");
	send_error(server, "42703", "column \"nothing\" does not exist");
	send_letters(server, "Z");
	assert_received(client, "EZ");
	read_letters(server);
	send_query(client, "EXECUTE q");
	assert_string_equal(last_query(server), "EXECUTE q");
	send_error(server, "26000", "prepared statement \"q\" does not exist");
	send_letters(server, "Z");
	assert_received(client, "EZ");
}

static void test_a_name_in_use_is_an_error_of_the_server(void **state)
{
	(void)state;
	prepare_q();
	send_query(client, "PREPARE q AS SELECT 2");
	assert_received(server, "CPSQ");
	assert_null(strstr(last_query(server), "PGBOUNCER_"));
	send_letters(server, "31Z");
	assert_received(client, "");
	send_error(server, "42P05", "prepared statement already exists");
	send_letters(server, "Z");
	assert_received(client, "EZ");
	send_query(client, "EXECUTE q(1)");
	assert_string_equal(last_query(server), "EXECUTE \"PGBOUNCER_1\"(1)");
	send_letters(server, "TDCZ");
}

/* Its namesake could not be made, but the PREPARE that was to fail succeeds. */
static void test_a_name_in_use_gets_one_answer_only(void **state)
{
	(void)state;
	prepare_q();
	send_query(client, "PREPARE q AS SELECT 2");
	send_letters(server, "3");
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "Z");
	complete(server, "PREPARE", 'I');
	assert_received(client, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_what_depends_on_an_answer_waits_for_it(void **state)
{
	struct buffer querys = {0};

	(void)state;
	writer_query(&querys, "PREPARE q AS SELECT 1");
	writer_query(&querys, "EXECUTE q");
	writer_query(&querys, "DEALLOCATE q");
	writer_query(&querys, "PREPARE q AS SELECT 2");
	send_buffer(client, &querys);
	assert_received(server, "CQQ");
	send_letters(server, "3CZTDCZ");
	assert_received(client, "CZTDCZ");
	assert_received(server, "Q");
	assert_string_equal(last_query(server), "UNLISTEN pgusher");
	complete(server, "UNLISTEN", 'I');
	assert_received(client, "CZ");
	assert_received(server, "CQ");
	assert_string_equal(last_query(server), "PREPARE \"PGBOUNCER_2\" AS SELECT 2");
	send_letters(server, "3CZ");
	assert_received(client, "CZ");
}

static void test_several_statements_at_once_get_the_clients_name(void **state)
{
	(void)state;
	prepare_q();
	send_query(client, "BEGIN; EXECUTE q(1)");
	assert_received(server, "CPBECCSQ");
	assert_string_equal(last_query(server), "BEGIN; EXECUTE q(1)");
	send_letters(server, "312C33Z");
	assert_received(client, "");
	send_letters(server, "CTDC>");
	assert_received(client, "CTDC>");
	send_query(client, "EXECUTE q(1)");
	assert_string_equal(last_query(server), "EXECUTE q(1)");
	send_letters(server, "TDC>");
}

static void test_what_cannot_be_handed_over_stays_the_clients(void **state)
{
	(void)state;
	prepare_q();
	send_query(client, "ROLLBACK; EXECUTE q(1)");
	send_letters(server, "31");
	send_error(server, "25P02", "current transaction is aborted");
	send_letters(server, "Z");
	assert_received(client, "");
	send_error(server, "26000", "prepared statement \"q\" does not exist");
	send_letters(server, "Z");
	assert_received(client, "EZ");
	read_letters(server);
	/* The question about what SQL has prepared. */
	send_letters(server, "CZ");
	send_query(client, "EXECUTE q(1)");
	assert_string_equal(last_query(server), "EXECUTE \"PGBOUNCER_1\"(1)");
	send_letters(server, "TDCZ");
}

static void test_an_execute_may_come_by_the_extended_protocol(void **state)
{
	struct endpoint *other;
	struct buffer outgoing = {0};

	(void)state;
	prepare_q();
	other = change_server();
	message_parse(&outgoing, "", "EXECUTE q(1)");
	message_bind(&outgoing, "", 0);
	letters_write(&outgoing, FROM_CLIENT, "ES");
	send_buffer(client, &outgoing);
	assert_received(other, "P" CARRIED "CPBES");
	send_letters(other, "1" CARRIED_ANSWERS "312DCZ");
	assert_received(client, "12DCZ");
}

static void test_a_client_that_leaves_takes_what_is_in_flight_along(void **state)
{
	struct endpoint *other;

	(void)state;
	prepare_q();
	other = change_server();
	send_query(client, "EXECUTE q(7)");
	send_letters(other, "3312");
	disconnect(client);
	client = fake_client(pool);
	send_letters(other, "C33ZTDCZ");
	assert_received(client, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_server_with_the_statement_gets_the_execute_only),
		TEST(another_server_gets_the_prepare_before),
		TEST(a_failed_prepare_of_ours_is_the_only_error),
		TEST(errors_have_the_clients_name_and_position),
		TEST(a_prepare_that_fails_leaves_no_name),
		TEST(a_name_in_use_is_an_error_of_the_server),
		TEST(a_name_in_use_gets_one_answer_only),
		TEST(what_depends_on_an_answer_waits_for_it),
		TEST(several_statements_at_once_get_the_clients_name),
		TEST(what_cannot_be_handed_over_stays_the_clients),
		TEST(an_execute_may_come_by_the_extended_protocol),
		TEST(a_client_that_leaves_takes_what_is_in_flight_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
