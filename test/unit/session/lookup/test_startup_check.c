/* SPDX-License-Identifier: ISC */
/* Startup parameters that are tried on a server before their client is let in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/checked_parameters.h"
#include "session/auth/method.h"
#include "session/link/close.h"
#include "session/parameters/application_name.h"
#include "session/pool/lookup.h"
#include "session/work/server_session.h"
#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;

/* --- a pool whose servers report a few parameters ------------------------------------------ */

static struct actor *start_server(void)
{
	struct actor *server = fake_launched();
	struct buffer out;

	assert_non_null(server);
	fake_connected(server, 0);
	buffer_init(&out);
	letters_write(&out, SERVER_SPEAKS, "R");
	writer_parameter_status(&out, "server_version", "18.0");
	writer_parameter_status(&out, "search_path", "\"$user\", public");
	writer_parameter_status(&out, "DateStyle", "ISO, MDY");
	writer_parameter_status(&out, "TimeZone", "UTC");
	writer_parameter_status(&out, "client_encoding", "UTF8");
	writer_parameter_status(&out, "application_name", "");
	letters_write(&out, SERVER_SPEAKS, "KZ");
	say_buffer(server, &out);
	hear(server);
	return server;
}

static struct actor *first; /* its only server, idle */

static struct actor *come(const char *name, const char *value, const char *options)
{
	struct actor *client = fake_accept(-1);

	say_startup(client, PROTOCOL_3_0, "user", "boss", "database", "db", "options", options,
		name, value, NULL);
	return client;
}

static int start(void **state)
{
	struct actor *client;

	(void)state;
	fake_start("[databases]\n"
		   "db = host=/tmp\n"
		   "[pgbouncer]\n"
		   "auth_type = trust\n"
		   "pool_mode = transaction\n"
		   "track_extra_parameters = IntervalStyle\n");
	fake_user("boss", "");
	client = come(NULL, NULL, "");
	first = start_server();
	assert_heard(client, "RSSSSSSKZ");
	leave(client);
	pool = registry_find_pool(registry_find_database(&fake_registry, "db"),
		registry_find_user(&fake_registry, "boss"));
	assert_non_null(pool);
	return 0;
}

/* --- what servers say ---------------------------------------------------------------------- */

/* The answer to one statement, with these values; NULL ends them, "NULL" is none. */
static void write_answer(struct buffer *out, ...)
{
	const char *values[8];
	unsigned count = 0;
	va_list list;
	size_t mark;

	va_start(list, out);
	while ((values[count] = va_arg(list, const char *)) != NULL)
		count++;
	va_end(list);
	letters_write(out, SERVER_SPEAKS, "12");
	letters_write_description(out, count);
	mark = writer_begin(out, PQ_DATA_ROW);
	writer_int16(out, (uint16_t)count);
	for (unsigned i = 0; i < count; i++) {
		const bool null = strcmp(values[i], "NULL") == 0;

		writer_int32(out, null ? UINT32_MAX : (uint32_t)strlen(values[i]));
		writer_bytes(out, values[i], null ? 0 : strlen(values[i]));
	}
	writer_end(out, mark);
	letters_write(out, SERVER_SPEAKS, "C");
}

static void answer(struct actor *server, const char *value)
{
	struct buffer out;

	buffer_init(&out);
	write_answer(&out, value, NULL);
	letters_write(&out, SERVER_SPEAKS, "Z");
	say_buffer(server, &out);
}

static void refuse(struct actor *server, const char *sqlstate, const char *text)
{
	struct buffer out;

	buffer_init(&out);
	letters_write(&out, SERVER_SPEAKS, "12");
	writer_error(&out, "ERROR", sqlstate, text);
	letters_write(&out, SERVER_SPEAKS, "Z");
	say_buffer(server, &out);
}

static bool was_sent(const struct actor *server, const char *text, size_t text_length)
{
	size_t length;
	const uint8_t *sent = scripted_output(server->script, &length);

	return memmem(sent, length, text, text_length) != NULL;
}

#define assert_sent(server, text) assert_true(was_sent(server, text, strlen(text)))

