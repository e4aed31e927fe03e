/* SPDX-License-Identifier: ISC */
/*
 * Client logins, from the first byte to the welcome message: orders of messages, limits, every
 * method, every kind of secret.
 */
#include <errno.h>

#include "crypt/md5.h"
#include "crypt/scram.h"
#include "session/link/derivation.h"
#include "session/login/client_accept.h"
#include "session/login/client_login.h"
#include "session/serving/control.h"
#include "support/fakes/fake_login.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/startup.h"
#include "wire/writer.h"

/* RFC 7677 section 3: password "pencil". */
#define PENCIL                                                                                      \
	"SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:" \
	"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

static char md5_of_secret[36];

static void start_with(const char *settings)
{
	char config[1000];

	snprintf(config, sizeof(config),
		"[databases]\n"
		"db = host=/tmp\n"
		"forced = host=/tmp user=carol\n"
		"[users]\n"
		"limited = max_user_client_connections=1\n"
		"[pgbouncer]\n"
		"scram_iterations = 10\n"
		"admin_users = boss\n"
		"stats_users = clerk\n"
		"%s",
		settings);
	fake_start(config);
	fake_user("alice", "secret");
	assert_true(md5_secret("secret", "hash", md5_of_secret));
	fake_user("hash", md5_of_secret);
	fake_user("scram", PENCIL);
	fake_user("empty", "");
	fake_user("boss", "secret");
	fake_user("clerk", "secret");
	fake_user("limited", "secret");
}

/* The same keys as PENCIL has, which are not those of this number of iterations. */
#define COSTLY                                                                                 \
	"SCRAM-SHA-256$30000000:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLm" \
	"tbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

static int start_trust(void **state)
{
	(void)state;
	start_with("auth_type = trust\n");
	fake_pool("db", "alice");
	return 0;
}

static int start_plain(void **state)
{
	(void)state;
	start_with("auth_type = plain\n");
	return 0;
}

static int start_md5(void **state)
{
	(void)state;
	start_with("auth_type = md5\n");
	return 0;
}

static int start_scram(void **state)
{
	(void)state;
	start_with("auth_type = scram-sha-256\n");
	return 0;
}

/* --- clients ------------------------------------------------------------------------------ */

static void assert_welcome(struct endpoint *client)
{
	const char *letters = read_letters(client);
	const size_t length = strlen(letters);

	assert_true(length >= 3);
	assert_int_equal(letters[0], 'R');
	assert_string_equal(letters + length - 2, "KZ");
	assert_int_equal(strspn(letters + 1, "S"), length - 3);
	assert_state(client, CLIENT_IDLE);
}

/* A failed login has freed everything. */
static void assert_nothing_left(void)
{
	assert_int_equal(fake_registry.process->limits.clients, 0);
	assert_int_equal(fake_registry.login_count, 0);
	assert_int_equal(fake_registry.clients.used, 0);
	assert_int_equal(fake_registry.helds.used, 0);
}

/* --- first messages ----------------------------------------------------------------------- */

static void test_welcome_is_sent_in_one_write(void **state)
{
	struct endpoint *client = startup("alice", "db");
	struct client_link *link = endpoint_client(client);

	(void)state;
	assert_received(client, "RKZ");
	assert_state(client, CLIENT_IDLE);
	assert_string_equal(link->user->name, "alice");
	assert_string_equal(link->database->name, "db");
	assert_null(link->login);
	assert_int_equal(link->database->clients, 1);
	assert_int_equal(link->user->clients, 1);
	assert_int_equal(link->key_length, CANCEL_KEY_MIN);
	assert_int_equal(fake_registry.login_count, 0);
	disconnect(client);
	assert_int_equal(registry_find_user(&fake_registry, "alice")->clients, 0);
	assert_int_equal(registry_find_database(&fake_registry, "db")->clients, 0);
	assert_nothing_left();
}

static void test_startup_message_may_arrive_byte_by_byte(void **state)
{
	static const uint8_t bytes[] = "\0\0\0\x20\0\3\0\0user\0alice\0database\0db\0";
	struct endpoint *client = fake_accept(-1);

	(void)state;
	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		assert_received(client, "");
		send_bytes(client, bytes + i, 1);
	}
	send_bytes(client, "", 1);
	assert_welcome(client);
}

static void test_database_defaults_to_the_user_name(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	fake_user("db", "");
	fake_pool("db", "db");
	send_startup(client, PROTOCOL_3_0, "user", "db", NULL);
	assert_welcome(client);
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "database", "", "user", "db", NULL);
	assert_welcome(client);
}

static void send_request(struct endpoint *client, uint32_t code)
{
	struct buffer buffer;

	buffer_init(&buffer);
	startup_write_request(&buffer, code);
	send_buffer(client, &buffer);
}

static void assert_declined(struct endpoint *client)
{
	size_t length;
	const uint8_t *output = scripted_output(client->script, &length);

	assert_int_equal(length, 1);
	assert_int_equal(output[0], 'N');
	scripted_forget_output(client->script);
	client->read_offset = 0;
}

static void test_encryption_requests_are_declined(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	for (int i = 0; i < 4; i++) {
		send_request(client, SSL_REQUEST_CODE);
		assert_declined(client);
		send_request(client, GSSENC_REQUEST_CODE);
		assert_declined(client);
	}
	assert_state(client, CLIENT_GREETING);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_welcome(client);
}

static void test_incomplete_encryption_request_is_not_answered(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	send_bytes(client, "\0\0\0\x08\x04\xd2\x16", 7);
	assert_received(client, "");
	send_bytes(client, "\x2f", 1);
	assert_declined(client);
}

static void test_bytes_after_an_encryption_request_are_refused(void **state)
{
	struct buffer buffer;
	struct endpoint *client = fake_accept(-1);
	size_t mark;

	(void)state;
	buffer_init(&buffer);
	startup_write_request(&buffer, SSL_REQUEST_CODE);
	mark = startup_begin(&buffer, PROTOCOL_3_0);
	writer_string(&buffer, "user");
	writer_string(&buffer, "alice");
	startup_end(&buffer, mark);
	send_buffer(client, &buffer);
	assert_closed_with_error(
		client, "08P01", "received unencrypted data after SSL request");
	client = fake_accept(-1);
	startup_write_request(&buffer, GSSENC_REQUEST_CODE);
	writer_byte(&buffer, 0);
	send_buffer(client, &buffer);
	assert_closed_with_error(
		client, "08P01", "received unencrypted data after GSSAPI encryption request");
	assert_nothing_left();
}

static void test_protocol_2_is_refused(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	send_request(client, PROTOCOL_2_0);
	assert_closed_with_error(client, "0A000", "old V2 protocol not supported");
}

static void test_invalid_header_is_reported_in_hex(void **state)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{"\0\0\0\0\0\3\0\0", "bad packet header: '0000000000030000'"},
		{"\0\0\0\7\0\3\0\0", "bad packet header: '0000000700030000'"},
		{"\0\0\0\x20\0\4\0\0", "bad packet header: '0000002000040000'"},
		{"\0\0\0\x20\0\1\0\0", "bad packet header: '0000002000010000'"},
		{"\0\1\0\0\0\3\0\0", "bad packet header: '0001000000030000'"},
		{"\0\xff\xff\xff\0\3\0\0", "bad packet header: '00ffffff00030000'"},
		{"\0\0\0\x08\x04\xd2\x16\x31", "bad packet header: '0000000804d21631'"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = fake_accept(-1);

		send_bytes(client, cases[i].bytes, 8);
		assert_closed_with_error(client, "08P01", cases[i].text);
	}
	assert_nothing_left();
}

static void test_other_protocols_are_closed_without_an_error(void **state)
{
	static const char *const greetings[] = {
		"GET / HTTP/1.1\r\nHost: db\r\n\r\n",
		"SSH-2.0-OpenSSH_9.2\r\n",
		"\x16\x03\x01\x02\x05\x01",
		"HELO there\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(greetings); i++) {
		struct endpoint *client = fake_accept(-1);

		send_bytes(client, greetings[i], strlen(greetings[i]));
		assert_closed_silently(client);
	}
	assert_nothing_left();
}

