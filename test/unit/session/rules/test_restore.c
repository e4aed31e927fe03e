/* SPDX-License-Identifier: ISC */
/*
 * After a client's RESET its startup parameters are restored on the server before its
 * ReadyForQuery is forwarded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fakes/fake_listening.h"
#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/parameter_draft.h"
#include "wire/writer.h"

/*
 * Close, Parse, Bind, Execute, Close, Close, Sync: our restore query; and the server's answer
 * to it.
 */
/* Time limits of the session are lifted first. */
#define RESTORE_QUERY                                                                          \
	"CPBECC"                                                                               \
	"CPBECCS"
#define RESTORE_ANSWER "312DC33Z"

static struct endpoint *client, *server;

static unsigned time_zone(void)
{
	return (unsigned)parameter_index(fake_registry.parameters, "TimeZone");
}

static struct parameters *make_parameters(const char *zone, const char *work_mem)
{
	struct parameter_draft draft;

	parameter_draft_begin(&draft, fake_registry.parameters);
	parameter_draft_track(&draft, time_zone(), zone);
	if (work_mem)
		parameter_draft_follow(&draft, "work_mem", work_mem);
	return parameter_draft_end(&draft);
}

static void set_parameters(struct endpoint *endpoint, struct parameters *set)
{
	parameters_unref(endpoint_link(endpoint)->parameters);
	endpoint_link(endpoint)->parameters = parameters_ref(set);
}

/*
 * Pairs a client that asked for these startup values with a server that has them; a query is in
 * flight.
 */
static void start(const char *mode, const char *work_mem)
{
	char config[256];
	struct parameters *set;
	struct pool *pool;

	snprintf(config, sizeof(config),
		"[databases]\n"
		"db = host=/tmp\n"
		"[pgbouncer]\n"
		"auth_type = trust\n"
		"pool_mode = %s\n",
		mode);
	fake_start(config);
	fake_user("boss", "");
	pool = fake_pool("db", "boss");
	server = fake_server(pool);
	client = fake_client(pool);
	set = make_parameters("Asia/Tokyo", work_mem);
	set_parameters(client, set);
	set_parameters(server, set);
	endpoint_client(client)->asked = set;
	endpoint_server(server)->follows = work_mem != NULL;
	send_query(client, "one");
	assert_received(server, "Q");
	read_letters(client);
}

static int start_transaction(void **state)
{
	(void)state;
	start("transaction", NULL);
	return 0;
}

static int start_session(void **state)
{
	(void)state;
	start("session", "1MB");
	return 0;
}

static void send_command_complete(const char *tag)
{
	struct buffer out;

	buffer_init(&out);
	writer_command_complete(&out, tag);
	send_buffer(server, &out);
}

static const char *zone_of(const struct endpoint *endpoint)
{
	return parameters_get(endpoint_link(endpoint)->parameters, time_zone());
}

static void send_reset_answer(void)
{
	send_command_complete("RESET");
	send_parameter_status(server, "TimeZone", "UTC");
	send_letters(server, "Z");
}

/* After a RESET the server is asked what its session has: nothing of the client. */
static void answer_question(void)
{
	assert_state(server, SERVER_ASKING);
	assert_received(server, "Q");
	send_letters(server, "TCZ");
	assert_state(server, SERVER_IDLE);
}

static void test_restore_is_under_no_time_limit_that_the_client_has_set(void **state)
{
	static const char lifted[] =
		"SELECT pg_catalog.set_config('statement_timeout','0',true),"
		"pg_catalog.set_config('lock_timeout','0',true)",
			  restored[] = "SELECT CASE";
	const uint8_t *output, *lift, *restore;
	size_t length;

	(void)state;
	send_reset_answer();
	assert_received(server, RESTORE_QUERY);
	output = scripted_output(server->script, &length);
	lift = memmem(output, length, lifted, sizeof(lifted));
	restore = memmem(output, length, restored, sizeof(restored) - 1);
	assert_non_null(lift);
	assert_non_null(restore);
	assert_true(lift < restore);
	send_letters(server, "312C33312DC3Z");
}

