/* SPDX-License-Identifier: ISC */
/* A client's RESET goes back to what it asked for at its start, whatever comes between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/parameter_draft.h"
#include "wire/writer.h"

/* Close, Parse, Bind, Execute, Close, Close, Sync; and what a server says to that. */
#define OURS "CPBECCS"
#define GOOD_ANSWER "312DC33Z"

static struct actor *client, *server;

static unsigned time_zone(void)
{
	return (unsigned)parameter_index(fake_registry.parameters, "TimeZone");
}

static struct parameters *set_of(const char *zone, const char *work_mem)
{
	struct parameter_draft draft;

	parameter_draft_begin(&draft, fake_registry.parameters);
	parameter_draft_track(&draft, time_zone(), zone);
	if (work_mem)
		parameter_draft_follow(&draft, "work_mem", work_mem);
	return parameter_draft_end(&draft);
}

static void give(struct actor *actor, struct parameters *set)
{
	parameters_unref(actor_link(actor)->parameters);
	actor_link(actor)->parameters = parameters_ref(set);
}

/* A client that has asked for this is paired with a server that has it, and waits for its answer. */
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
	set = set_of("Asia/Tokyo", work_mem);
	give(client, set);
	give(server, set);
	actor_client(client)->asked = set;
	actor_server(server)->follows = work_mem != NULL;
	say_query(client, "one");
	assert_heard(server, "Q");
	hear(client);
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

static void complete(const char *tag)
{
	struct buffer out;

	buffer_init(&out);
	writer_command_complete(&out, tag);
	say_buffer(server, &out);
}

static const char *zone_of(const struct actor *actor)
{
	return parameters_get(actor_link(actor)->parameters, time_zone());
}

static void say_reset(void)
{
	complete("RESET");
	say_parameter(server, "TimeZone", "UTC");
	say(server, "Z");
}

static void test_the_client_hears_of_nothing_but_its_end(void **state)
{
	(void)state;
	say_reset();
	assert_heard(server, OURS);
	assert_heard(client, "C");
	say(server, "312");
	say(server, "DC3");
	say_parameter(server, "TimeZone", "Asia/Tokyo");
	assert_heard(client, "");
	say(server, "Z");
	assert_heard(client, "Z");
	assert_state(server, SERVER_IDLE);
	assert_string_equal(zone_of(client), "Asia/Tokyo");
	say_query(client, "two");
	assert_heard(server, "Q");
}