static void test_messages_before_the_startup_message_are_refused(void **state)
{
	struct endpoint *client;

	(void)state;
	for (const char *letter = "QPSXd"; *letter; letter++) {
		const char letters[] = {*letter, '\0'};

		client = fake_accept(-1);
		send_letters(client, letters);
		assert_closed_silently(client);
	}
	client = fake_accept(-1);
	send_letters(client, "p");
	assert_closed_with_error(client, "08P01", "client password pkt before startup packet");
	client = fake_accept(-1);
	send_bytes(client, "p\0\0\0\3", 5);
	assert_closed_with_error(client, "08P01", "bad packet header: '7000000003'");
	client = fake_accept(-1);
	send_bytes(client, "p\x7f\0\0\3", 5);
	assert_closed_silently(client);
	assert_nothing_left();
}

/* --- layout and parameters ---------------------------------------------------------------- */

static struct endpoint *send_startup_body(const char *body, size_t length)
{
	struct endpoint *client = fake_accept(-1);
	struct buffer buffer;

	buffer_init(&buffer);
	writer_int32(&buffer, (uint32_t)length + 8);
	writer_int32(&buffer, PROTOCOL_3_0);
	writer_bytes(&buffer, body, length);
	send_buffer(client, &buffer);
	return client;
}

static void test_malformed_startup_message_is_refused(void **state)
{
	static const struct {
		const char *body;
		size_t length;
	} cases[] = {
		{"", 0},
		{"user\0alice\0", 11},
		{"user\0alice", 10},
		{"user\0", 5},
		{"user", 4},
		{"user\0alice\0\0x", 13},
		{"user\0alice\0\0\0", 13},
		{"user\0alice\0database\0\0\0x", 23},
		{"user\0alice\0database\0", 20},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_closed_with_error(send_startup_body(cases[i].body, cases[i].length),
			"08P01",
			"invalid startup packet layout: expected terminator as last byte");
	assert_nothing_left();
}

static void test_startup_message_without_a_user_is_refused(void **state)
{
	(void)state;
	assert_closed_with_error(send_startup_body("\0", 1), "28000", "no username supplied");
	assert_closed_with_error(
		send_startup_body("user\0\0\0", 7), "28000", "no username supplied");
	assert_closed_with_error(
		send_startup_body("User\0alice\0\0", 12), "28000", "no username supplied");
	assert_closed_with_error(
		send_startup_body("database\0db\0\0", 13), "28000", "no username supplied");
}

static void test_user_name_that_is_too_long_is_refused(void **state)
{
	char name[129];
	struct endpoint *client;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[128] = '\0';
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", name, "database", "db", NULL);
	assert_closed_with_error(client, "28000", "username too long");
	name[127] = '\0';
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", name, "database", "db", NULL);
	assert_closed_with_error(client, "28000", "\"trust\" authentication failed");
	assert_nothing_left();
}

static void test_last_of_repeated_parameters_is_used(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	send_startup(client, PROTOCOL_3_0, "user", "ghost", "database", "nothing", "user",
		"alice", "database", "db", NULL);
	assert_welcome(client);
}

static const char *parameter(struct endpoint *client, const char *name)
{
	const int index = parameter_index(fake_registry.parameters, name);

	return parameters_get(endpoint_link(client)->parameters, (unsigned)index);
}

static void test_tracked_parameters_are_stored_as_sent(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	fake_set("startup_parameters", "strict");
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "timezone", "utc",
		"application_name", "it's", "options",
		"-c datestyle=german --intervalstyle=iso\\ 8601", NULL);
	assert_received(client, "RSSSSKZ");
	assert_string_equal(parameter(client, "TimeZone"), "utc");
	assert_string_equal(parameter(client, "application_name"), "it's");
	assert_string_equal(parameter(client, "DateStyle"), "german");
	assert_string_equal(parameter(client, "IntervalStyle"), "iso 8601");
}

static void test_unsupported_parameters_are_reported_by_name(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	fake_set("startup_parameters", "strict");
	send_startup(
		client, PROTOCOL_3_0, "user", "alice", "database", "db", "work_mem", "1", NULL);
	assert_closed_with_error(client, "08P01", "unsupported startup parameter: work_mem");
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "options",
		"-c work_mem=1", NULL);
	assert_closed_with_error(
		client, "08P01", "unsupported startup parameter in options: work_mem");
	client = fake_accept(-1);
	send_startup(
		client, PROTOCOL_3_0, "user", "alice", "database", "db", "options", "-E", NULL);
	assert_closed_with_error(client, "08P01",
		"unsupported options startup parameter: only '-c config=val' and '--config=val' "
		"are allowed");
	assert_nothing_left();
}

static void test_ignore_startup_parameters_ignores_parameters(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("startup_parameters", "strict");
	fake_set("ignore_startup_parameters", "work_mem, extra_float_digits");
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db",
		"extra_float_digits", "3", "options", "-c work_mem=5", NULL);
	assert_welcome(client);
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "options",
		"-c geqo=off", NULL);
	assert_closed_with_error(
		client, "08P01", "unsupported startup parameter in options: geqo");
	fake_set("ignore_startup_parameters", "options");
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "options",
		"-c geqo=off -c timezone=UTC", NULL);
	assert_welcome(client);
	assert_string_equal(parameter(client, "TimeZone"), "UTC");
}

static void test_application_name_add_host_appends_the_address(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("startup_parameters", "strict");
	fake_set("application_name_add_host", "1");
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db",
		"application_name", "shell", NULL);
	assert_welcome(client);
	assert_string_equal(parameter(client, "application_name"), "shell - 192.0.2.1:50000");
	client = startup("alice", "db");
	assert_string_equal(parameter(client, "application_name"), "app - 192.0.2.1:50000");
}

/* --- protocol versions -------------------------------------------------------------------- */

static void test_newer_protocol_versions_are_negotiated(void **state)
{
	static const struct {
		uint32_t asked;
		const char *answer;
		size_t key;
	} cases[] = {
		{PROTOCOL_3_0, "RKZ", CANCEL_KEY_MIN},
		{PROTOCOL_VERSION(3, 1), "vRKZ", CANCEL_KEY_MIN},
		{PROTOCOL_3_2, "RKZ", CANCEL_KEY_MAX},
		{PROTOCOL_VERSION(3, 9999), "vRKZ", CANCEL_KEY_MAX},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = fake_accept(-1);

		send_startup(client, cases[i].asked, "user", "alice", "database", "db", NULL);
		assert_received(client, cases[i].answer);
		assert_int_equal(endpoint_client(client)->key_length, cases[i].key);
	}
}

static void test_unknown_protocol_options_are_reported(void **state)
{
	struct endpoint *client = fake_accept(-1);
	static const uint8_t expected[] = "v\0\0\0\x20\0\3\0\0\0\0\0\2_pq_.one\0_pq_.three\0";
	size_t length;

	(void)state;
	send_startup(client, PROTOCOL_3_0, "_pq_.one", "1", "user", "alice", "database", "db",
		"_pq_.three", "3", NULL);
	assert_memory_equal(
		scripted_output(client->script, &length), expected, sizeof(expected) - 1);
	assert_received(client, "vRKZ");
}

/* --- the order of messages after the startup message -------------------------------------- */

static void test_second_startup_message_is_refused(void **state)
{
	struct endpoint *client = startup("alice", "db");

	(void)state;
	received_request(client, AUTH_CLEARTEXT, NULL);
	send_startup(client, PROTOCOL_3_0, "user", "alice", NULL);
	assert_closed_with_error(client, "08P01", "client re-sent startup pkt");
}

static void test_queries_before_the_password_are_refused(void **state)
{
	(void)state;
	for (const char *letter = "QSPXHdcfF"; *letter; letter++) {
		struct endpoint *client = startup("alice", "db");
		const char letters[] = {*letter, '\0'};

		read_letters(client);
		send_letters(client, letters);
		assert_closed_silently(client);
	}
	assert_nothing_left();
}

static void test_query_pipelined_with_the_startup_message_is_run(void **state)
{
	struct endpoint *client = fake_accept(-1), *server;
	struct buffer buffer;
	size_t mark;

	(void)state;
	server = fake_server(fake_pool("db", "alice"));
	buffer_init(&buffer);
	mark = startup_begin(&buffer, PROTOCOL_3_0);
	writer_string(&buffer, "user");
	writer_string(&buffer, "alice");
	writer_string(&buffer, "database");
	writer_string(&buffer, "db");
	startup_end(&buffer, mark);
	letters_write(&buffer, FROM_CLIENT, "PBES");
	send_buffer(client, &buffer);
	assert_received(client, "RKZ");
	assert_received(server, "PBES");
	send_letters(server, "12DCZ");
	assert_received(client, "12DCZ");
}