/* A value as Bind has it. */
static void assert_bound(const struct actor *server, const char *value)
{
	struct buffer bound;

	buffer_init(&bound);
	writer_int32(&bound, (uint32_t)strlen(value));
	writer_bytes(&bound, value, strlen(value));
	assert_true(was_sent(server, (const char *)bound.data, bound.length));
	buffer_free(&bound);
}

/* What a client was told that a parameter is. */
static const char *told(struct actor *client, const char *name)
{
	static char value[200];
	size_t length;
	const uint8_t *output = scripted_output(client->script, &length);
	const uint8_t *at = memmem(output, length, name, strlen(name) + 1);

	assert_non_null(at);
	snprintf(value, sizeof(value), "%s", at + strlen(name) + 1);
	return value;
}

/* --- who is asked -------------------------------------------------------------------------- */

static void test_what_the_welcome_says_anyway_is_not_asked(void **state)
{
	(void)state;
	assert_heard(come("timezone", "utc", "-c datestyle=iso,\\ mdy"), "RSSSSSSKZ");
	assert_heard(come("application_name",
			     "it's a \\ name of 70 letters, which the server "
			     "will cut at 63 but ~never~ refuse",
			     ""),
		"RSSSSSSKZ");
	assert_heard(first, "");
}

static void test_a_value_is_asked_and_told_in_the_servers_spelling(void **state)
{
	struct actor *client = come("datestyle", "german", "");

	(void)state;
	assert_heard(client, "");
	assert_state(client, CLIENT_LOOKING_UP);
	assert_state(first, SERVER_LOOKING_UP);
	assert_sent(first, "SELECT pg_catalog.left(pg_catalog.set_config($1,$2,true),128)");
	assert_bound(first, "DateStyle");
	assert_bound(first, "german");
	assert_heard(first, "PBDES");
	answer(first, "German, DMY");
	assert_heard(client, "RSSSSSSKZ");
	assert_string_equal(told(client, "DateStyle"), "German, DMY");
	assert_state(first, SERVER_IDLE);
}

/* Its own server is told all of that when it is launched. */
static void test_a_client_of_replication_asks_nobody(void **state)
{
	struct actor *client = fake_accept(-1);

	(void)state;
	say_startup(client, PROTOCOL_3_0, "user", "boss", "database", "db", "replication",
		"database", "work_mem", "1MB", NULL);
	assert_heard(client, "RSSSSSSKZ");
	assert_heard(first, "");
}

static void test_one_query_is_enough_for_all_who_want_the_same(void **state)
{
	struct actor *clients[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name %d", i);
		clients[i] = come("application_name", name,
			i == 1 ? "-c WORK_MEM=1MB" : "-c work_mem=1MB");
		if (i == 0)
			assert_heard(first, "PBDES");
	}
	assert_heard(first, "");
	answer(first, "1MB");
	/* The others came after the question had been sent: they ask once for both, or not at all. */
	for (int i = 0; i < 3; i++)
		hear(clients[i]);
	if (actor_link(first)->state == SERVER_LOOKING_UP)
		answer(first, "1MB");
	for (int i = 0; i < 3; i++)
		assert_state(clients[i], CLIENT_IDLE);
	hear(first);
	clients[0] = come("work_mem", "1MB", "");
	assert_heard(clients[0], "RSSSSSSKZ");
	assert_heard(first, "");
	/* Another value is another question. */
	come("work_mem", "1mb", "");
	assert_heard(first, "PBDES");
}

static void test_what_was_proven_is_forgotten_with_the_welcome(void **state)
{
	(void)state;
	come("work_mem", "1MB", "");
	answer(first, "1MB");
	assert_int_equal(pool->checked.count, 1);
	pool_mark_close_needed(pool, SERVER_CLOSED_RECONNECT);
	assert_int_equal(pool->checked.count, 0);
	assert_null(pool->checked.entries);
}

