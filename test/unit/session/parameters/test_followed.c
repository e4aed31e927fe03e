/* SPDX-License-Identifier: ISC */
/*
 * Followed parameters (not reported by the server): when their values on the server become
 * unknown.
 */
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

static struct endpoint *client, *server;

/*
 * Pairs a client that follows work_mem and geqo; its query is answered but for CommandComplete.
 */
static int start(void **state)
{
	struct parameter_draft draft;
	struct pool *pool;

	(void)state;
	/* Otherwise the server is asked for them. */
	fake_start("[databases]\n"
		   "db = host=/tmp\n"
		   "[pgbouncer]\n"
		   "session_state = ignore\n"
		   "auth_type = trust\n"
		   "pool_mode = transaction\n");
	fake_user("boss", "");
	pool = fake_pool("db", "boss");
	server = fake_server(pool);
	client = fake_client(pool);
	parameter_draft_begin(&draft, fake_registry.parameters);
	parameter_draft_follow(&draft, "work_mem", "1MB");
	parameter_draft_follow(&draft, "geqo", "off");
	parameters_unref(endpoint_link(client)->parameters);
	endpoint_link(client)->parameters = parameter_draft_end(&draft);
	send_query(client, "one");
	assert_received(server, "QQ");
	send_letters(server, "CCCCZ");
	assert_true(endpoint_server(server)->follows);
	return 0;
}

/* Sends CommandComplete with this tag, split after so many bytes. */
static void send_command_complete(const char *tag, size_t cut)
{
	struct buffer out;

	buffer_init(&out);
	writer_command_complete(&out, tag);
	if (cut < out.length) {
		send_bytes(server, out.data, cut);
		buffer_consume(&out, cut);
	}
	send_buffer(server, &out);
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static const char *followed(const char *name)
{
	return parameters_get_followed(endpoint_link(server)->parameters, name);
}

/* Tries each split of the message. */
static void assert_known_after(const char *tag, bool known)
{
	const size_t length = 5 + strlen(tag) + 1;

	for (size_t cut = 1; cut <= length; cut++) {
		send_command_complete(tag, cut);
		assert_int_equal(followed("work_mem") != NULL, known);
		assert_int_equal(endpoint_server(server)->follows, known);
		read_letters(server);
		send_query(client, "next");
		assert_received(server, known ? "Q" : "QQ");
		/* After a SET the time limits are asked for, and the SETs are sent alone. */
		if (strcmp(tag, "SET") == 0) {
			send_letters(server, "DCDCZ");
			send_letters(server, "CCZ");
		} else if (!known) {
			send_letters(server, "CCCCZ");
		}
		assert_string_equal(followed("work_mem"), "1MB");
	}
}

static void test_followed_values_are_unknown_after_set_reset_and_discard_all(void **state)
{
	(void)state;
	assert_known_after("RESET", false);
	assert_known_after("DISCARD ALL", false);
	assert_known_after("SET", false);
}

static void test_followed_values_stay_known_after_other_commands(void **state)
{
	(void)state;
	assert_known_after("SELECT 1", true);
	assert_known_after("SHOW", true);
	assert_known_after("BEGIN", true);
	assert_known_after("DISCARD TEMP", true);
	assert_known_after("SET CONSTRAINTS", true);
	assert_known_after("", true);
}

static void test_discard_all_by_a_client_forgets_its_followed_values(void **state)
{
	(void)state;
	assert_true(parameters_has_followed(endpoint_link(server)->parameters));
	send_command_complete("DISCARD ALL", SIZE_MAX);
	assert_false(parameters_has_followed(endpoint_link(server)->parameters));
}

static void test_reported_value_replaces_the_followed_one(void **state)
{
	struct buffer out;

	(void)state;
	buffer_init(&out);
	writer_command_complete(&out, "SET");
	writer_parameter_status(&out, "Work_Mem", "9MB");
	writer_parameter_status(&out, "another", "1");
	letters_write(&out, FROM_SERVER, "Z");
	send_buffer(server, &out);
	assert_string_equal(
		parameters_get_followed(endpoint_link(client)->parameters, "work_mem"), "9MB");
	assert_string_equal(
		parameters_get_followed(endpoint_link(client)->parameters, "geqo"), "off");
	assert_string_equal(followed("work_mem"), "9MB");
	assert_null(followed("geqo"));
	assert_null(followed("another"));
}

#define FOLLOWING(test) cmocka_unit_test_setup_teardown(test, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLLOWING(test_followed_values_are_unknown_after_set_reset_and_discard_all),
		FOLLOWING(test_followed_values_stay_known_after_other_commands),
		FOLLOWING(test_discard_all_by_a_client_forgets_its_followed_values),
		FOLLOWING(test_reported_value_replaces_the_followed_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
