/* SPDX-License-Identifier: ISC */
/* What is known of a server's session, after whatever its clients have done to it. */
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

static struct actor *client, *server;

/* A client that follows work_mem and geqo is paired, and has had its answer up to the last word. */
static int start(void **state)
{
	struct parameter_draft draft;
	struct pool *pool;

	(void)state;
	fake_start("[databases]\n"
		   "db = host=/tmp\n"
		   "[pgbouncer]\n"
		   "auth_type = trust\n"
		   "pool_mode = transaction\n");
	fake_user("boss", "");
	pool = fake_pool("db", "boss");
	server = fake_server(pool);
	client = fake_client(pool);
	parameter_draft_begin(&draft, fake_registry.parameters);
	parameter_draft_follow(&draft, "work_mem", "1MB");
	parameter_draft_follow(&draft, "geqo", "off");
	parameters_unref(actor_link(client)->parameters);
	actor_link(client)->parameters = parameter_draft_end(&draft);
	say_query(client, "one");
	assert_heard(server, "QQ");
	say(server, "CCCCZ");
	assert_true(actor_server(server)->follows);
	return 0;
}

/* CommandComplete with this tag, cut into two after so many bytes. */
static void complete(const char *tag, size_t cut)
{
	struct buffer out;

	buffer_init(&out);
	writer_command_complete(&out, tag);
	if (cut < out.length) {
		say_bytes(server, out.data, cut);
		buffer_consume(&out, cut);
	}
	say_buffer(server, &out);
	say(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static const char *followed(const char *name)
{
	return parameters_get_followed(actor_link(server)->parameters, name);
}

/* Wherever the message is cut. */
static void expect_after(const char *tag, bool believed)
{
	const size_t length = 5 + strlen(tag) + 1;

	for (size_t cut = 1; cut <= length; cut++) {
		complete(tag, cut);
		assert_int_equal(followed("work_mem") != NULL, believed);
		assert_int_equal(actor_server(server)->follows, believed);
		hear(server);
		say_query(client, "next");
		assert_heard(server, believed ? "Q" : "QQ");
		if (!believed)
			say(server, "CCCCZ");
		assert_string_equal(followed("work_mem"), "1MB");
	}
}

static void test_commands_that_may_set_something_cast_doubt(void **state)
{
	(void)state;
	expect_after("SET", false);
	expect_after("RESET", false);
	expect_after("DISCARD ALL", false);
}

static void test_other_commands_do_not(void **state)
{
	(void)state;
	expect_after("SELECT 1", true);
	expect_after("SHOW", true);
	expect_after("BEGIN", true);
	expect_after("DISCARD TEMP", true);
	expect_after("SET CONSTRAINTS", true);
	expect_after("", true);
}

static void test_what_is_discarded_is_not_followed(void **state)
{
	(void)state;
	assert_true(parameters_has_followed(actor_link(server)->parameters));
	complete("DISCARD ALL", SIZE_MAX);
	assert_false(parameters_has_followed(actor_link(server)->parameters));
}

static void test_what_the_server_reports_is_its_value_from_then_on(void **state)
{
	struct buffer out;

	(void)state;
	buffer_init(&out);
	writer_command_complete(&out, "SET");
	writer_parameter_status(&out, "Work_Mem", "9MB");
	writer_parameter_status(&out, "another", "1");
	letters_write(&out, SERVER_SPEAKS, "Z");
	say_buffer(server, &out);
	assert_string_equal(
		parameters_get_followed(actor_link(client)->parameters, "work_mem"), "9MB");
	assert_string_equal(
		parameters_get_followed(actor_link(client)->parameters, "geqo"), "off");
	assert_string_equal(followed("work_mem"), "9MB");
	assert_null(followed("geqo"));
	assert_null(followed("another"));
}

#define FOLLOWING(test) cmocka_unit_test_setup_teardown(test, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLLOWING(test_commands_that_may_set_something_cast_doubt),
		FOLLOWING(test_other_commands_do_not),
		FOLLOWING(test_what_is_discarded_is_not_followed),
		FOLLOWING(test_what_the_server_reports_is_its_value_from_then_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