static void test_only_so_much_is_remembered(void **state)
{
	struct parameter_table *table = fake_registry.parameters;
	struct parameters *empty = parameters_empty(table), *oldest = NULL;
	struct checked_parameters checked = {0};
	char zone[32];

	(void)state;
	for (int i = 0; i < CHECKED_PARAMETERS_MAX + 1; i++) {
		struct parameters *set;

		snprintf(zone, sizeof(zone), "zone %d", i);
		set = parameters_with(table, empty, 2, zone);
		checked_parameters_add(&checked, set, set);
		assert_ptr_equal(checked_parameters_find(&checked, set), set);
		if (i == 0)
			oldest = parameters_ref(set);
		if (i < CHECKED_PARAMETERS_MAX)
			assert_ptr_equal(checked_parameters_find(&checked, oldest), oldest);
		parameters_unref(set);
	}
	assert_int_equal(checked.count, CHECKED_PARAMETERS_MAX);
	assert_null(checked_parameters_find(&checked, oldest));
	parameters_unref(oldest);
	checked_parameters_clear(&checked);
	parameters_unref(empty);
}

static void test_strict_asks_nobody(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("startup_parameters", "strict");
	client = come("datestyle", "nonsense", "");
	assert_heard(client, "RSSSSSSKZ");
	assert_string_equal(told(client, "DateStyle"), "nonsense");
	assert_heard(first, "");
}

/* --- what is told -------------------------------------------------------------------------- */

static void test_a_bad_value_is_told_as_the_server_says_it(void **state)
{
	struct actor *client = come("timezone", "Nowhere", "");

	(void)state;
	refuse(first, "22023", "invalid value for parameter \"TimeZone\": \"Nowhere\"");
	assert_told(client, "22023", "invalid value for parameter \"TimeZone\": \"Nowhere\"");
	assert_state(first, SERVER_IDLE);
	assert_int_equal(pool->checked.count, 0);
}

static void test_an_unknown_name_is_told_with_its_place(void **state)
{
	struct actor *client = come("no_such", "1", "-c work_mem=1MB");

	(void)state;
	refuse(first, "42704", "unrecognized configuration parameter \"no_such\"");
	assert_told(client, "08P01", "unsupported startup parameter: no_such");
	client = come("work_mem", "1MB", "-c No_Such=1");
	refuse(first, "42704", "Parameter \xc2\xabno_such\xc2\xbb nicht erkannt");
	assert_told(client, "08P01", "unsupported startup parameter in options: no_such");
	/* Something else is missing; half a name is none. */
	client = come("such", "1", "-c work_mem=1MB");
	refuse(first, "42704", "tablespace \"no_such\" does not exist");
	assert_told(client, "42704", "tablespace \"no_such\" does not exist");
}

static void test_what_servers_report_besides_is_told_in_their_spelling(void **state)
{
	struct actor *client = come("search_path", "A,b", "");

	(void)state;
	answer(first, "a, b");
	assert_heard(client, "RSSSSSSKZ");
	assert_string_equal(told(client, "search_path"), "a, b");
	assert_string_equal(told(client, "server_version"), "18.0");
	/* And no other client is told so. */
	client = come(NULL, NULL, "");
	assert_heard(client, "RSSSSSSKZ");
	assert_string_equal(told(client, "search_path"), "\"$user\", public");
}

static void test_what_nobody_reports_is_set_as_the_client_wrote_it(void **state)
{
	struct actor *client = come("seedling", "0.50", "");

	(void)state;
	answer(first, "unavailable");
	assert_heard(client, "RSSSSSSKZ");
	hear(first);
	say_query(client, "SELECT 1");
	assert_sent(first, "SET seedling='0.50';");
}

static void test_a_tracked_one_that_is_not_reported_is_followed(void **state)
{
	struct actor *client = come("intervalstyle", "iso_8601", "");

	(void)state;
	answer(first, "iso_8601");
	assert_heard(client, "RSSSSSSKZ");
	hear(first);
	say_query(client, "SELECT 1");
	assert_sent(first, "SET intervalstyle='iso_8601';");
}

/* As whoever it is, he may not be allowed to set the rest; a spelling has its limit. */
static void test_who_it_is_is_set_last(void **state)
{
	struct actor *client = come("role", "team", "-c work_mem=1MB -c geqo=off");
	const uint8_t *sent, *role, *rest;
	size_t length;

	(void)state;
	assert_heard(first, "PBDES");
	sent = scripted_output(first->script, &length);
	role = memmem(sent, length, "\0\0\0\4role", 8);
	rest = memmem(sent, length, "\0\0\0\4geqo", 8);
	assert_non_null(role);
	assert_non_null(rest);
	assert_true(role > rest);
	assert_true(role > (const uint8_t *)memmem(sent, length, "work_mem", 8));
	assert_false(is_gone(client));
}