static void test_query_pipelined_with_the_password_is_run(void **state)
{
	struct endpoint *client = startup("alice", "db");
	struct endpoint *server = fake_server(fake_pool("db", "alice"));
	struct buffer buffer;

	(void)state;
	read_letters(client);
	buffer_init(&buffer);
	writer_password(&buffer, "secret", 7);
	letters_write(&buffer, FROM_CLIENT, "Q");
	send_buffer(client, &buffer);
	assert_received(client, "RKZ");
	assert_received(server, "Q");
}

static void test_password_may_arrive_byte_by_byte(void **state)
{
	struct endpoint *client = startup("alice", "db");
	static const uint8_t bytes[] = "p\0\0\0\x0bsecret";

	(void)state;
	read_letters(client);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		assert_received(client, "");
		send_bytes(client, bytes + i, 1);
	}
	assert_welcome(client);
}

static void test_client_may_disconnect_at_any_point(void **state)
{
	struct endpoint *client;

	(void)state;
	client = fake_accept(-1);
	disconnect(client);
	assert_closed_silently(client);
	client = fake_accept(-1);
	send_bytes(client, "\0\0\0", 3);
	break_connection(client);
	assert_closed(client);
	client = startup("alice", "db");
	read_letters(client);
	disconnect(client);
	assert_closed_silently(client);
	client = startup("alice", "db");
	send_bytes(client, "p\0\0", 3);
	disconnect(client);
	assert_nothing_left();
	client = startup("alice", "db");
	scripted_break(client->script);
	send_password(client, "secret");
	assert_closed(client);
	assert_nothing_left();
}

static void test_broken_client_is_closed(void **state)
{
	struct endpoint *client = fake_accept(-1);
	struct buffer buffer;
	size_t mark;

	(void)state;
	buffer_init(&buffer);
	mark = startup_begin(&buffer, PROTOCOL_3_0);
	writer_string(&buffer, "user");
	writer_string(&buffer, "alice");
	startup_end(&buffer, mark);
	scripted_feed(client->script, buffer.data, buffer.length);
	buffer_free(&buffer);
	scripted_break(client->script);
	scripted_run_all(client->script);
	fake_turn();
	assert_closed(client);
	assert_nothing_left();
}

static void test_slow_client_receives_its_welcome_in_pieces(void **state)
{
	struct endpoint *client = fake_accept(-1), *server;

	(void)state;
	server = fake_server(fake_pool("db", "alice"));
	scripted_allow(client->script, 5);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_received(client, "~");
	allow_output(client, SCRIPTED_ANY);
	assert_received(client, "RKZ");
	assert_state(client, CLIENT_IDLE);
	send_letters(client, "Q");
	assert_received(server, "Q");
}

/* --- limits and their order --------------------------------------------------------------- */

static void test_max_client_conn_is_checked_before_user_and_database(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("startup_parameters", "strict");
	fake_set("max_client_conn", "1");
	fake_set("max_db_client_connections", "1");
	startup("alice", "db");
	client = startup("ghost", "nothing");
	assert_closed_with_error(
		client, "53300", "no more connections allowed (max_client_conn)");
	/* Unsupported parameters are reported before max_client_conn. */
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "work_mem", "1", NULL);
	assert_closed_with_error(client, "08P01", "unsupported startup parameter: work_mem");
	/* The console is not limited. */
	client = startup("boss", "pgbouncer");
	assert_state(client, CLIENT_CONSOLE);
	client = startup("boss", "pgusher");
	assert_state(client, CLIENT_CONSOLE);
}

static void test_max_db_client_connections_limits_clients(void **state)
{
	struct endpoint *clients[2], *client;
	struct database *database = registry_find_database(&fake_registry, "db");

	(void)state;
	fake_set("max_db_client_connections", "2");
	for (int i = 0; i < 2; i++)
		clients[i] = startup("alice", "db");
	client = startup("ghost", "db");
	assert_closed_with_error(
		client, "53300", "client connections exceeded (max_db_client_connections)");
	assert_int_equal(database->clients, 2);
	disconnect(clients[0]);
	assert_welcome(startup("alice", "db"));
	assert_int_equal(database->clients, 2);
}

static void test_logins_in_progress_count_for_max_db_client_connections(void **state)
{
	struct endpoint *one, *two;

	(void)state;
	fake_set("max_db_client_connections", "1");
	one = startup("alice", "db");
	two = startup("alice", "db");
	assert_closed_with_error(
		two, "53300", "client connections exceeded (max_db_client_connections)");
	disconnect(one);
	two = startup("alice", "db");
	read_letters(two);
	assert_state(two, CLIENT_AUTHENTICATING);
}

static void test_max_user_client_connections_limits_clients(void **state)
{
	struct endpoint *client = startup("limited", "db");
	struct user *user = registry_find_user(&fake_registry, "limited");

	(void)state;
	assert_welcome(client);
	assert_closed_with_error(startup("limited", "db"), "53300",
		"client connections exceeded (max_user_client_connections)");
	assert_int_equal(user->clients, 1);
	disconnect(client);
	assert_welcome(startup("limited", "db"));
	fake_set("max_user_client_connections", "1");
	assert_welcome(startup("alice", "db"));
	assert_closed_with_error(startup("alice", "forced"), "53300",
		"client connections exceeded (max_user_client_connections)");
}

static void test_unknown_user_leaves_nothing_allocated(void **state)
{
	const unsigned users = registry_count_users(&fake_registry);
	struct endpoint *client = fake_accept(-1);

	(void)state;
	send_startup(client, PROTOCOL_3_0, "user", "ghost", "database", "db", NULL);
	assert_closed_with_error(client, "28000", "\"trust\" authentication failed");
	assert_true(fake_logged("no such user: ghost"));
	assert_int_equal(registry_count_users(&fake_registry), users);
	assert_int_equal(registry_find_database(&fake_registry, "db")->clients, 0);
	assert_nothing_left();
}

static void test_configured_user_without_a_secret_is_unknown(void **state)
{
	(void)state;
	fake_user("limited", NULL);
	assert_closed_with_error(
		startup("limited", "db"), "28000", "\"trust\" authentication failed");
	assert_int_equal(registry_find_user(&fake_registry, "limited")->clients, 0);
}

static void test_unknown_database_is_reported_after_the_password(void **state)
{
	struct endpoint *client = startup("alice", "nothing");

	(void)state;
	received_request(client, AUTH_CLEARTEXT, NULL);
	send_password(client, "wrong");
	assert_closed_with_error(client, "28P01", "password authentication failed");
	client = startup("alice", "nothing");
	read_letters(client);
	send_password(client, "secret");
	assert_closed_with_error(client, "3D000", "no such database: nothing");
}

static void test_automatic_database_is_created_for_known_users_only(void **state)
{
	const char *config = "[databases]\n* = host=/tmp\n[pgbouncer]\nauth_type = trust\n";
	struct endpoint *client;

	(void)state;
	fake_start(config);
	fake_user("alice", "secret");
	client = startup("ghost", "new");
	assert_closed_with_error(client, "28000", "\"trust\" authentication failed");
	assert_null(registry_find_database(&fake_registry, "new"));
	client = startup("alice", "new");
	assert_state(client, CLIENT_WELCOMING);
	assert_int_equal(registry_find_database(&fake_registry, "new")->clients, 1);
	assert_true(fake_logged("registered new auto-database: new"));
	/* The next client uses the same database. */
	startup("alice", "new");
	assert_int_equal(registry_find_database(&fake_registry, "new")->clients, 2);
}

static void test_disabled_database_and_shutdown_are_reported_after_the_password(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_registry.process->shutdown = SHUTDOWN_WAIT_FOR_CLIENTS;
	client = startup("alice", "db");
	read_letters(client);
	send_password(client, "secret");
	assert_closed_with_error(client, "57P03", "pooler is shutting down");
	registry_find_database(&fake_registry, "db")->disabled = true;
	client = startup("alice", "db");
	read_letters(client);
	send_password(client, "secret");
	assert_closed_with_error(client, "55000", "database \"db\" is disabled");
	client = startup("alice", "db");
	read_letters(client);
	send_password(client, "wrong");
	assert_closed_with_error(client, "28P01", "password authentication failed");
}

/* --- silent logins ------------------------------------------------------------------------ */

