/* SPDX-License-Identifier: ISC */
/* Startup check: startup parameters are tried on a server before their client's login ends. */
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
#include "session/serving/server_session.h"
#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;

/* --- a pool of servers that report a few parameters -------------------------------------- */

static struct endpoint *start_server_in(const char *zone)
{
	struct endpoint *server = fake_launched();
	struct buffer out;

	assert_non_null(server);
	fake_connected(server, 0);
	buffer_init(&out);
	letters_write(&out, FROM_SERVER, "R");
	writer_parameter_status(&out, "server_version", "18.0");
	writer_parameter_status(&out, "search_path", "\"$user\", public");
	writer_parameter_status(&out, "DateStyle", "ISO, MDY");
	writer_parameter_status(&out, "TimeZone", zone);
	writer_parameter_status(&out, "client_encoding", "UTF8");
	writer_parameter_status(&out, "application_name", "");
	letters_write(&out, FROM_SERVER, "KZ");
	send_buffer(server, &out);
	read_letters(server);
	return server;
}

static struct endpoint *start_server(void)
{
	return start_server_in("UTC");
}

static struct endpoint *first; /* the only server, idle */

static struct endpoint *connect_with(const char *name, const char *value, const char *options)
{
	struct endpoint *client = fake_accept(-1);

	send_startup(client, PROTOCOL_3_0, "user", "boss", "database", "db", "options", options,
		name, value, NULL);
	return client;
}

static int start(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_start("[databases]\n"
		   "db = host=/tmp\n"
		   "[pgbouncer]\n"
		   "auth_type = trust\n"
		   "pool_mode = transaction\n"
		   "track_extra_parameters = IntervalStyle\n");
	fake_user("boss", "");
	client = connect_with(NULL, NULL, "");
	first = start_server();
	assert_received(client, "RSSSSSSKZ");
	disconnect(client);
	pool = registry_find_pool(registry_find_database(&fake_registry, "db"),
		registry_find_user(&fake_registry, "boss"), TARGET_INHERIT);
	assert_non_null(pool);
	return 0;
}

/* --- answers of the server ---------------------------------------------------------------- */

/* The answer to one statement, with these values. NULL ends them, "NULL" is the null value. */
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
	letters_write(out, FROM_SERVER, "12");
	letters_write_description(out, count);
	mark = writer_begin(out, PQ_DATA_ROW);
	writer_int16(out, (uint16_t)count);
	for (unsigned i = 0; i < count; i++) {
		const bool null = strcmp(values[i], "NULL") == 0;

		writer_int32(out, null ? UINT32_MAX : (uint32_t)strlen(values[i]));
		writer_bytes(out, values[i], null ? 0 : strlen(values[i]));
	}
	writer_end(out, mark);
	letters_write(out, FROM_SERVER, "C");
}

static void answer(struct endpoint *server, const char *value)
{
	struct buffer out;

	buffer_init(&out);
	write_answer(&out, value, NULL);
	letters_write(&out, FROM_SERVER, "Z");
	send_buffer(server, &out);
}

static void refuse(struct endpoint *server, const char *sqlstate, const char *text)
{
	struct buffer out;

	buffer_init(&out);
	letters_write(&out, FROM_SERVER, "12");
	writer_error(&out, "ERROR", sqlstate, text);
	letters_write(&out, FROM_SERVER, "Z");
	send_buffer(server, &out);
}

static bool was_sent(const struct endpoint *server, const char *text, size_t text_length)
{
	size_t length;
	const uint8_t *sent = scripted_output(server->script, &length);

	return memmem(sent, length, text, text_length) != NULL;
}

#define assert_sent(server, text) assert_true(was_sent(server, text, strlen(text)))

/* Bind has this value. */
static void assert_bound(const struct endpoint *server, const char *value)
{
	struct buffer bound;

	buffer_init(&bound);
	writer_int32(&bound, (uint32_t)strlen(value));
	writer_bytes(&bound, value, strlen(value));
	assert_true(was_sent(server, (const char *)bound.data, bound.length));
	buffer_free(&bound);
}