static void test_a_spelling_that_is_too_long_is_not_taken_over(void **state)
{
	char longest[129];
	struct actor *client;

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[128] = '\0';
	client = come("search_path", "short", "");
	answer(first, longest);
	assert_heard(client, "RSSSSSSKZ");
	assert_string_equal(told(client, "search_path"), "short");
	client = come("search_path", "other", "");
	answer(first, longest + 1);
	assert_heard(client, "RSSSSSSKZ");
	assert_string_equal(told(client, "search_path"), longest + 1);
}

static void test_an_error_of_another_kind_is_told_though_it_has_the_name(void **state)
{
	struct actor *client = come("work_mem", "much", "");

	(void)state;
	refuse(first, "22023", "invalid value for parameter \"work_mem\": \"much\"");
	assert_told(client, "22023", "invalid value for parameter \"work_mem\": \"much\"");
}

/* --- names of applications ------------------------------------------------------------------ */

static void test_a_name_that_is_no_text_is_cleaned_and_not_asked_for(void **state)
{
	struct actor *client = come("application_name", "a\xe4", "");

	(void)state;
	assert_heard(client, "RSSSSSSKZ");
	assert_string_equal(told(client, "application_name"), "a\\xe4");
	assert_heard(first, "");
}

static void test_a_long_name_is_cut_as_by_the_server(void **state)
{
	char name[APPLICATION_NAME_MAX + 2];
	struct actor *client;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	client = come("application_name", name, "");
	assert_heard(client, "RSSSSSSKZ");
	name[sizeof(name) - 2] = '\0';
	assert_string_equal(told(client, "application_name"), name);
	assert_heard(first, "");
}

/* --- spellings ------------------------------------------------------------------------------ */

static void test_what_the_welcome_has_is_spelt_as_there(void **state)
{
	struct actor *client = come("datestyle", "iso, mdy", "-c TimeZone=utc");

	(void)state;
	assert_heard(client, "RSSSSSSKZ");
	assert_heard(first, "");
	assert_string_equal(told(client, "DateStyle"), "ISO, MDY");
	assert_string_equal(told(client, "TimeZone"), "UTC");
}

/* A DateStyle without an order of day and month leaves that of the session. */
static void test_a_value_is_tried_on_what_servers_begin_with(void **state)
{
	struct actor *client;

	(void)state;
	assert_true(link_set_parameter(actor_link(first),
		(unsigned)parameter_index(fake_registry.parameters, "DateStyle"), "SQL, DMY"));
	client = come("datestyle", "German", "");
	assert_sent(first, "SET DateStyle='ISO, MDY';");
	assert_heard(client, "");
}

/* --- encodings ----------------------------------------------------------------------------- */

static void test_an_encoding_is_set_first_so_that_the_rest_is_read_in_it(void **state)
{
	struct actor *client = come("client_encoding", "latin1", "-c my.name=\xe4");
	struct buffer out;

	(void)state;
	assert_sent(first, "SELECT pg_catalog.set_config('client_encoding',$1,true)");
	assert_heard(first, "PBDEPBDES");
	buffer_init(&out);
	write_answer(&out, "LATIN1", NULL);
	write_answer(&out, "\xe4", NULL);
	letters_write(&out, SERVER_SPEAKS, "Z");
	say_buffer(first, &out);
	assert_heard(client, "RSSSSSSKZ");
	assert_string_equal(told(client, "client_encoding"), "LATIN1");
	/* Likewise when it is set for good; the client's query waits for both. */
	hear(first);
	say_query(client, "SELECT 1");
	assert_sent(first, "SET client_encoding='LATIN1'");
	assert_sent(first, "SET client_encoding='LATIN1';SET \"my\".\"name\"='\xe4';");
	assert_heard(first, "QQ");
	say(first, "CZ");
	assert_heard(first, "");
	say(first, "CCZ");
	assert_heard(first, "Q");
}

static void test_an_encoding_alone_is_one_statement(void **state)
{
	struct actor *client = come("client_encoding", "latin1", "");

	(void)state;
	assert_heard(first, "PBDES");
	answer(first, "LATIN1");
	assert_heard(client, "RSSSSSSKZ");
}