static void test_silent_login_is_dropped_for_a_client_with_a_startup_message(void **state)
{
	struct endpoint *silent[3], *client;
	unsigned closed = 0;

	(void)state;
	fake_set("max_client_conn", "3");
	for (size_t i = 0; i < COUNT(silent); i++)
		silent[i] = fake_accept(-1);
	fake_advance(USEC_PER_SEC);
	client = startup("alice", "db");
	assert_welcome(client);
	for (size_t i = 0; i < COUNT(silent); i++)
		closed += is_closed(silent[i]);
	assert_int_equal(closed, 1);
}

static void test_new_connection_is_not_dropped_as_silent(void **state)
{
	struct endpoint *silent;

	(void)state;
	fake_set("max_client_conn", "1");
	silent = fake_accept(-1);
	assert_closed_with_error(startup("alice", "db"), "53300",
		"no more connections allowed (max_client_conn)");
	assert_false(is_closed(silent));
}

static void test_silent_login_is_dropped_when_descriptors_run_out(void **state)
{
	struct endpoint *silent[3];
	unsigned closed = 0;

	(void)state;
	/* One of the four is for files. */
	fake_registry.process->descriptors = (struct descriptors){.limit = 20, .others = 16};
	for (unsigned i = 0; i < 3; i++) {
		assert_true(client_accept_has_room(&fake_registry));
		silent[i] = fake_accept(-1);
	}
	assert_false(client_accept_has_room(&fake_registry));
	fake_advance(USEC_PER_SEC);
	assert_true(client_accept_has_room(&fake_registry));
	for (unsigned i = 0; i < 3; i++)
		closed += is_closed(silent[i]);
	assert_int_equal(closed, 1);
	assert_int_equal(fake_registry.login_count, 2);
}

static void test_client_without_a_descriptor_is_refused_and_the_console_is_not(void **state)
{
	struct endpoint *first, *console;

	(void)state;
	/* One each is for files, logins and the console. */
	fake_registry.process->descriptors = (struct descriptors){.limit = 20, .others = 16};
	first = startup("alice", "db");
	assert_false(is_closed(first));
	assert_closed_with_error(startup("alice", "db"), "53300",
		"no more connections allowed (RLIMIT_NOFILE: the limit of 20 open files is "
		"reached)");
	console = startup("boss", "pgbouncer");
	assert_false(is_closed(console));
	assert_closed_with_error(startup("boss", "pgbouncer"), "53300",
		"no more connections allowed (RLIMIT_NOFILE: the limit of 20 open files is "
		"reached)");
	assert_int_equal(fake_registry.process->limits.admitted, 2);
	disconnect(first);
	assert_int_equal(fake_registry.process->limits.admitted, 1);
}

/* --- the welcome message ------------------------------------------------------------------ */

static void test_first_clients_wait_for_the_parameters_of_a_server(void **state)
{
	struct endpoint *clients[3], *server;
	struct buffer buffer;

	(void)state;
	fake_set("startup_parameters", "strict");
	for (int i = 0; i < 3; i++) {
		clients[i] = fake_accept(-1);
		send_startup(clients[i], PROTOCOL_3_0, "user", "boss", "database", "db",
			i == 1 ? "timezone" : NULL, "UTC", NULL);
		assert_received(clients[i], "");
		assert_state(clients[i], CLIENT_WELCOMING);
	}
	server = fake_launched();
	assert_non_null(server);
	assert_null(fake_launched());
	fake_connected(server, 0);
	buffer_init(&buffer);
	letters_write(&buffer, FROM_SERVER, "R");
	writer_parameter_status(&buffer, "server_version", "15.4");
	writer_parameter_status(&buffer, "TimeZone", "Europe/Berlin");
	writer_parameter_status(&buffer, "is_superuser", "off");
	letters_write(&buffer, FROM_SERVER, "KZ");
	send_buffer(server, &buffer);
	for (int i = 0; i < 3; i++) {
		assert_received(clients[i], "RSSSKZ");
		assert_string_equal(
			parameter(clients[i], "TimeZone"), i == 1 ? "UTC" : "Europe/Berlin");
	}
	/* No client was paired with the server. */
	assert_state(server, SERVER_IDLE);
	assert_int_equal(endpoint_link(clients[0])->pool->stats.current.assignments, 0);
}

static void test_welcome_message_has_its_order(void **state)
{
	struct pool *pool = fake_pool("db", "boss");
	struct endpoint *client, *server;
	struct buffer expected;
	size_t length;
	const uint8_t *output;

	(void)state;
	fake_set("startup_parameters", "strict");
	pool_forget_welcome(pool);
	fake_set("login_notify_message", "be nice");
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "boss", "database", "db", "application_name",
		"me", "datestyle", "German", NULL);
	server = fake_launched();
	fake_connected(server, 0);
	buffer_init(&expected);
	letters_write(&expected, FROM_SERVER, "R");
	writer_parameter_status(&expected, "server_version", "15.4");
	writer_parameter_status(&expected, "application_name", "");
	writer_parameter_status(&expected, "client_encoding", "UTF8");
	writer_parameter_status(&expected, "is_superuser", "off");
	writer_parameter_status(&expected, "DateStyle", "ISO, MDY");
	letters_write(&expected, FROM_SERVER, "KZ");
	send_buffer(server, &expected);
	letters_write(&expected, FROM_SERVER, "R");
	writer_parameter_status(&expected, "server_version", "15.4");
	writer_parameter_status(&expected, "is_superuser", "off");
	writer_parameter_status(&expected, "DateStyle", "German");
	writer_parameter_status(&expected, "client_encoding", "UTF8");
	writer_parameter_status(&expected, "application_name", "me");
	writer_backend_key(&expected, endpoint_client(client)->key, 8);
	writer_notice(&expected, "NOTICE", "00000", "be nice");
	writer_ready(&expected, READY_IDLE);
	output = scripted_output(client->script, &length);
	assert_int_equal(length, expected.length);
	assert_memory_equal(output, expected.data, length);
	buffer_free(&expected);
}

static void test_later_parameter_reports_do_not_change_the_welcome(void **state)
{
	struct endpoint *client = startup("alice", "db"), *server;
	struct pool *pool = fake_pool("db", "alice");

	(void)state;
	server = fake_server(pool);
	read_letters(client);
	send_letters(client, "Q");
	send_parameter_status(server, "TimeZone", "UTC");
	send_letters(server, "CZ");
	assert_received(startup("alice", "db"), "RKZ");
}

static void test_client_may_disconnect_while_waiting_for_the_welcome(void **state)
{
	struct endpoint *client = fake_accept(-1), *server;

	(void)state;
	send_startup(client, PROTOCOL_3_0, "user", "boss", "database", "db", NULL);
	assert_state(client, CLIENT_WELCOMING);
	disconnect(client);
	assert_closed_silently(client);
	assert_nothing_left();
	server = fake_launched();
	fake_connected(server, 0);
	postgres_work(server);
	assert_state(server, SERVER_IDLE);
}

static void test_query_pipelined_with_a_waiting_startup_is_run(void **state)
{
	struct endpoint *client = fake_accept(-1), *server;
	struct buffer buffer;
	size_t mark;

	(void)state;
	buffer_init(&buffer);
	mark = startup_begin(&buffer, PROTOCOL_3_0);
	writer_string(&buffer, "user");
	writer_string(&buffer, "boss");
	writer_string(&buffer, "database");
	writer_string(&buffer, "db");
	startup_end(&buffer, mark);
	letters_write(&buffer, FROM_CLIENT, "Q");
	send_buffer(client, &buffer);
	assert_state(client, CLIENT_WELCOMING);
	server = fake_launched();
	fake_connected(server, 0);
	postgres_work(server);
	assert_received(client, "RSKZTDCZ");
}

static void test_login_error_of_the_server_is_sent_to_all_waiting_clients(void **state)
{
	struct endpoint *clients[2], *server;

	(void)state;
	for (int i = 0; i < 2; i++) {
		clients[i] = fake_accept(-1);
		send_startup(clients[i], PROTOCOL_3_0, "user", "boss", "database", "db", NULL);
	}
	server = fake_launched();
	fake_connected(server, 0);
	send_error(server, "28000", "role \"boss\" does not exist");
	for (int i = 0; i < 2; i++)
		assert_closed_with_error(clients[i], "28000", "role \"boss\" does not exist");
	assert_nothing_left();
}