/* The value of this parameter in the welcome message of a client. */
static const char *welcome_value(struct endpoint *client, const char *name)
{
	static char value[200];
	size_t length;
	const uint8_t *output = scripted_output(client->script, &length);
	const uint8_t *at = memmem(output, length, name, strlen(name) + 1);

	assert_non_null(at);
	snprintf(value, sizeof(value), "%s", at + strlen(name) + 1);
	return value;
}

/* --- when a server is asked --------------------------------------------------------------- */

static void test_values_equal_to_the_welcome_are_not_checked(void **state)
{
	(void)state;
	assert_received(
		connect_with("timezone", "utc", "-c datestyle=iso,\\ mdy"), "RSSSSSSKZ");
	assert_received(connect_with("application_name",
				"it's a \\ name of 70 letters, which the server "
				"will cut at 63 but ~never~ refuse",
				""),
		"RSSSSSSKZ");
	assert_received(first, "");
}

static void test_checked_value_is_reported_in_the_spelling_of_the_server(void **state)
{
	struct endpoint *client = connect_with("datestyle", "german", "");

	(void)state;
	assert_received(client, "");
	assert_state(client, CLIENT_LOOKING_UP);
	assert_state(first, SERVER_LOOKING_UP);
	assert_sent(first, "SELECT pg_catalog.left(pg_catalog.set_config($1,$2,true),128)");
	assert_bound(first, "DateStyle");
	assert_bound(first, "german");
	assert_received(first, "PBDES");
	answer(first, "German, DMY");
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "DateStyle"), "German, DMY");
	assert_state(first, SERVER_IDLE);
}

/* The parameters of a replication client are sent in the startup message of its own server. */
static void test_parameters_of_a_replication_client_are_not_checked(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	send_startup(client, PROTOCOL_3_0, "user", "boss", "database", "db", "replication",
		"database", "work_mem", "1MB", NULL);
	assert_received(client, "RSSSSSSKZ");
	assert_received(first, "");
}

static void test_clients_with_the_same_values_share_a_query(void **state)
{
	struct endpoint *clients[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name %d", i);
		clients[i] = connect_with("application_name", name,
			i == 1 ? "-c WORK_MEM=1MB" : "-c work_mem=1MB");
		if (i == 0)
			assert_received(first, "PBDES");
	}
	assert_received(first, "");
	answer(first, "1MB");
	/*
	 * The other clients came after the query was sent: one more query serves both, or none
	 * is needed.
	 */
	for (int i = 0; i < 3; i++)
		read_letters(clients[i]);
	if (endpoint_link(first)->state == SERVER_LOOKING_UP)
		answer(first, "1MB");
	for (int i = 0; i < 3; i++)
		assert_state(clients[i], CLIENT_IDLE);
	read_letters(first);
	clients[0] = connect_with("work_mem", "1MB", "");
	assert_received(clients[0], "RSSSSSSKZ");
	assert_received(first, "");
	/* Another value needs another query. */
	connect_with("work_mem", "1mb", "");
	assert_received(first, "PBDES");
}

static void test_checked_values_are_forgotten_with_the_welcome(void **state)
{
	(void)state;
	connect_with("work_mem", "1MB", "");
	answer(first, "1MB");
	assert_int_equal(pool->checked.count, 1);
	pool_mark_close_needed(pool, SERVER_CLOSED_RECONNECT);
	assert_int_equal(pool->checked.count, 0);
	assert_null(pool->checked.entries);
}

/* The pool remembers a set that was good: clients that ask for the same are not looked at. */
static void test_values_of_an_old_welcome_are_checked_with_the_new_one(void **state)
{
	struct endpoint *client, *second;

	(void)state;
	for (int i = 0; i < 2; i++) {
		client = connect_with("TimeZone", "UTC", "");
		assert_received(client, "RSSSSSSKZ");
		assert_ptr_equal(pool->welcome_kept, client_of(endpoint_link(client))->asked);
	}
	assert_received(first, "");
	pool_mark_close_needed(pool, SERVER_CLOSED_RECONNECT);
	assert_null(pool->welcome_kept);
	client = connect_with("TimeZone", "UTC", "");
	second = start_server_in("CET");
	assert_received(client, "");
	answer(second, "UTC");
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "TimeZone"), "UTC");
}