static void test_client_receives_only_ready_for_query_of_a_restore(void **state)
{
	(void)state;
	send_reset_answer();
	assert_received(server, RESTORE_QUERY);
	assert_received(client, "C");
	send_letters(server, "312");
	send_letters(server, "DC3");
	send_parameter_status(server, "TimeZone", "Asia/Tokyo");
	assert_received(client, "");
	send_letters(server, "Z");
	assert_received(client, "Z");
	answer_question();
	assert_string_equal(zone_of(client), "Asia/Tokyo");
	send_query(client, "two");
	assert_received(server, "Q");
}

static void test_reset_of_another_parameter_restores_nothing(void **state)
{
	(void)state;
	send_command_complete("RESET");
	send_letters(server, "Z");
	assert_received(client, "CZ");
	answer_question();
}

static void test_parameter_changed_by_another_command_is_reported_at_once(void **state)
{
	(void)state;
	send_command_complete("SET");
	send_parameter_status(server, "TimeZone", "UTC");
	assert_received(client, "CS");
	send_letters(server, "Z");
	assert_received(client, "Z");
	answer_question();
	assert_string_equal(zone_of(client), "UTC");
}

static void test_reset_in_a_transaction_is_reported_and_restored_at_its_end(void **state)
{
	struct buffer out;

	(void)state;
	send_command_complete("RESET");
	send_parameter_status(server, "TimeZone", "UTC");
	assert_received(client, "C");
	buffer_init(&out);
	writer_ready(&out, READY_IN_TRANSACTION);
	send_buffer(server, &out);
	assert_received(client, "S>");
	assert_string_equal(zone_of(client), "UTC");
	send_query(client, "COMMIT");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(server, RESTORE_QUERY);
	assert_received(client, "C");
	send_parameter_status(server, "TimeZone", "Asia/Tokyo");
	send_letters(server, RESTORE_ANSWER);
	assert_received(client, "SZ");
	assert_string_equal(zone_of(client), "Asia/Tokyo");
}

static void test_restore_follows_the_pipelined_queries(void **state)
{
	(void)state;
	send_query(client, "two");
	assert_received(server, "Q");
	send_reset_answer();
	assert_received(server, "");
	assert_received(client, "CSZ");
	send_letters(server, "CZ");
	assert_received(server, RESTORE_QUERY);
	send_query(client, "three");
	assert_received(server, "Q");
	send_parameter_status(server, "TimeZone", "Asia/Tokyo");
	send_letters(server, RESTORE_ANSWER "CZ");
	assert_received(client, "CSZCZ");
	answer_question();
}

/* It is one of a backend that is not known here, and never has that number for a client. */
static void test_notification_during_restore_is_one_as_any_other(void **state)
{
	size_t length;

	(void)state;
	send_reset_answer();
	assert_received(server, RESTORE_QUERY);
	read_letters(client);
	listening_notify(server, "c", "x");
	assert_received(client, "A");
	assert_memory_equal(received_body(client, &length), "\0\0\0\0", 4);
	assert_string_equal(listening_payload(client), "x");
	send_parameter_status(server, "TimeZone", "Asia/Tokyo");
	send_letters(server, RESTORE_ANSWER);
	assert_received(client, "Z");
}

static void test_cancelled_restore_query_is_repeated_once(void **state)
{
	(void)state;
	send_reset_answer();
	assert_received(server, RESTORE_QUERY);
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "Z");
	assert_received(server, RESTORE_QUERY);
	assert_received(client, "C");
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "Z");
	assert_received(client, "SZ");
	answer_question();
	assert_string_equal(zone_of(client), "UTC");
}

static void test_failed_restore_is_logged_and_the_client_continues(void **state)
{
	(void)state;
	send_reset_answer();
	assert_received(server, RESTORE_QUERY);
	send_error(server, "22023", "invalid value for parameter");
	send_letters(server, "Z");
	assert_received(client, "CSZ");
	assert_string_equal(zone_of(client), "UTC");
	assert_true(fake_logged("could not set startup parameters again after a reset"));
	answer_question();
	send_query(client, "two");
	assert_received(server, "Q");
}