static void test_clients_wait_while_the_server_is_starting_up(void **state)
{
	struct endpoint *client = fake_accept(-1), *server;

	(void)state;
	send_startup(client, PROTOCOL_3_0, "user", "boss", "database", "db", NULL);
	server = fake_launched();
	fake_connected(server, 0);
	send_error(server, "57P03", "the database system is starting up");
	assert_state(client, CLIENT_WELCOMING);
	fake_advance(USEC_PER_SEC);
	pool_needs_work(fake_registry.console_pool);
	pool_needs_work(endpoint_link(client)->pool);
	fake_turn();
	server = fake_launched();
	assert_non_null(server);
	fake_connected(server, 0);
	postgres_work(server);
	assert_welcome(client);
}

static void test_kill_closes_clients_that_wait_for_the_welcome(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	send_startup(client, PROTOCOL_3_0, "user", "boss", "database", "db", NULL);
	control_kill(&fake_registry, registry_find_database(&fake_registry, "db"), true);
	fake_turn();
	assert_closed_with_error(client, "57P01", "database removed");
	assert_closed(fake_launched());
}

static void test_kill_does_not_close_clients_that_authenticate(void **state)
{
	struct endpoint *client = startup("alice", "db");

	(void)state;
	read_letters(client);
	control_kill(&fake_registry, registry_find_database(&fake_registry, "db"), false);
	fake_turn();
	assert_state(client, CLIENT_AUTHENTICATING);
	fake_pool("db", "alice");
	send_password(client, "secret");
	assert_welcome(client);
}

static void test_database_removed_during_a_login_is_reported(void **state)
{
	struct endpoint *client = startup("alice", "db");
	struct database *database = registry_find_database(&fake_registry, "db");

	(void)state;
	read_letters(client);
	control_kill(&fake_registry, database, false);
	registry_drop_database(database);
	send_password(client, "secret");
	assert_closed_with_error(client, "3D000", "no such database: db");
	assert_nothing_left();
}

/* --- the console -------------------------------------------------------------------------- */

static void test_console_requires_admin_users_or_stats_users(void **state)
{
	struct endpoint *client = startup("boss", "pgbouncer");

	(void)state;
	assert_state(client, CLIENT_CONSOLE);
	assert_true(endpoint_client(client)->admin);
	client = startup("clerk", "pgbouncer");
	assert_state(client, CLIENT_CONSOLE);
	assert_false(endpoint_client(client)->admin);
	assert_int_equal(fake_console.begun, 2);
	assert_closed_with_error(startup("alice", "pgbouncer"), "08P01", "not allowed");
	assert_closed_with_error(
		startup("ghost", "pgbouncer"), "28000", "\"trust\" authentication failed");
	disconnect(client);
	assert_int_equal(fake_console.readable, 1);
}

static void test_console_requires_a_password(void **state)
{
	struct endpoint *client = startup("boss", "pgbouncer");

	(void)state;
	read_letters(client);
	send_password(client, "wrong");
	assert_closed_with_error(client, "28P01", "password authentication failed");
	client = startup("boss", "pgbouncer");
	read_letters(client);
	send_password(client, "secret");
	assert_state(client, CLIENT_CONSOLE);
}

/* --- trust and any ------------------------------------------------------------------------ */

static void test_trust_accepts_every_listed_user(void **state)
{
	(void)state;
	assert_welcome(startup("alice", "db"));
	assert_welcome(startup("hash", "db"));
	assert_welcome(startup("scram", "db"));
	assert_welcome(startup("empty", "db"));
	assert_closed_with_error(
		startup("ghost", "db"), "28000", "\"trust\" authentication failed");
	assert_closed_with_error(
		startup("carol", "db"), "28000", "\"trust\" authentication failed");
}

static void test_any_accepts_every_client_as_the_forced_user(void **state)
{
	struct endpoint *client;

	(void)state;
	start_with("auth_type = any\n");
	fake_pool("forced", "carol");
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "anyone", "database", "forced", NULL);
	assert_welcome(client);
	assert_string_equal(endpoint_client(client)->user->name, "carol");
	assert_closed_with_error(startup("alice", "db"), "08P01", "bouncer config error");
	assert_true(fake_logged("auth_type=any requires forced user"));
	client = startup("anyone", "pgbouncer");
	assert_state(client, CLIENT_CONSOLE);
	assert_false(endpoint_client(client)->admin);
	client = startup("boss", "pgbouncer");
	assert_true(endpoint_client(client)->admin);
}

/* --- plain -------------------------------------------------------------------------------- */

/* A login with a cleartext password that ends with the welcome, or with a refusal. */
static void try_cleartext(const char *user, const char *password, bool good)
{
	struct endpoint *client = startup(user, "db");

	received_request(client, AUTH_CLEARTEXT, NULL);
	send_password(client, password);
	fake_wait_for_helper();
	if (good)
		assert_welcome(client);
	else
		assert_closed_with_error(client, "28P01", "password authentication failed");
}

static void test_cleartext_password_is_compared_with_every_kind_of_secret(void **state)
{
	(void)state;
	try_cleartext("alice", "secret", true);
	try_cleartext("hash", "secret", true);
	try_cleartext("scram", "pencil", true);
	try_cleartext("alice", "Secret", false);
	try_cleartext("alice", "secre", false);
	try_cleartext("alice", "secrets", false);
	try_cleartext("hash", "secrets", false);
	try_cleartext("scram", "pencils", false);
	/* The stored secret is not accepted as a password. */
	try_cleartext("hash", md5_of_secret, false);
	try_cleartext("scram", PENCIL, false);
	try_cleartext("empty", "x", false);
	try_cleartext("ghost", "secret", false);
}

/* The time must not show which users exist: the check of a SCRAM secret derives keys. */
static void test_refusal_takes_the_same_time_for_every_kind_of_secret(void **state)
{
	static const char *const users[] = {"scram", "ghost", "alice", "hash", "empty"};

	(void)state;
	for (size_t i = 0; i < COUNT(users); i++) {
		struct endpoint *client = startup(users[i], "db");

		fake_block_helper();
		received_request(client, AUTH_CLEARTEXT, NULL);
		send_password(client, "wrong");
		assert_state(client, CLIENT_AUTHENTICATING);
		assert_int_equal(derivations_pending(&fake_registry), 1);
		fake_wait_for_helper();
		assert_closed_with_error(client, "28P01", "password authentication failed");
	}
}

static void test_refusal_is_immediate_when_no_secret_needs_a_derivation(void **state)
{
	(void)state;
	fake_block_helper();
	for (int i = 0; i < 2; i++) {
		struct endpoint *client = startup(i == 0 ? "ghost" : "alice", "db");

		read_letters(client);
		send_password(client, "wrong");
		assert_closed_with_error(client, "28P01", "password authentication failed");
	}
	fake_wait_for_helper();
}

static void test_empty_password_has_its_own_error(void **state)
{
	static const char *const users[] = {"alice", "empty", "ghost", "hash", "scram"};
	struct endpoint *client;

	(void)state;
	for (size_t i = 0; i < COUNT(users); i++) {
		client = startup(users[i], "db");
		read_letters(client);
		send_password(client, "");
		assert_closed_with_error(client, "28P01", "empty password returned by client");
		client = startup(users[i], "db");
		read_letters(client);
		send_bytes(client, "p\0\0\0\4", 5);
		assert_closed_with_error(client, "28P01", "empty password returned by client");
	}
}

static void test_malformed_password_message_is_refused(void **state)
{
	struct endpoint *client = startup("alice", "db");

	(void)state;
	read_letters(client);
	send_bytes(client, "p\0\0\0\x0csecret\0\0", 13);
	assert_closed_with_error(client, "28P01", "password authentication failed");
	client = startup("alice", "db");
	read_letters(client);
	send_bytes(client, "p\0\0\0\x0asecret", 11);
	assert_closed_with_error(client, "28P01", "password authentication failed");
}

static void test_password_that_is_too_long_is_refused(void **state)
{
	char *password = malloc(CLIENT_PASSWORD_MAX + 2);

	(void)state;
	memset(password, 'x', CLIENT_PASSWORD_MAX + 1);
	password[CLIENT_PASSWORD_MAX + 1] = '\0';
	try_cleartext("alice", password, false);
	password[CLIENT_PASSWORD_MAX] = '\0';
	try_cleartext("alice", password, false);
	fake_user("alice", password);
	try_cleartext("alice", password, true);
	fake_user("alice", NULL);
	free(password);
}

static void test_login_message_that_is_too_long_closes_the_client(void **state)
{
	struct endpoint *client = startup("alice", "db");

	(void)state;
	read_letters(client);
	send_bytes(client, "p\0\2\0\4", 5);
	assert_closed_silently(client);
}

