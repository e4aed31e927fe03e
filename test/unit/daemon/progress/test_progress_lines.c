/* SPDX-License-Identifier: ISC */
/* When the log says how far a pause or a shutdown is, and in which words. */
#include "daemon/progress/progress_lines.h"
#include "session/serving/control.h"
#include "session/serving/progress.h"
#include "support/fakes/fake_pool.h"

static struct pool *pool;
static struct progress_lines lines;

static int start(void **state)
{
	(void)state;
	pool = fake_start_pool("default_pool_size = 5\n");
	lines = (struct progress_lines){0};
	return 0;
}

static int stop(void **state)
{
	fake_process.shutdown = SHUTDOWN_NONE;
	fake_process.operation = OPERATION_RUNNING;
	return fake_end(state);
}

/* As the janitor does, three times a second. */
static void pass(unsigned seconds)
{
	for (unsigned i = 0; i < 3 * seconds; i++) {
		fake_advance(USEC_PER_SEC / 3);
		progress_lines_work(&lines, &fake_registry);
	}
}

/* A client in a transaction, and its server. */
static struct endpoint *open_transaction(struct endpoint **server)
{
	struct endpoint *client = fake_client(pool);

	*server = fake_server(pool);
	send_query(client, "BEGIN");
	send_letters(*server, "C");
	send_letters(*server, "T");
	return client;
}

static void test_a_pause_has_a_line_after_two_seconds_and_then_every_ten(void **state)
{
	struct endpoint *server;

	(void)state;
	open_transaction(&server);
	control_pause(&fake_registry, NULL);
	pass(1);
	assert_int_equal(fake_log_count("has waited"), 0);
	pass(2);
	assert_int_equal(
		fake_log_count("PAUSE has waited 2 s: 1 of 1 server is still in use"), 1);
	pass(9);
	assert_int_equal(fake_log_count("has waited"), 1);
	pass(22);
	assert_int_equal(fake_log_count("has waited"), 3);
	control_resume(&fake_registry, NULL);
	pass(20);
	assert_int_equal(fake_log_count("has waited"), 3);
	assert_int_equal(fake_log_count("is complete"), 0);
	disconnect(server);
}

static void test_a_pause_of_another_time_begins_anew(void **state)
{
	struct endpoint *server;

	(void)state;
	open_transaction(&server);
	control_pause(&fake_registry, NULL);
	pass(4);
	control_resume(&fake_registry, NULL);
	control_pause(&fake_registry, pool->database);
	pass(4);
	assert_int_equal(fake_log_count("PAUSE has waited"), 1);
	assert_int_equal(fake_log_count("PAUSE db has waited 2 s: 1 of 1 server"), 1);
	disconnect(server);
	control_resume(&fake_registry, pool->database);
}

static void test_its_end_has_a_line_if_its_wait_had_one(void **state)
{
	struct endpoint *server;

	(void)state;
	control_pause(&fake_registry, NULL);
	pass(5);
	assert_int_equal(fake_log_count("PAUSE"), 0);
	control_resume(&fake_registry, NULL);
	open_transaction(&server);
	control_pause(&fake_registry, NULL);
	pass(5);
	disconnect(server);
	pass(20);
	assert_int_equal(
		fake_log_count("PAUSE is complete: no server is in use, after 5 s"), 1);
	assert_int_equal(fake_log_count("has waited"), 1);
	control_resume(&fake_registry, NULL);
}

static void test_of_several_paused_databases_the_oldest_is_named(void **state)
{
	struct progress progress;
	struct endpoint *server;

	(void)state;
	open_transaction(&server);
	assert_false(progress_of_process(&fake_registry, &progress));
	control_pause(&fake_registry, pool->database);
	assert_true(progress_of_process(&fake_registry, &progress));
	assert_string_equal(progress.database, "db");
	disconnect(server);
	assert_false(progress_of_process(&fake_registry, &progress));
	control_resume(&fake_registry, pool->database);
}

/* PostgreSQL replaces such bytes; another server may not. */
static void test_the_name_of_an_application_cannot_forge_a_line(void **state)
{
	char text[PROGRESS_TEXT_SIZE];
	struct endpoint *server;

	(void)state;
	open_transaction(&server);
	send_parameter_status(server, "application_name", "x\n2026-01-01 LOG y\033[2J\xff");
	progress_of_pause(&fake_registry, NULL, text);
	assert_non_null(
		strstr(text, "(application x\\x0a2026-01-01 LOG y\\x1b[2J\\xff, client "));
	disconnect(server);
}

static void test_large_numbers_are_grouped(void **state)
{
	char text[PROGRESS_TEXT_SIZE];

	(void)state;
	fake_process.shutdown = SHUTDOWN_WAIT_FOR_CLIENTS;
	fake_process.drain = DRAIN_CLOSING;
	fake_process.shutdown_at = loop_now(&fake_loop);
	fake_process.shutdown_clients = 12345;
	fake_set("shutdown_timeout", "2000");
	progress_of_shutdown(&fake_registry, text);
	assert_string_equal(text,
		"12,345 of 12,345 clients have left, 0 remain, none in a transaction; "
		"idle clients are closed; at most 2,000 s more");
}

static void test_a_long_text_is_cut_at_the_end_of_its_room(void **state)
{
	struct progress progress = {.command = "PAUSE"};
	char line[PROGRESS_LINE_SIZE];
	char name[600];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memset(progress.text, 'y', sizeof(progress.text) - 1);
	progress.text[sizeof(progress.text) - 1] = '\0';
	progress.database = name;
	progress_line(&progress, 0, line);
	assert_int_equal(strlen(line), PROGRESS_LINE_SIZE - 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_pause_has_a_line_after_two_seconds_and_then_every_ten),
		TEST(test_a_pause_of_another_time_begins_anew),
		TEST(test_its_end_has_a_line_if_its_wait_had_one),
		TEST(test_of_several_paused_databases_the_oldest_is_named),
		TEST(test_the_name_of_an_application_cannot_forge_a_line),
		TEST(test_large_numbers_are_grouped),
		TEST(test_a_long_text_is_cut_at_the_end_of_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