static void test_server_closed_during_a_restore_is_reported(void **state)
{
	(void)state;
	send_reset_answer();
	assert_received(server, RESTORE_QUERY);
	read_letters(client);
	send_error(server, "57P01", "terminating connection due to administrator command");
	assert_received(client, "E");
	assert_string_equal(client->sqlstate, "57P01");
	break_connection(server);
	assert_closed(client);
}

static void test_server_whose_client_disconnects_during_a_restore_returns_to_the_pool(
	void **state)
{
	struct endpoint *other = fake_client(endpoint_link(server)->pool);
	struct parameters *plain = make_parameters("UTC", NULL);

	(void)state;
	set_parameters(other, plain);
	parameters_unref(plain);
	send_reset_answer();
	assert_received(server, RESTORE_QUERY);
	send_letters(client, "X");
	assert_closed(client);
	send_parameter_status(server, "TimeZone", "Asia/Tokyo");
	send_letters(server, RESTORE_ANSWER);
	/* The client cannot be told what else its session has, so that is discarded. */
	assert_state(server, SERVER_RESETTING);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
	send_query(other, "mine");
	assert_received(server, "QQ");
	send_parameter_status(server, "TimeZone", "UTC");
	send_letters(server, "CCCZ");
	assert_received(other, "");
	send_letters(server, "CZ");
	assert_received(other, "CZ");
}

static void test_next_client_receives_parameter_reports_at_once(void **state)
{
	struct endpoint *other = fake_client(endpoint_link(server)->pool);

	(void)state;
	send_reset_answer();
	assert_received(server, RESTORE_QUERY);
	send_letters(server, RESTORE_ANSWER);
	answer_question();
	send_query(other, "mine");
	send_parameter_status(server, "application_name", "x");
	assert_received(other, "S");
}

/*
 * A value that the server does not report may be changed by any RESET, so it is restored after
 * each.
 */
static void test_session_restores_followed_parameters_after_each_reset(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		send_command_complete(i == 1 ? "DISCARD ALL" : "RESET");
		send_letters(server, "Z");
		assert_received(server, RESTORE_QUERY);
		send_letters(server, RESTORE_ANSWER);
		assert_received(client, "CZ");
		send_query(client, "next");
		assert_received(server, "Q");
	}
	/* The value on the server is unknown, so the next client resets it. */
	assert_true(parameters_has_followed(endpoint_link(server)->parameters));
	assert_null(parameters_get_followed(endpoint_link(server)->parameters, "work_mem"));
}

static void test_client_without_known_startup_values_restores_nothing(void **state)
{
	(void)state;
	parameters_unref(endpoint_client(client)->asked);
	endpoint_client(client)->asked = NULL;
	send_reset_answer();
	assert_received(client, "CSZ");
	answer_question();
	assert_string_equal(zone_of(client), "UTC");
}

#define TRANSACTION(test) cmocka_unit_test_setup_teardown(test, start_transaction, fake_end)
#define SESSION(test) cmocka_unit_test_setup_teardown(test, start_session, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRANSACTION(test_restore_is_under_no_time_limit_that_the_client_has_set),
		TRANSACTION(test_client_receives_only_ready_for_query_of_a_restore),
		TRANSACTION(test_reset_of_another_parameter_restores_nothing),
		TRANSACTION(test_parameter_changed_by_another_command_is_reported_at_once),
		TRANSACTION(test_reset_in_a_transaction_is_reported_and_restored_at_its_end),
		TRANSACTION(test_restore_follows_the_pipelined_queries),
		TRANSACTION(test_notification_during_restore_is_one_as_any_other),
		TRANSACTION(test_cancelled_restore_query_is_repeated_once),
		TRANSACTION(test_failed_restore_is_logged_and_the_client_continues),
		TRANSACTION(test_server_closed_during_a_restore_is_reported),
		TRANSACTION(
			test_server_whose_client_disconnects_during_a_restore_returns_to_the_pool),
		TRANSACTION(test_next_client_receives_parameter_reports_at_once),
		TRANSACTION(test_client_without_known_startup_values_restores_nothing),
		SESSION(test_session_restores_followed_parameters_after_each_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