static void test_values_of_strict_mode_are_checked_when_they_are_followed(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("startup_parameters", "strict");
	client = connect_with("TimeZone", "Nowhere", "");
	assert_received(client, "RSSSSSSKZ");
	fake_set("startup_parameters", "follow");
	client = connect_with("TimeZone", "Nowhere", "");
	assert_received(client, "");
	refuse(first, "22023", "unknown zone");
	assert_received(client, "E");
}

/* The check changes these values, so what the client asked for is not what it keeps. */
static void test_values_in_another_spelling_are_not_remembered_as_good(void **state)
{
	const struct parameters *before = pool->welcome_kept;

	(void)state;
	assert_received(connect_with("TimeZone", "utc", ""), "RSSSSSSKZ");
	assert_ptr_equal(pool->welcome_kept, before);
}

static void test_number_of_remembered_values_is_limited(void **state)
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

static void test_strict_mode_checks_nothing(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("startup_parameters", "strict");
	client = connect_with("datestyle", "nonsense", "");
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "DateStyle"), "nonsense");
	assert_received(first, "");
}

/* --- what is reported --------------------------------------------------------------------- */

static void test_refused_value_is_reported_in_the_words_of_the_server(void **state)
{
	struct endpoint *client = connect_with("timezone", "Nowhere", "");

	(void)state;
	refuse(first, "22023", "invalid value for parameter \"TimeZone\": \"Nowhere\"");
	assert_closed_with_error(
		client, "22023", "invalid value for parameter \"TimeZone\": \"Nowhere\"");
	assert_state(first, SERVER_IDLE);
	assert_int_equal(pool->checked.count, 0);
}

static void test_unknown_parameter_is_reported_with_its_place(void **state)
{
	struct endpoint *client = connect_with("no_such", "1", "-c work_mem=1MB");

	(void)state;
	refuse(first, "42704", "unrecognized configuration parameter \"no_such\"");
	assert_closed_with_error(client, "08P01", "unsupported startup parameter: no_such");
	client = connect_with("work_mem", "1MB", "-c No_Such=1");
	refuse(first, "42704", "Parameter \xc2\xabno_such\xc2\xbb nicht erkannt");
	assert_closed_with_error(
		client, "08P01", "unsupported startup parameter in options: no_such");
	/* The error names another parameter, or only a part of the name. */
	client = connect_with("such", "1", "-c work_mem=1MB");
	refuse(first, "42704", "tablespace \"no_such\" does not exist");
	assert_closed_with_error(client, "42704", "tablespace \"no_such\" does not exist");
}

static void test_parameter_reported_by_servers_is_in_the_welcome(void **state)
{
	struct endpoint *client = connect_with("search_path", "A,b", "");

	(void)state;
	answer(first, "a, b");
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "search_path"), "a, b");
	assert_string_equal(welcome_value(client, "server_version"), "18.0");
	/* Other clients do not receive that parameter. */
	client = connect_with(NULL, NULL, "");
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "search_path"), "\"$user\", public");
}

static void test_unreported_parameter_is_set_as_the_client_wrote_it(void **state)
{
	struct endpoint *client = connect_with("seedling", "0.50", "");

	(void)state;
	answer(first, "unavailable");
	assert_received(client, "RSSSSSSKZ");
	read_letters(first);
	send_query(client, "SELECT 1");
	assert_sent(first, "SET seedling='0.50';");
}

static void test_tracked_parameter_that_is_not_reported_is_followed(void **state)
{
	struct endpoint *client = connect_with("intervalstyle", "iso_8601", "");

	(void)state;
	answer(first, "iso_8601");
	assert_received(client, "RSSSSSSKZ");
	read_letters(first);
	send_query(client, "SELECT 1");
	assert_sent(first, "SET intervalstyle='iso_8601';");
}

/* The new role may not be allowed to set the other parameters, so role comes last. */
static void test_role_is_set_last(void **state)
{
	struct endpoint *client = connect_with("role", "team", "-c work_mem=1MB -c geqo=off");
	const uint8_t *sent, *role, *rest;
	size_t length;

	(void)state;
	assert_received(first, "PBDES");
	sent = scripted_output(first->script, &length);
	role = memmem(sent, length, "\0\0\0\4role", 8);
	rest = memmem(sent, length, "\0\0\0\4geqo", 8);
	assert_non_null(role);
	assert_non_null(rest);
	assert_true(role > rest);
	assert_true(role > (const uint8_t *)memmem(sent, length, "work_mem", 8));
	assert_false(is_closed(client));
}