/* So a pool can be dropped at any time of a login, without a search for those that name it. */
static void test_client_refers_to_no_pool_before_it_is_authenticated(void **state)
{
	struct endpoint *client;
	char prefix[200];

	(void)state;
	fake_pool("db", "alice");
	client = startup("alice", "db");
	assert_null(endpoint_client(client)->link.pool);
	link_prefix(&endpoint_client(client)->link, prefix, sizeof(prefix));
	assert_non_null(strstr(prefix, "db/alice@"));
	registry_drop_pool(fake_pool("db", "alice"));
	read_letters(client);
	send_password(client, "secret");
	assert_ptr_equal(endpoint_client(client)->link.pool, fake_pool("db", "alice"));
}

/*
 * The client learns nothing of it: it is refused as an unknown user is, after the same work.
 */
static void test_scram_secret_with_too_many_iterations_is_not_used(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_user("costly", COSTLY);
	client = startup("costly", "db");
	fake_block_helper();
	received_request(client, AUTH_CLEARTEXT, NULL);
	send_password(client, "pencil");
	assert_state(client, CLIENT_AUTHENTICATING);
	assert_int_equal(derivations_pending(&fake_registry), 1);
	assert_true(fake_logged("the SCRAM secret of this user is not used: it has 30000000 "
				"iterations, more than 1000000"));
	fake_wait_for_helper();
	assert_closed_with_error(client, "28P01", "password authentication failed");
	fake_user("costly", NULL);
}

static void test_second_password_during_the_check_is_not_used(void **state)
{
	struct endpoint *client = startup("scram", "db");

	(void)state;
	fake_block_helper();
	read_letters(client);
	send_password(client, "wrong");
	send_password(client, "pencil");
	fake_wait_for_helper();
	assert_closed_with_error(client, "28P01", "password authentication failed");
}

static void test_client_may_disconnect_while_its_password_is_checked(void **state)
{
	struct endpoint *client = startup("scram", "db");

	(void)state;
	fake_block_helper();
	read_letters(client);
	send_password(client, "pencil");
	disconnect(client);
	fake_wait_for_helper();
	assert_nothing_left();
}

static void test_derivations_of_disconnected_clients_leave_the_helpers_queue(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_block_helper();
	for (int i = 0; i < 100; i++) {
		client = startup("scram", "db");
		read_letters(client);
		send_password(client, "pencil");
		disconnect(client);
		/* What the helper has already is taken back when its turn comes. */
		assert_true(derivations_pending(&fake_registry) <=
			fake_registry.derivations->submitted_most);
	}
	client = startup("scram", "db");
	read_letters(client);
	send_password(client, "pencil");
	fake_wait_for_helper();
	assert_welcome(client);
}

/* --- MD5 ---------------------------------------------------------------------------------- */

static void try_md5(const char *user, const char *password, bool good)
{
	struct endpoint *client = startup(user, "db");
	char hashed[36], response[36];
	const uint8_t *salt;
	size_t length;

	salt = received_request(client, AUTH_MD5, &length);
	assert_int_equal(length, 4);
	assert_true(md5_secret(password, user, hashed));
	assert_true(md5_response(hashed, salt, response));
	send_password(client, response);
	if (good)
		assert_welcome(client);
	else
		assert_closed_with_error(client, "28P01", "password authentication failed");
}

static void test_md5_responses_are_compared(void **state)
{
	(void)state;
	try_md5("alice", "secret", true);
	try_md5("hash", "secret", true);
	try_md5("alice", "Secret", false);
	try_md5("hash", "Secret", false);
	try_md5("empty", "", false);
	try_md5("empty", "x", false);
	try_md5("ghost", "secret", false);
	try_md5("ghost", "", false);
}

static void test_malformed_md5_response_is_refused(void **state)
{
	static const char *const responses[] = {"x", "md5", "secret",
		"md5a7c4a2f1fd1d8a1c3bd7d3b8e1a9f3c2", "md5a7c4a2f1fd1d8a1c3bd7d3b8e1a9f3c",
		"md5a7c4a2f1fd1d8a1c3bd7d3b8e1a9f3c22"};

	(void)state;
	for (size_t i = 0; i < COUNT(responses); i++) {
		struct endpoint *client = startup("alice", "db");

		read_letters(client);
		send_password(client, responses[i]);
		assert_closed_with_error(client, "28P01", "password authentication failed");
	}
}

/* --- SCRAM -------------------------------------------------------------------------------- */

/* Runs the exchange up to the last message of the client. */
static void begin_scram(
	struct endpoint *client, const char *password, struct scram_client *scram)
{
	uint8_t nonce[SCRAM_NONCE_SIZE];
	struct scram_keys keys;
	struct buffer text, message;
	const uint8_t *data;
	size_t length;

	data = received_request(client, AUTH_SASL, &length);
	assert_int_equal(length, sizeof(SCRAM_MECHANISM) + 1);
	assert_memory_equal(data, SCRAM_MECHANISM "\0", length);
	buffer_init(&text);
	buffer_init(&message);
	random_fill(&fake_loop.random, nonce, sizeof(nonce));
	*scram = (struct scram_client){0};
	assert_int_equal(scram_client_first(scram, nonce, &text), SCRAM_GOOD);
	writer_sasl_initial(&message, SCRAM_MECHANISM, text.data, text.length);
	send_buffer(client, &message);
	data = received_request(client, AUTH_SASL_CONTINUE, &length);
	assert_int_equal(scram_client_challenge(scram, (const char *)data, length), SCRAM_GOOD);
	assert_true(scram_derive(
		password, scram->salt, scram->salt_length, scram->iterations, &keys));
	buffer_clear(&text);
	assert_int_equal(scram_client_answer(scram, &keys, &text), SCRAM_GOOD);
	writer_password(&message, text.data, text.length);
	send_buffer(client, &message);
	buffer_free(&text);
}

static void end_scram(struct endpoint *client, struct scram_client *scram)
{
	size_t length;
	const uint8_t *output = scripted_output(client->script, &length);
	const size_t total = 1 + (size_t)(output[client->read_offset + 4]) +
		(size_t)(output[client->read_offset + 3]) * 256;
	const uint8_t *message = output + client->read_offset;

	assert_int_equal(message[0], 'R');
	assert_int_equal(message[8], AUTH_SASL_FINAL);
	assert_int_equal(
		scram_client_verify(scram, (const char *)message + 9, total - 9), SCRAM_GOOD);
	client->read_offset += total;
	assert_welcome(client);
}

static void assert_refused_in_time(struct endpoint *client)
{
	while (!is_closed(client))
		fake_wait();
	assert_closed_with_error(client, "28P01", "SASL authentication failed");
}

static void try_scram(const char *user, const char *password, bool good)
{
	struct endpoint *client = startup(user, "db");
	struct scram_client scram;

	begin_scram(client, password, &scram);
	fake_wait_for_helper();
	if (good)
		end_scram(client, &scram);
	else
		assert_refused_in_time(client);
	scram_client_free(&scram);
}

/* The exchange has the iterations of an unknown user's. */
static void test_scram_exchange_with_too_many_iterations_is_refused_at_its_end(void **state)
{
	struct scram_client scram;
	struct endpoint *client;

	(void)state;
	fake_user("costly", COSTLY);
	client = startup("costly", "db");
	begin_scram(client, "pencil", &scram);
	assert_int_equal(scram.iterations, 10);
	assert_refused_in_time(client);
	assert_true(fake_logged("the SCRAM secret of this user is not used: it has 30000000 "
				"iterations, more than 1000000"));
	scram_client_free(&scram);
	fake_user("costly", NULL);
}

static void test_scram_accepts_plain_and_scram_secrets(void **state)
{
	(void)state;
	try_scram("alice", "secret", true);
	try_scram("alice", "secret", true); /* the keys are known now */
	try_scram("scram", "pencil", true);
	try_scram("alice", "Secret", false);
	try_scram("scram", "Pencil", false);
	try_scram("empty", "x", false);
	try_scram("ghost", "secret", false);
}

/* A client that has authenticated by SCRAM, and connects to this database. */
static struct endpoint *authenticate_by_scram(
	const char *user, const char *password, const char *database)
{
	struct endpoint *client = fake_accept(-1);
	struct scram_client scram;

	send_startup(client, PROTOCOL_3_0, "user", user, "database", database, NULL);
	begin_scram(client, password, &scram);
	fake_wait_for_helper();
	scram_client_free(&scram);
	return client;
}

