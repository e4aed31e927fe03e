/* SPDX-License-Identifier: ISC */
/* Messages of a client that a server in a failed transaction executes, or refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "session/statements/not_executed.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct client_link client;
static struct buffer messages;

static void query(const char *text)
{
	writer_query(&messages, text);
}

static void parse(const char *name, const char *text)
{
	const size_t mark = writer_begin(&messages, PQ_PARSE);

	writer_string(&messages, name);
	writer_string(&messages, text);
	writer_int16(&messages, 0);
	writer_end(&messages, mark);
}

static void bind_and_execute(const char *name)
{
	size_t mark = writer_begin(&messages, PQ_BIND);

	writer_string(&messages, "");
	writer_string(&messages, name);
	for (int i = 0; i < 3; i++)
		writer_int16(&messages, 0);
	writer_end(&messages, mark);
	mark = writer_begin(&messages, PQ_EXECUTE);
	writer_string(&messages, "");
	writer_int32(&messages, 0);
	writer_end(&messages, mark);
}

static void sync(void)
{
	writer_message(&messages, PQ_SYNC, NULL, 0);
}

static bool is_certain(void)
{
	const bool certain = not_executed_is_certain(&client, messages.data, messages.length);

	buffer_free(&messages);
	return certain;
}

static void test_texts(void **state)
{
	static const struct {
		const char *text;
		bool is_certain;
	} cases[] = {
		{"SELECT 1", true},
		{"", true},
		{"SELECT 1; ROLLBACK; INSERT", true},
		{"BEGIN; INSERT; COMMIT; INSERT", true},
		{"committed", true},
		{"COMMIT", true},
		{"rollback ; \n;", true},
		{"ROLLBACK; INSERT", false},
		{" ;; /* a /* b */ */ -- c\n abort;INSERT", false},
		{"END\n;;;x", false},
		{"Prepare Transaction 'x'; INSERT", false},
		{"rollback to a; INSERT", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		query(cases[i].text);
		assert_int_equal(is_certain(), cases[i].is_certain);
		parse("", cases[i].text);
		bind_and_execute("");
		sync();
		assert_true(is_certain());
	}
}

static void test_messages_behind_the_end_of_the_transaction(void **state)
{
	(void)state;
	query("SELECT 1");
	query("COMMIT");
	sync();
	assert_true(is_certain());
	query("COMMIT");
	query("INSERT");
	assert_false(is_certain());
	parse("", "COMMIT");
	bind_and_execute("");
	sync();
	bind_and_execute("s");
	assert_false(is_certain());
	parse("", "COMMIT");
	bind_and_execute("");
	parse("", "INSERT");
	assert_false(is_certain());
	parse("c", "COMMIT");
	parse("i", "INSERT");
	assert_false(is_certain());
}

static void test_statement_that_is_not_known(void **state)
{
	(void)state;
	bind_and_execute("");
	assert_false(is_certain());
	parse("", "INSERT");
	bind_and_execute("");
	assert_true(is_certain());
}

static void test_message_that_is_cut_is_not_begun(void **state)
{
	(void)state;
	query("SELECT 1");
	query("ROLLBACK; INSERT");
	messages.length -= 1;
	assert_true(is_certain());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_messages_behind_the_end_of_the_transaction),
		cmocka_unit_test(test_statement_that_is_not_known),
		cmocka_unit_test(test_message_that_is_cut_is_not_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