static void test_spelling_that_is_too_long_is_not_stored(void **state)
{
	char longest[129];
	struct endpoint *client;

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[128] = '\0';
	client = connect_with("search_path", "short", "");
	answer(first, longest);
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "search_path"), "short");
	client = connect_with("search_path", "other", "");
	answer(first, longest + 1);
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "search_path"), longest + 1);
}

static void test_error_of_another_kind_is_reported_unchanged(void **state)
{
	struct endpoint *client = connect_with("work_mem", "much", "");

	(void)state;
	refuse(first, "22023", "invalid value for parameter \"work_mem\": \"much\"");
	assert_closed_with_error(
		client, "22023", "invalid value for parameter \"work_mem\": \"much\"");
}

/* --- application_name --------------------------------------------------------------------- */

static void test_application_name_is_cleaned_and_not_checked(void **state)
{
	struct endpoint *client = connect_with("application_name", "a\xe4", "");

	(void)state;
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "application_name"), "a\\xe4");
	assert_received(first, "");
}

static void test_long_application_name_is_truncated_as_by_the_server(void **state)
{
	char name[APPLICATION_NAME_MAX + 2];
	struct endpoint *client;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	client = connect_with("application_name", name, "");
	assert_received(client, "RSSSSSSKZ");
	name[sizeof(name) - 2] = '\0';
	assert_string_equal(welcome_value(client, "application_name"), name);
	assert_received(first, "");
}

/* --- spellings ---------------------------------------------------------------------------- */

static void test_values_are_reported_in_the_spelling_of_the_welcome(void **state)
{
	struct endpoint *client = connect_with("datestyle", "iso, mdy", "-c TimeZone=utc");

	(void)state;
	assert_received(client, "RSSSSSSKZ");
	assert_received(first, "");
	assert_string_equal(welcome_value(client, "DateStyle"), "ISO, MDY");
	assert_string_equal(welcome_value(client, "TimeZone"), "UTC");
}

/* A DateStyle that names no order of day and month keeps that of the session. */
static void test_value_is_checked_against_the_initial_values_of_the_server(void **state)
{
	struct endpoint *client;

	(void)state;
	assert_true(link_set_parameter(endpoint_link(first),
		(unsigned)parameter_index(fake_registry.parameters, "DateStyle"), "SQL, DMY"));
	client = connect_with("datestyle", "German", "");
	assert_sent(first, "SET DateStyle='ISO, MDY';");
	assert_received(client, "");
}

/* --- encodings ---------------------------------------------------------------------------- */

static void test_encoding_is_set_before_other_parameters(void **state)
{
	struct endpoint *client = connect_with("client_encoding", "latin1", "-c my.name=\xe4");
	struct buffer out;

	(void)state;
	assert_sent(first, "SELECT pg_catalog.set_config('client_encoding',$1,true)");
	assert_received(first, "PBDEPBDES");
	buffer_init(&out);
	write_answer(&out, "LATIN1", NULL);
	write_answer(&out, "\xe4", NULL);
	letters_write(&out, FROM_SERVER, "Z");
	send_buffer(first, &out);
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "client_encoding"), "LATIN1");
	/* The encoding is also set first for the client's query, which waits for both. */
	read_letters(first);
	send_query(client, "SELECT 1");
	assert_sent(first, "SET client_encoding='LATIN1'");
	assert_sent(first, "SET client_encoding='LATIN1';SET \"my\".\"name\"='\xe4';");
	assert_received(first, "QQ");
	send_letters(first, "CZ");
	assert_received(first, "");
	send_letters(first, "CCZ");
	assert_received(first, "Q");
}

static void test_encoding_alone_is_one_statement(void **state)
{
	struct endpoint *client = connect_with("client_encoding", "latin1", "");

	(void)state;
	assert_received(first, "PBDES");
	answer(first, "LATIN1");
	assert_received(client, "RSSSSSSKZ");
}

