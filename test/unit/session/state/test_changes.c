/* SPDX-License-Identifier: ISC */
/* Settings that clients SET by statements of their own, which follow without a question. */
#include <malloc.h>

#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct endpoint *client, *other, *server;

static int start(void **state)
{
	struct pool *pool;

	(void)state;
	pool = fake_start_pool("default_pool_size = 1\n");
	client = fake_client(pool);
	other = fake_client(pool);
	server = fake_server(pool);
	return 0;
}

/* --- messages ----------------------------------------------------------------------------- */

static void send_tag(const char *tag, const char *ready)
{
	struct buffer out = {0};

	writer_command_complete(&out, tag);
	letters_write(&out, FROM_SERVER, ready);
	send_buffer(server, &out);
}

static void forget_output(struct endpoint *endpoint)
{
	read_letters(endpoint);
	scripted_forget_output(endpoint->script);
	endpoint->read_offset = endpoint->answered_offset = 0;
}

static void run(const char *sql, const char *tag, const char *ready)
{
	send_query(client, sql);
	forget_output(server);
	send_tag(tag, ready);
	forget_output(client);
}

static const char *followed(const struct endpoint *endpoint, const char *name)
{
	return parameters_get_followed(endpoint_link(endpoint)->parameters, name);
}

/* The server is free, and has what the client has SET. */
static void assert_known(const char *name, const char *value)
{
	assert_state(server, SERVER_IDLE);
	assert_string_equal(followed(client, name), value);
	assert_string_equal(followed(server, name), value);
}

/* --- what is known ------------------------------------------------------------------------ */

static void test_a_plain_set_follows_without_a_question(void **state)
{
	(void)state;
	run("SET app.tenant = 'x'", "SET", "Z");
	assert_known("app.tenant", "x");
	send_query(other, "mine");
	assert_received(server, "QQ");
	send_letters(server, "CCCZCZ");
	assert_null(followed(server, "app.tenant"));
	assert_null(followed(other, "app.tenant"));
}

static void test_sets_of_a_transaction_follow_at_its_commit(void **state)
{
	(void)state;
	run("BEGIN", "BEGIN", ">");
	run("SET app.tenant = 'x'", "SET", ">");
	run("SET LOCAL work_mem = '1MB'", "SET", ">");
	run("SET app.tenant = 'y'", "SET", ">");
	assert_null(followed(client, "app.tenant"));
	run("COMMIT", "COMMIT", "Z");
	assert_known("app.tenant", "y");
	assert_null(followed(client, "work_mem"));
}

static void test_a_rollback_or_an_error_makes_a_question_of_it(void **state)
{
	static const char *const ends[] = {"ROLLBACK", "COMMIT"};

	(void)state;
	for (size_t i = 0; i < COUNT(ends); i++) {
		run("BEGIN", "BEGIN", ">");
		run("SET app.tenant = 'x'", "SET", ">");
		if (i == 1) {
			send_query(client, "fail");
			send_error(server, "22012", "division by zero");
			send_letters(server, "!");
			forget_output(server);
			forget_output(client);
		}
		run(ends[i], "ROLLBACK", "Z");
		assert_state(server, SERVER_ASKING);
		send_letters(server, "TCZ");
		assert_null(followed(client, "app.tenant"));
		assert_null(followed(server, "app.tenant"));
		forget_output(server);
	}
}

static void test_sets_follow_where_other_things_are_asked_for(void **state)
{
	(void)state;
	run("BEGIN", "BEGIN", ">");
	run("SET app.tenant = 'x'", "SET", ">");
	run("CREATE TABLE t (a int)", "CREATE TABLE", ">");
	run("COMMIT", "COMMIT", "Z");
	assert_state(server, SERVER_ASKING);
	send_letters(server, "TCZ");
	assert_known("app.tenant", "x");
}

static void test_a_set_that_fails_changes_nothing(void **state)
{
	(void)state;
	send_query(client, "SET work_mem = 'many'");
	send_error(server, "22023", "invalid value");
	send_letters(server, "Z");
	assert_state(server, SERVER_ASKING);
	send_letters(server, "TCZ");
	assert_null(followed(client, "work_mem"));
}

/* --- limits ------------------------------------------------------------------------------- */

static void test_changes_beyond_their_memory_are_asked_for(void **state)
{
	enum { LENGTH = 30000, SETS = 50 };
	char sql[LENGTH + 100], value[LENGTH + 1];

	(void)state;
	memset(value, 'x', LENGTH);
	value[LENGTH] = '\0';
	run("BEGIN", "BEGIN", ">");
	for (int i = 0; i < SETS; i++) {
		snprintf(sql, sizeof(sql), "SET app.name = '%s'", value);
		run(sql, "SET", ">");
		assert_true(endpoint_server(server)->changes.length <= PARAMETERS_SIZE_MAX);
	}
	run("COMMIT", "COMMIT", "Z");
	assert_state(server, SERVER_ASKING);
	send_letters(server, "TCZ");
	assert_state(server, SERVER_IDLE);
}

/* Each transaction has another value: none of them stays. */
static void test_memory_is_flat_for_any_number_of_values(void **state)
{
	enum { WARM_UP = 1000, ROUNDS = 20000 };
	size_t before = 0;
	char sql[100];

	(void)state;
	for (int i = 0; i < WARM_UP + ROUNDS; i++) {
		if (i == WARM_UP)
			before = mallinfo2().uordblks;
		snprintf(sql, sizeof(sql), "SET app.tenant = 'tenant %d of many'", i);
		run(sql, "SET", "Z");
		assert_state(server, SERVER_IDLE);
	}
	assert_true(mallinfo2().uordblks < before + 64 * 1024);
	snprintf(sql, sizeof(sql), "tenant %d of many", WARM_UP + ROUNDS - 1);
	assert_known("app.tenant", sql);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plain_set_follows_without_a_question),
		TEST(sets_of_a_transaction_follow_at_its_commit),
		TEST(a_rollback_or_an_error_makes_a_question_of_it),
		TEST(sets_follow_where_other_things_are_asked_for),
		TEST(a_set_that_fails_changes_nothing),
		TEST(changes_beyond_their_memory_are_asked_for),
		TEST(memory_is_flat_for_any_number_of_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