static void test_a_reset_of_something_else_asks_nothing(void **state)
{
	(void)state;
	complete("RESET");
	say(server, "Z");
	assert_heard(server, "");
	assert_heard(client, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_what_another_command_changed_is_told_at_once(void **state)
{
	(void)state;
	complete("SET");
	say_parameter(server, "TimeZone", "UTC");
	assert_heard(client, "CS");
	say(server, "Z");
	assert_heard(server, "");
	assert_heard(client, "Z");
	assert_string_equal(zone_of(client), "UTC");
}

static void test_in_a_transaction_it_is_told_what_is_so_until_the_end(void **state)
{
	struct buffer out;

	(void)state;
	complete("RESET");
	say_parameter(server, "TimeZone", "UTC");
	assert_heard(client, "C");
	buffer_init(&out);
	writer_ready(&out, READY_IN_TRANSACTION);
	say_buffer(server, &out);
	assert_heard(client, "S>");
	assert_string_equal(zone_of(client), "UTC");
	say_query(client, "COMMIT");
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_heard(server, OURS);
	assert_heard(client, "C");
	say_parameter(server, "TimeZone", "Asia/Tokyo");
	say(server, GOOD_ANSWER);
	assert_heard(client, "SZ");
	assert_string_equal(zone_of(client), "Asia/Tokyo");
}

static void test_what_follows_in_the_pipeline_goes_first(void **state)
{
	(void)state;
	say_query(client, "two");
	assert_heard(server, "Q");
	say_reset();
	assert_heard(server, "");
	assert_heard(client, "CSZ");
	say(server, "CZ");
	assert_heard(server, OURS);
	say_query(client, "three");
	assert_heard(server, "Q");
	say_parameter(server, "TimeZone", "Asia/Tokyo");
	say(server, GOOD_ANSWER "CZ");
	assert_heard(client, "CSZCZ");
	assert_state(server, SERVER_IDLE);
}

static void test_what_a_late_cancel_hits_is_asked_once_more(void **state)
{
	(void)state;
	say_reset();
	assert_heard(server, OURS);
	say_error(server, "57014", "canceling statement due to user request");
	say(server, "Z");
	assert_heard(server, OURS);
	assert_heard(client, "C");
	say_error(server, "57014", "canceling statement due to user request");
	say(server, "Z");
	assert_heard(server, "");
	assert_heard(client, "SZ");
	assert_string_equal(zone_of(client), "UTC");
	assert_state(server, SERVER_IDLE);
}

static void test_what_fails_is_no_fault_of_the_clients(void **state)
{
	(void)state;
	say_reset();
	assert_heard(server, OURS);
	say_error(server, "22023", "invalid value for parameter");
	say(server, "Z");
	assert_heard(client, "CSZ");
	assert_string_equal(zone_of(client), "UTC");
	assert_true(fake_logged("could not set startup parameters again after a reset"));
	say_query(client, "two");
	assert_heard(server, "Q");
}

static void test_the_end_of_the_server_is_told(void **state)
{
	(void)state;
	say_reset();
	assert_heard(server, OURS);
	hear(client);
	say_error(server, "57P01", "terminating connection due to administrator command");
	assert_heard(client, "E");
	assert_string_equal(client->sqlstate, "57P01");
	vanish(server);
	assert_gone(client);
}

static void test_a_server_whose_client_goes_meanwhile_serves_others(void **state)
{
	struct actor *other = fake_client(actor_link(server)->pool);
	struct parameters *plain = set_of("UTC", NULL);

	(void)state;
	give(other, plain);
	parameters_unref(plain);
	say_reset();
	assert_heard(server, OURS);
	say(client, "X");
	assert_gone(client);
	say_parameter(server, "TimeZone", "Asia/Tokyo");
	say(server, GOOD_ANSWER);
	assert_state(server, SERVER_IDLE);
	say_query(other, "mine");
	assert_heard(server, "QQ");
	say_parameter(server, "TimeZone", "UTC");
	say(server, "CCCZ");
	assert_heard(other, "");
	say(server, "CZ");
	assert_heard(other, "CZ");
}

static void test_whoever_is_next_hears_its_reports_at_once(void **state)
{
	struct actor *other = fake_client(actor_link(server)->pool);

	(void)state;
	say_reset();
	say(server, GOOD_ANSWER);
	say_query(other, "mine");
	say_parameter(server, "application_name", "x");
	assert_heard(other, "S");
}

/* What is not reported may be gone with any RESET, and a session goes on with its server. */
static void test_in_session_mode_what_is_followed_is_asked_for_each_time(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		complete(i == 1 ? "DISCARD ALL" : "RESET");
		say(server, "Z");
		assert_heard(server, OURS);
		say(server, GOOD_ANSWER);
		assert_heard(client, "CZ");
		say_query(client, "next");
		assert_heard(server, "Q");
	}
	/* And whoever comes next has it taken back, though nobody knows whether it was set. */
	assert_true(parameters_has_followed(actor_link(server)->parameters));
	assert_null(parameters_get_followed(actor_link(server)->parameters, "work_mem"));
}

static void test_a_client_that_is_unknown_from_before_asks_for_nothing(void **state)
{
	(void)state;
	parameters_unref(actor_client(client)->asked);
	actor_client(client)->asked = NULL;
	say_reset();
	assert_heard(server, "");
	assert_heard(client, "CSZ");
	assert_string_equal(zone_of(client), "UTC");
}

#define TRANSACTION(test) cmocka_unit_test_setup_teardown(test, start_transaction, fake_end)
#define SESSION(test) cmocka_unit_test_setup_teardown(test, start_session, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRANSACTION(test_the_client_hears_of_nothing_but_its_end),
		TRANSACTION(test_a_reset_of_something_else_asks_nothing),
		TRANSACTION(test_what_another_command_changed_is_told_at_once),
		TRANSACTION(test_in_a_transaction_it_is_told_what_is_so_until_the_end),
		TRANSACTION(test_what_follows_in_the_pipeline_goes_first),
		TRANSACTION(test_what_a_late_cancel_hits_is_asked_once_more),
		TRANSACTION(test_what_fails_is_no_fault_of_the_clients),
		TRANSACTION(test_the_end_of_the_server_is_told),
		TRANSACTION(test_a_server_whose_client_goes_meanwhile_serves_others),
		TRANSACTION(test_whoever_is_next_hears_its_reports_at_once),
		TRANSACTION(test_a_client_that_is_unknown_from_before_asks_for_nothing),
		SESSION(test_in_session_mode_what_is_followed_is_asked_for_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