static void test_encoding_of_the_previous_client_is_replaced(void **state)
{
	struct endpoint *other = connect_with("client_encoding", "latin1", ""), *client;
	struct buffer out;

	(void)state;
	answer(first, "LATIN1");
	read_letters(first);
	send_query(other, "SELECT 1");
	assert_received(first, "QQ");
	send_parameter_status(first, "client_encoding", "LATIN1");
	send_letters(first, "CZCZ");
	assert_state(first, SERVER_IDLE);
	client = connect_with("work_mem", "1MB", "");
	assert_received(first, "PBDEPBDES");
	assert_bound(first, "UTF8");
	buffer_init(&out);
	write_answer(&out, "UTF8", NULL);
	write_answer(&out, "1MB", NULL);
	letters_write(&out, FROM_SERVER, "Z");
	send_buffer(first, &out);
	assert_received(client, "RSSSSSSKZ");
	assert_string_equal(welcome_value(client, "client_encoding"), "UTF8");
}

/* --- servers ------------------------------------------------------------------------------ */

static void test_followed_parameters_of_the_previous_client_are_reset_first(void **state)
{
	struct endpoint *client = connect_with("role", "team", "");

	(void)state;
	answer(first, "team");
	read_letters(first);
	send_query(client, "SELECT 1");
	assert_received(first, "Q");
	send_letters(first, "CZ");
	assert_received(first, "Q");
	send_letters(first, "CZ");
	client = connect_with("work_mem", "1MB", "");
	assert_sent(first, "RESET role;");
	assert_received(first, "QPBDES");
	send_letters(first, "CZ");
	assert_false(parameters_has_followed(endpoint_link(first)->parameters));
	answer(first, "1MB");
	assert_received(client, "RSSSSSSKZ");
}

static void test_server_closed_before_its_answer_is_replaced(void **state)
{
	struct endpoint *client, *second;

	(void)state;
	fake_advance(USEC_PER_SEC);
	client = connect_with("work_mem", "1MB", "");
	break_connection(first);
	assert_state(client, CLIENT_LOOKING_UP);
	second = start_server();
	fake_turn();
	answer(second, "1MB");
	assert_received(client, "RSSSSSSKZ");
}

static void test_unexpected_answers_close_the_server(void **state)
{
	struct endpoint *client = connect_with("work_mem", "1MB", "");
	struct buffer out;

	(void)state;
	buffer_init(&out);
	write_answer(&out, "1MB", "2MB", NULL);
	send_buffer(first, &out);
	assert_closed(first);
	assert_closed_with_error(client, "08P01", "invalid server parameter");
	client = connect_with("work_mem", "1MB", "");
	first = start_server();
	answer(first, "NULL");
	assert_closed(first);
	assert_closed_with_error(client, "08P01", "invalid server parameter");
	/* A value with a zero byte within. */
	client = connect_with("work_mem", "1MB", "");
	first = start_server();
	buffer_init(&out);
	letters_write(&out, FROM_SERVER, "12");
	letters_write_description(&out, 1);
	buffer_append(&out, "D\0\0\0\15\0\1\0\0\0\3a\0b", 14);
	send_buffer(first, &out);
	assert_closed(first);
	assert_closed_with_error(client, "08P01", "invalid server parameter");
	/* An error after the whole answer. */
	client = connect_with("work_mem", "1MB", "");
	first = start_server();
	buffer_init(&out);
	write_answer(&out, "1MB", NULL);
	writer_error(&out, "ERROR", "XX000", "late");
	send_buffer(first, &out);
	assert_closed(first);
	assert_closed_with_error(client, "08P01", "invalid server parameter");
}

/* The encoding was accepted, but the refused value is not remembered as checked. */
static void test_value_refused_after_the_encoding_is_checked_again(void **state)
{
	struct buffer out;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct endpoint *client =
			connect_with("client_encoding", "latin1", "-c work_mem=much");

		assert_received(first, "PBDEPBDES");
		buffer_init(&out);
		write_answer(&out, "LATIN1", NULL);
		letters_write(&out, FROM_SERVER, "12");
		writer_error(&out, "ERROR", "22023", "no number");
		letters_write(&out, FROM_SERVER, "Z");
		send_buffer(first, &out);
		assert_closed_with_error(client, "22023", "no number");
	}
}

/*
 * The query replaces the unnamed statement of the session: the other client's must be prepared
 * again.
 */