static void test_the_encoding_of_another_client_is_none(void **state)
{
	struct actor *other = come("client_encoding", "latin1", ""), *client;
	struct buffer out;

	(void)state;
	answer(first, "LATIN1");
	hear(first);
	say_query(other, "SELECT 1");
	assert_heard(first, "QQ");
	say_parameter(first, "client_encoding", "LATIN1");
	say(first, "CZCZ");
	assert_state(first, SERVER_IDLE);
	client = come("work_mem", "1MB", "");
	assert_heard(first, "PBDEPBDES");
	assert_bound(first, "UTF8");
	buffer_init(&out);
	write_answer(&out, "UTF8", NULL);
	write_answer(&out, "1MB", NULL);
	letters_write(&out, SERVER_SPEAKS, "Z");
	say_buffer(first, &out);
	assert_heard(client, "RSSSSSSKZ");
	assert_string_equal(told(client, "client_encoding"), "UTF8");
}

/* --- servers ------------------------------------------------------------------------------- */

static void test_what_others_follow_is_taken_back_first(void **state)
{
	struct actor *client = come("role", "team", "");

	(void)state;
	answer(first, "team");
	hear(first);
	say_query(client, "SELECT 1");
	assert_heard(first, "Q");
	say(first, "CZ");
	assert_heard(first, "Q");
	say(first, "CZ");
	client = come("work_mem", "1MB", "");
	assert_sent(first, "RESET role;");
	assert_heard(first, "QPBDES");
	say(first, "CZ");
	assert_false(parameters_has_followed(actor_link(first)->parameters));
	answer(first, "1MB");
	assert_heard(client, "RSSSSSSKZ");
}

static void test_a_server_that_dies_unheard_is_replaced(void **state)
{
	struct actor *client, *second;

	(void)state;
	fake_advance(USEC_PER_SEC);
	client = come("work_mem", "1MB", "");
	vanish(first);
	assert_state(client, CLIENT_LOOKING_UP);
	second = start_server();
	fake_turn();
	answer(second, "1MB");
	assert_heard(client, "RSSSSSSKZ");
}

static void test_strange_answers_close_the_server(void **state)
{
	struct actor *client = come("work_mem", "1MB", "");
	struct buffer out;

	(void)state;
	buffer_init(&out);
	write_answer(&out, "1MB", "2MB", NULL);
	say_buffer(first, &out);
	assert_gone(first);
	assert_told(client, "08P01", "invalid server parameter");
	client = come("work_mem", "1MB", "");
	first = start_server();
	answer(first, "NULL");
	assert_gone(first);
	assert_told(client, "08P01", "invalid server parameter");
	/* What would end a text in its middle. */
	client = come("work_mem", "1MB", "");
	first = start_server();
	buffer_init(&out);
	letters_write(&out, SERVER_SPEAKS, "12");
	letters_write_description(&out, 1);
	buffer_append(&out, "D\0\0\0\15\0\1\0\0\0\3a\0b", 14);
	say_buffer(first, &out);
	assert_gone(first);
	assert_told(client, "08P01", "invalid server parameter");
	/* An error behind all that was asked. */
	client = come("work_mem", "1MB", "");
	first = start_server();
	buffer_init(&out);
	write_answer(&out, "1MB", NULL);
	writer_error(&out, "ERROR", "XX000", "late");
	say_buffer(first, &out);
	assert_gone(first);
	assert_told(client, "08P01", "invalid server parameter");
}

/* The encoding was taken, and what was refused then is not remembered as checked. */
static void test_what_was_refused_behind_a_row_is_asked_again(void **state)
{
	struct buffer out;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct actor *client = come("client_encoding", "latin1", "-c work_mem=much");

		assert_heard(first, "PBDEPBDES");
		buffer_init(&out);
		write_answer(&out, "LATIN1", NULL);
		letters_write(&out, SERVER_SPEAKS, "12");
		writer_error(&out, "ERROR", "22023", "no number");
		letters_write(&out, SERVER_SPEAKS, "Z");
		say_buffer(first, &out);
		assert_told(client, "22023", "no number");
	}
}