static void assert_sasl_final_and(struct endpoint *client, const char *letters)
{
	size_t length;
	const uint8_t *output = scripted_output(client->script, &length);

	assert_int_equal(output[client->read_offset + 8], AUTH_SASL_FINAL);
	assert_received(client, letters);
}

static void test_sasl_final_is_sent_with_the_welcome(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_pool("db", "scram");
	client = authenticate_by_scram("scram", "pencil", "db");
	/* Two requests, and then all the rest in one write. */
	assert_int_equal(scripted_sends(client->script), 3);
	assert_sasl_final_and(client, "RRKZ");
}

static void test_sasl_final_is_sent_before_the_wait_for_a_server(void **state)
{
	struct endpoint *client = authenticate_by_scram("scram", "pencil", "db"), *server;

	(void)state;
	assert_state(client, CLIENT_WELCOMING);
	assert_sasl_final_and(client, "R");
	server = fake_launched();
	fake_connected(server, 0);
	postgres_work(server);
	assert_welcome(client);
}

static void test_sasl_final_is_sent_before_an_error(void **state)
{
	struct endpoint *client = authenticate_by_scram("scram", "pencil", "nothing");

	(void)state;
	assert_sasl_final_and(client, "RE");
	assert_true(is_closed(client));
}

static void test_sasl_final_is_sent_before_the_console_starts(void **state)
{
	struct endpoint *client = authenticate_by_scram("boss", "secret", "pgbouncer");

	(void)state;
	assert_state(client, CLIENT_CONSOLE);
	assert_sasl_final_and(client, "R");
}

/*
 * A user without derived keys, the same with known keys, one that needs no
 * derivation, and an unknown one.
 */
static const char *const all_kinds_of_users[] = {"alice", "alice", "scram", "ghost"};

/*
 * The refusal is due so late that no test receives it without waiting, on the slowest machine.
 */
static struct endpoint *begin_late_refusal(const char *user, struct scram_client *scram)
{
	struct endpoint *client = startup(user, "db");

	fake_registry.derivation_time = 100 * USEC_PER_SEC;
	begin_scram(client, "wrong", scram);
	return client;
}

static void test_scram_refusal_takes_the_same_time_for_all_users(void **state)
{
	usec_t when = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(all_kinds_of_users); i++) {
		struct scram_client scram;
		struct endpoint *client = begin_late_refusal(all_kinds_of_users[i], &scram);
		usec_t not_before;

		fake_wait_for_helper();
		assert_received(client, "");
		not_before = endpoint_client(client)->login->not_before;
		assert_true(not_before > loop_now(&fake_loop));
		if (i == 0)
			when = not_before - loop_now(&fake_loop);
		assert_int_equal(not_before - loop_now(&fake_loop), when);
		disconnect(client);
		scram_client_free(&scram);
	}
	assert_nothing_left();
}

static void test_client_may_disconnect_before_its_delayed_refusal(void **state)
{
	struct scram_client scram;
	struct endpoint *client = begin_late_refusal("ghost", &scram);

	(void)state;
	disconnect(client);
	assert_closed_silently(client);
	assert_nothing_left();
	scram_client_free(&scram);
}

static void test_further_message_is_refused_at_once_for_all_users(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(all_kinds_of_users); i++) {
		struct scram_client scram;
		struct endpoint *client;

		fake_block_helper();
		client = begin_late_refusal(all_kinds_of_users[i], &scram);
		assert_received(client, "");
		send_password(client, "once more");
		assert_closed_with_error(client, "28P01", "SASL authentication failed");
		fake_wait_for_helper();
		scram_client_free(&scram);
	}
	assert_nothing_left();
}

static void test_scram_message_that_is_too_long_is_refused_for_all_users(void **state)
{
	char words[SCRAM_MAX_MESSAGE + 2];

	(void)state;
	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	for (size_t i = 0; i < COUNT(all_kinds_of_users); i++) {
		struct endpoint *client = startup(all_kinds_of_users[i], "db");
		struct buffer message;

		fake_block_helper();
		read_letters(client);
		buffer_init(&message);
		writer_sasl_initial(&message, SCRAM_MECHANISM, "n,,n=,r=abcdefgh", 16);
		send_buffer(client, &message);
		assert_received(client, "R");
		send_password(client, words);
		assert_closed_with_error(client, "28P01", "SASL authentication failed");
		fake_wait_for_helper();
	}
	assert_nothing_left();
}

static void test_md5_secret_fails_the_scram_exchange(void **state)
{
	struct endpoint *client = startup("hash", "db");
	struct buffer message;
	size_t length;

	(void)state;
	received_request(client, AUTH_SASL, &length);
	buffer_init(&message);
	writer_sasl_initial(&message, SCRAM_MECHANISM, "n,,n=,r=abcdefgh", 16);
	send_buffer(client, &message);
	assert_closed_with_error(client, "28P01", "SASL authentication failed");
}

static void test_auth_type_md5_uses_scram_for_a_scram_secret(void **state)
{
	(void)state;
	try_scram("scram", "pencil", true);
	try_scram("scram", "Pencil", false);
}

static void test_unknown_user_has_a_constant_salt(void **state)
{
	uint8_t salts[3][SCRAM_SALT_SIZE];
	static const char *const names[] = {"ghost", "ghost", "spook"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct endpoint *client = startup(names[i], "db");
		struct scram_client scram;

		begin_scram(client, "x", &scram);
		assert_int_equal(scram.iterations, 10);
		assert_int_equal(scram.salt_length, SCRAM_SALT_SIZE);
		memcpy(salts[i], scram.salt, SCRAM_SALT_SIZE);
		scram_client_free(&scram);
		assert_refused_in_time(client);
	}
	assert_memory_equal(salts[0], salts[1], SCRAM_SALT_SIZE);
	assert_memory_not_equal(salts[0], salts[2], SCRAM_SALT_SIZE);
}

static void test_several_clients_share_a_derivation(void **state)
{
	struct endpoint *clients[3];
	struct scram_client scram[3];

	(void)state;
	fake_block_helper();
	for (int i = 0; i < 3; i++) {
		clients[i] = startup("alice", "db");
		begin_scram(clients[i], i == 1 ? "wrong" : "secret", &scram[i]);
	}
	fake_wait_for_helper();
	end_scram(clients[0], &scram[0]);
	assert_refused_in_time(clients[1]);
	end_scram(clients[2], &scram[2]);
	for (int i = 0; i < 3; i++)
		scram_client_free(&scram[i]);
}

static void test_derivation_continues_when_its_first_client_disconnects(void **state)
{
	struct endpoint *first = startup("alice", "db"), *second;
	struct scram_client scram;

	(void)state;
	fake_block_helper();
	begin_scram(first, "secret", &scram);
	scram_client_free(&scram);
	second = startup("alice", "db");
	begin_scram(second, "secret", &scram);
	disconnect(first);
	fake_wait_for_helper();
	end_scram(second, &scram);
	scram_client_free(&scram);
}

static void test_secret_changed_during_its_derivation_fails_the_login(void **state)
{
	struct endpoint *client = startup("alice", "db");
	struct scram_client scram;

	(void)state;
	fake_block_helper();
	begin_scram(client, "secret", &scram);
	fake_user("alice", "terces");
	fake_wait_for_helper();
	assert_closed_with_error(client, "28P01", "SASL authentication failed");
	scram_client_free(&scram);
	try_scram("alice", "terces", true);
}