static void test_check_replaces_the_unnamed_statement(void **state)
{
	struct endpoint *other = connect_with(NULL, NULL, "");

	(void)state;
	send_letters(other, "PS");
	assert_received(first, "PS");
	send_letters(first, "1Z");
	connect_with("work_mem", "1MB", "");
	answer(first, "1MB");
	read_letters(first);
	send_letters(other, "BES");
	assert_received(first, "PBES");
}

static void test_startup_check_ends_with_its_client(void **state)
{
	struct endpoint *client = connect_with("work_mem", "1MB", "");

	(void)state;
	disconnect(client);
	fake_turn();
	assert_closed(first);
	assert_int_equal(pool->looking_up, 0);
	assert_int_equal(pool->lookups_running, 0);
}

static void test_new_server_serves_welcome_and_startup_check(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	pool_mark_close_needed(pool, SERVER_CLOSED_RECONNECT);
	client = connect_with("work_mem", "1MB", "");
	assert_state(client, CLIENT_WELCOMING);
	server = start_server();
	assert_state(client, CLIENT_LOOKING_UP);
	fake_turn();
	answer(server, "1MB");
	assert_received(client, "RSSSSSSKZ");
}

static void test_query_pipelined_with_the_login_is_run(void **state)
{
	struct endpoint *client = connect_with("work_mem", "1MB", "");

	(void)state;
	assert_state(client, CLIENT_LOOKING_UP);
	send_query(client, "SELECT 1");
	answer(first, "1MB");
	scripted_run_all(client->script);
	assert_received(client, "RSSSSSSKZ");
	assert_sent(first, "SET work_mem='1MB';");
	send_letters(first, "CZ");
	assert_sent(first, "SELECT 1");
}

#define WITH_POOL(test) cmocka_unit_test_setup_teardown(test, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_POOL(test_values_equal_to_the_welcome_are_not_checked),
		WITH_POOL(test_checked_value_is_reported_in_the_spelling_of_the_server),
		WITH_POOL(test_parameters_of_a_replication_client_are_not_checked),
		WITH_POOL(test_clients_with_the_same_values_share_a_query),
		WITH_POOL(test_checked_values_are_forgotten_with_the_welcome),
		WITH_POOL(test_values_of_an_old_welcome_are_checked_with_the_new_one),
		WITH_POOL(test_values_of_strict_mode_are_checked_when_they_are_followed),
		WITH_POOL(test_values_in_another_spelling_are_not_remembered_as_good),
		WITH_POOL(test_number_of_remembered_values_is_limited),
		WITH_POOL(test_strict_mode_checks_nothing),
		WITH_POOL(test_refused_value_is_reported_in_the_words_of_the_server),
		WITH_POOL(test_unknown_parameter_is_reported_with_its_place),
		WITH_POOL(test_parameter_reported_by_servers_is_in_the_welcome),
		WITH_POOL(test_unreported_parameter_is_set_as_the_client_wrote_it),
		WITH_POOL(test_tracked_parameter_that_is_not_reported_is_followed),
		WITH_POOL(test_application_name_is_cleaned_and_not_checked),
		WITH_POOL(test_long_application_name_is_truncated_as_by_the_server),
		WITH_POOL(test_values_are_reported_in_the_spelling_of_the_welcome),
		WITH_POOL(test_value_is_checked_against_the_initial_values_of_the_server),
		WITH_POOL(test_encoding_is_set_before_other_parameters),
		WITH_POOL(test_encoding_alone_is_one_statement),
		WITH_POOL(test_role_is_set_last),
		WITH_POOL(test_spelling_that_is_too_long_is_not_stored),
		WITH_POOL(test_error_of_another_kind_is_reported_unchanged),
		WITH_POOL(test_encoding_of_the_previous_client_is_replaced),
		WITH_POOL(test_followed_parameters_of_the_previous_client_are_reset_first),
		WITH_POOL(test_server_closed_before_its_answer_is_replaced),
		WITH_POOL(test_unexpected_answers_close_the_server),
		WITH_POOL(test_value_refused_after_the_encoding_is_checked_again),
		WITH_POOL(test_check_replaces_the_unnamed_statement),
		WITH_POOL(test_startup_check_ends_with_its_client),
		WITH_POOL(test_new_server_serves_welcome_and_startup_check),
		WITH_POOL(test_query_pipelined_with_the_login_is_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