/* The question was the unnamed statement of its server, which is nobody else's. */
static void test_a_question_ends_the_unnamed_statement_before_it(void **state)
{
	struct actor *other = come(NULL, NULL, "");

	(void)state;
	say(other, "PS");
	assert_heard(first, "PS");
	say(first, "1Z");
	come("work_mem", "1MB", "");
	answer(first, "1MB");
	hear(first);
	say(other, "BES");
	assert_heard(first, "PBES");
}

static void test_a_client_that_leaves_takes_its_question_along(void **state)
{
	struct actor *client = come("work_mem", "1MB", "");

	(void)state;
	leave(client);
	fake_turn();
	assert_gone(first);
	assert_int_equal(pool->looking_up, 0);
	assert_int_equal(pool->lookups_running, 0);
}

static void test_nobody_waits_for_the_first_server_twice(void **state)
{
	struct actor *client, *server;

	(void)state;
	pool_mark_close_needed(pool, SERVER_CLOSED_RECONNECT);
	client = come("work_mem", "1MB", "");
	assert_state(client, CLIENT_WELCOMING);
	server = start_server();
	assert_state(client, CLIENT_LOOKING_UP);
	fake_turn();
	answer(server, "1MB");
	assert_heard(client, "RSSSSSSKZ");
}

static void test_a_query_behind_the_login_is_run(void **state)
{
	struct actor *client = come("work_mem", "1MB", "");

	(void)state;
	assert_state(client, CLIENT_LOOKING_UP);
	say_query(client, "SELECT 1");
	answer(first, "1MB");
	scripted_run_all(client->script);
	assert_heard(client, "RSSSSSSKZ");
	assert_sent(first, "SET work_mem='1MB';");
	say(first, "CZ");
	assert_sent(first, "SELECT 1");
}

#define WITH_POOL(test) cmocka_unit_test_setup_teardown(test, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_POOL(test_what_the_welcome_says_anyway_is_not_asked),
		WITH_POOL(test_a_value_is_asked_and_told_in_the_servers_spelling),
		WITH_POOL(test_a_client_of_replication_asks_nobody),
		WITH_POOL(test_one_query_is_enough_for_all_who_want_the_same),
		WITH_POOL(test_what_was_proven_is_forgotten_with_the_welcome),
		WITH_POOL(test_only_so_much_is_remembered),
		WITH_POOL(test_strict_asks_nobody),
		WITH_POOL(test_a_bad_value_is_told_as_the_server_says_it),
		WITH_POOL(test_an_unknown_name_is_told_with_its_place),
		WITH_POOL(test_what_servers_report_besides_is_told_in_their_spelling),
		WITH_POOL(test_what_nobody_reports_is_set_as_the_client_wrote_it),
		WITH_POOL(test_a_tracked_one_that_is_not_reported_is_followed),
		WITH_POOL(test_a_name_that_is_no_text_is_cleaned_and_not_asked_for),
		WITH_POOL(test_a_long_name_is_cut_as_by_the_server),
		WITH_POOL(test_what_the_welcome_has_is_spelt_as_there),
		WITH_POOL(test_a_value_is_tried_on_what_servers_begin_with),
		WITH_POOL(test_an_encoding_is_set_first_so_that_the_rest_is_read_in_it),
		WITH_POOL(test_an_encoding_alone_is_one_statement),
		WITH_POOL(test_who_it_is_is_set_last),
		WITH_POOL(test_a_spelling_that_is_too_long_is_not_taken_over),
		WITH_POOL(test_an_error_of_another_kind_is_told_though_it_has_the_name),
		WITH_POOL(test_the_encoding_of_another_client_is_none),
		WITH_POOL(test_what_others_follow_is_taken_back_first),
		WITH_POOL(test_a_server_that_dies_unheard_is_replaced),
		WITH_POOL(test_strange_answers_close_the_server),
		WITH_POOL(test_what_was_refused_behind_a_row_is_asked_again),
		WITH_POOL(test_a_question_ends_the_unnamed_statement_before_it),
		WITH_POOL(test_a_client_that_leaves_takes_its_question_along),
		WITH_POOL(test_nobody_waits_for_the_first_server_twice),
		WITH_POOL(test_a_query_behind_the_login_is_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