static void test_malformed_scram_message_is_refused(void **state)
{
	static const struct {
		const char *body;
		size_t length;
		const char *sqlstate, *text;
	} cases[] = {
		{"SCRAM-SHA-1\0\0\0\0\1x", 17, "08P01",
			"client selected an invalid SASL authentication mechanism"},
		{"SCRAM-SHA-256-PLUS\0\0\0\0\1x", 24, "08P01",
			"client selected an invalid SASL authentication mechanism"},
		{"SCRAM-SHA-256", 13, "28P01", "SASL authentication failed"},
		{"SCRAM-SHA-256\0", 14, "28P01", "SASL authentication failed"},
		{"SCRAM-SHA-256\0\xff\xff\xff\xff", 18, "28P01", "SASL authentication failed"},
		{"SCRAM-SHA-256\0\x7f\xff\xff\xffn,,", 21, "28P01",
			"SASL authentication failed"},
		{"SCRAM-SHA-256\0\0\0\0\3n,,r=abc", 26, "28P01", "SASL authentication failed"},
		{"SCRAM-SHA-256\0\0\0\0\3n,,", 21, "28P01", "SASL authentication failed"},
		{"secret", 7, "08P01",
			"client selected an invalid SASL authentication mechanism"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = startup("scram", "db");
		struct buffer message;

		read_letters(client);
		buffer_init(&message);
		writer_message(&message, 'p', cases[i].body, cases[i].length);
		send_buffer(client, &message);
		assert_closed_with_error(client, cases[i].sqlstate, cases[i].text);
	}
	assert_nothing_left();
}

static void test_extra_scram_message_is_refused(void **state)
{
	struct endpoint *client = startup("alice", "db");
	struct scram_client scram;

	(void)state;
	fake_block_helper();
	begin_scram(client, "secret", &scram);
	send_password(client, "once more");
	assert_closed_with_error(client, "28P01", "SASL authentication failed");
	fake_wait_for_helper();
	scram_client_free(&scram);
	assert_nothing_left();
}

static void test_scram_client_key_is_stored_for_server_logins(void **state)
{
	const struct user *user = registry_find_user(&fake_registry, "scram");
	struct scram_keys keys;

	(void)state;
	try_scram("scram", "wrong", false);
	assert_false(user->keys->client_key_known);
	try_scram("scram", "pencil", true);
	assert_true(user->keys->client_key_known);
	assert_true(scram_derive("pencil", user->keys->verifier.salt,
		user->keys->verifier.salt_length, 4096, &keys));
	assert_memory_equal(user->keys->keys.client_key, keys.client_key, SCRAM_KEY_SIZE);
}

int main(void)
{
#define TRUST_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_trust, fake_end)
#define PLAIN_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_plain, fake_end)
#define MD5_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_md5, fake_end)
#define SCRAM_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_scram, fake_end)
#define OWN_TEST(name) cmocka_unit_test_teardown(test_##name, fake_end)
	const struct CMUnitTest tests[] = {
		TRUST_TEST(welcome_is_sent_in_one_write),
		TRUST_TEST(startup_message_may_arrive_byte_by_byte),
		TRUST_TEST(database_defaults_to_the_user_name),
		TRUST_TEST(encryption_requests_are_declined),
		TRUST_TEST(incomplete_encryption_request_is_not_answered),
		TRUST_TEST(bytes_after_an_encryption_request_are_refused),
		TRUST_TEST(protocol_2_is_refused),
		TRUST_TEST(invalid_header_is_reported_in_hex),
		TRUST_TEST(other_protocols_are_closed_without_an_error),
		TRUST_TEST(messages_before_the_startup_message_are_refused),
		TRUST_TEST(malformed_startup_message_is_refused),
		TRUST_TEST(startup_message_without_a_user_is_refused),
		TRUST_TEST(user_name_that_is_too_long_is_refused),
		TRUST_TEST(last_of_repeated_parameters_is_used),
		TRUST_TEST(tracked_parameters_are_stored_as_sent),
		TRUST_TEST(unsupported_parameters_are_reported_by_name),
		TRUST_TEST(ignore_startup_parameters_ignores_parameters),
		TRUST_TEST(application_name_add_host_appends_the_address),
		TRUST_TEST(newer_protocol_versions_are_negotiated),
		TRUST_TEST(unknown_protocol_options_are_reported),
		PLAIN_TEST(second_startup_message_is_refused),
		PLAIN_TEST(queries_before_the_password_are_refused),
		TRUST_TEST(query_pipelined_with_the_startup_message_is_run),
		PLAIN_TEST(query_pipelined_with_the_password_is_run),
		PLAIN_TEST(password_may_arrive_byte_by_byte),
		PLAIN_TEST(client_may_disconnect_at_any_point),
		PLAIN_TEST(broken_client_is_closed),
		TRUST_TEST(slow_client_receives_its_welcome_in_pieces),
		TRUST_TEST(max_client_conn_is_checked_before_user_and_database),
		TRUST_TEST(max_db_client_connections_limits_clients),
		PLAIN_TEST(logins_in_progress_count_for_max_db_client_connections),
		TRUST_TEST(max_user_client_connections_limits_clients),
		TRUST_TEST(unknown_user_leaves_nothing_allocated),
		TRUST_TEST(configured_user_without_a_secret_is_unknown),
		PLAIN_TEST(unknown_database_is_reported_after_the_password),
		OWN_TEST(automatic_database_is_created_for_known_users_only),
		PLAIN_TEST(disabled_database_and_shutdown_are_reported_after_the_password),
		TRUST_TEST(silent_login_is_dropped_for_a_client_with_a_startup_message),
		TRUST_TEST(new_connection_is_not_dropped_as_silent),
		TRUST_TEST(silent_login_is_dropped_when_descriptors_run_out),
		TRUST_TEST(client_without_a_descriptor_is_refused_and_the_console_is_not),
		TRUST_TEST(first_clients_wait_for_the_parameters_of_a_server),
		TRUST_TEST(welcome_message_has_its_order),
		TRUST_TEST(later_parameter_reports_do_not_change_the_welcome),
		TRUST_TEST(client_may_disconnect_while_waiting_for_the_welcome),
		TRUST_TEST(query_pipelined_with_a_waiting_startup_is_run),
		TRUST_TEST(login_error_of_the_server_is_sent_to_all_waiting_clients),
		TRUST_TEST(clients_wait_while_the_server_is_starting_up),
		TRUST_TEST(kill_closes_clients_that_wait_for_the_welcome),
		PLAIN_TEST(kill_does_not_close_clients_that_authenticate),
		PLAIN_TEST(database_removed_during_a_login_is_reported),
		TRUST_TEST(console_requires_admin_users_or_stats_users),
		PLAIN_TEST(console_requires_a_password),
		TRUST_TEST(trust_accepts_every_listed_user),
		OWN_TEST(any_accepts_every_client_as_the_forced_user),
		PLAIN_TEST(cleartext_password_is_compared_with_every_kind_of_secret),
		PLAIN_TEST(refusal_takes_the_same_time_for_every_kind_of_secret),
		PLAIN_TEST(refusal_is_immediate_when_no_secret_needs_a_derivation),
		PLAIN_TEST(empty_password_has_its_own_error),
		PLAIN_TEST(malformed_password_message_is_refused),
		PLAIN_TEST(password_that_is_too_long_is_refused),
		PLAIN_TEST(login_message_that_is_too_long_closes_the_client),
		PLAIN_TEST(client_refers_to_no_pool_before_it_is_authenticated),
		PLAIN_TEST(scram_secret_with_too_many_iterations_is_not_used),
		PLAIN_TEST(second_password_during_the_check_is_not_used),
		PLAIN_TEST(client_may_disconnect_while_its_password_is_checked),
		PLAIN_TEST(derivations_of_disconnected_clients_leave_the_helpers_queue),
		MD5_TEST(md5_responses_are_compared),
		MD5_TEST(malformed_md5_response_is_refused),
		SCRAM_TEST(scram_exchange_with_too_many_iterations_is_refused_at_its_end),
		SCRAM_TEST(scram_accepts_plain_and_scram_secrets),
		SCRAM_TEST(sasl_final_is_sent_with_the_welcome),
		SCRAM_TEST(sasl_final_is_sent_before_the_wait_for_a_server),
		SCRAM_TEST(sasl_final_is_sent_before_an_error),
		SCRAM_TEST(sasl_final_is_sent_before_the_console_starts),
		SCRAM_TEST(scram_refusal_takes_the_same_time_for_all_users),
		SCRAM_TEST(client_may_disconnect_before_its_delayed_refusal),
		SCRAM_TEST(further_message_is_refused_at_once_for_all_users),
		SCRAM_TEST(scram_message_that_is_too_long_is_refused_for_all_users),
		SCRAM_TEST(md5_secret_fails_the_scram_exchange),
		MD5_TEST(auth_type_md5_uses_scram_for_a_scram_secret),
		SCRAM_TEST(unknown_user_has_a_constant_salt),
		SCRAM_TEST(several_clients_share_a_derivation),
		SCRAM_TEST(derivation_continues_when_its_first_client_disconnects),
		SCRAM_TEST(secret_changed_during_its_derivation_fails_the_login),
		SCRAM_TEST(malformed_scram_message_is_refused),
		SCRAM_TEST(extra_scram_message_is_refused),
		SCRAM_TEST(scram_client_key_is_stored_for_server_logins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
