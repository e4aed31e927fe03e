/* SPDX-License-Identifier: ISC */
/*
 * Logins to servers: the answer to each authentication request with each kind of secret, and
 * what a server must not send.
 */
#include <errno.h>

#include "crypt/md5.h"
#include "crypt/scram.h"
#include "session/link/derivation.h"
#include "session/pool/launch.h"
#include "session/server/server_login.h"
#include "session/serving/control.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/startup.h"
#include "wire/writer.h"

/* RFC 7677 section 3: password "pencil". */
#define PENCIL                                                                                      \
	"SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:" \
	"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

static struct pool *pool;
static struct endpoint *waiting_client; /* a client that waits for the server */

static void start_with(const char *database)
{
	char config[600];

	snprintf(config, sizeof(config),
		"[databases]\ndb = %s\n[pgbouncer]\npool_mode = transaction\n"
		"query_wait_notify = 0\nserver_reset_query =\n",
		database);
	fake_start(config);
	pool = fake_pool("db", "alice");
	waiting_client = NULL;
}

static int start(void **state)
{
	(void)state;
	start_with("host=/tmp");
	return 0;
}

/* --- servers ------------------------------------------------------------------------------ */

/* Launches a server for a waiting client. The server has received our StartupMessage. */
static struct endpoint *launch(void)
{
	struct endpoint *server;

	waiting_client = fake_client(pool);
	send_letters(waiting_client, "Q");
	server = fake_launched();
	assert_non_null(server);
	fake_connected(server, 0);
	assert_received(server, "^");
	assert_state(server, SERVER_AUTHENTICATING);
	return server;
}

/* Prepares the next attempt, whatever the result of the last one. */
static void prepare_next_attempt(void)
{
	if (waiting_client && !is_closed(waiting_client))
		disconnect(waiting_client);
	pool->failing = false;
}

static void send_authentication(
	struct endpoint *server, uint32_t request, const void *data, size_t length)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_authentication(&buffer, (enum authentication_request)request, data, length);
	send_buffer(server, &buffer);
}

static void assert_logged_in(struct endpoint *server)
{
	send_letters(server, "RSKZ");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(waiting_client, "CZ");
	assert_state(server, SERVER_IDLE);
	assert_null(endpoint_server(server)->login);
}

/* The server is closed for this reason; the client still waits. */
static void assert_failed(struct endpoint *server, const char *reason)
{
	char line[200];

	assert_closed(server);
	snprintf(line, sizeof(line), "closing because: %s", reason);
	assert_true(fake_logged(line));
	assert_state(waiting_client, CLIENT_WAITING);
	assert_true(pool->failing);
	assert_string_equal(pool->last_failure.text, reason);
	prepare_next_attempt();
}

/* The server is closed; waiting clients receive an error about the kind of our secret. */
static void assert_wrong_secret_kind(struct endpoint *server)
{
	assert_received(server, "");
	assert_closed(server);
	assert_closed_with_error(
		waiting_client, "28000", "server login failed: wrong password type");
	prepare_next_attempt();
}

static void wait_for_helper(void)
{
	while (derivations_pending(&fake_registry) > 0)
		fake_wait();
}

/* --- the startup message ------------------------------------------------------------------ */

static void test_startup_message_names_database_and_user(void **state)
{
	static const char expected[] = "\0\0\0\x20\0\3\0\0database\0db\0user\0alice\0";
	struct endpoint *server = launch();
	size_t length;
	const uint8_t *output = scripted_output(server->script, &length);

	(void)state;
	assert_int_equal(length, 0x20);
	assert_memory_equal(output, expected, length);
	assert_logged_in(server);
}

static void test_startup_message_has_the_parameters_of_the_database(void **state)
{
	static const char expected[] =
		"database\0other\0client_encoding\0UTF8\0datestyle\0ISO\0"
		"timezone\0UTC\0application_name\0web\0user\0carol\0";
	struct endpoint *server;
	size_t length;
	const uint8_t *output;

	(void)state;
	start_with("host=/tmp dbname=other user=carol timezone=UTC client_encoding=UTF8 "
		   "datestyle=ISO application_name=web");
	pool = fake_pool("db", "carol");
	server = launch();
	output = scripted_output(server->script, &length);
	assert_int_equal(length, 8 + sizeof(expected));
	assert_memory_equal(output + 8, expected, sizeof(expected));
}

static void test_failed_write_of_the_startup_message_fails_the_login(void **state)
{
	struct endpoint *server;

	(void)state;
	waiting_client = fake_client(pool);
	send_letters(waiting_client, "Q");
	server = fake_launched();
	scripted_break(server->script);
	fake_connected(server, 0);
	assert_failed(server, "startup pkt failed");
}

/* --- a login ------------------------------------------------------------------------------ */

static void test_login_may_arrive_byte_by_byte(void **state)
{
	struct endpoint *server = launch();
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes);
	letters_write(&bytes, FROM_SERVER, "NRSNSKNZ");
	for (size_t i = 0; i < bytes.length; i++) {
		assert_state(server, SERVER_AUTHENTICATING);
		send_bytes(server, bytes.data + i, 1);
	}
	buffer_free(&bytes);
	assert_received(server, "Q");
	assert_state(waiting_client, CLIENT_PAIRED);
	send_letters(server, "CZ");
	assert_int_equal(fake_registry.helds.used, 0);
}

static void test_reported_parameters_and_cancel_key_are_stored(void **state)
{
	struct endpoint *server = launch();
	struct server_link *link = endpoint_server(server);
	const int index = parameter_index(fake_registry.parameters, "TimeZone");

	(void)state;
	send_letters(server, "R");
	send_parameter_status(server, "TimeZone", "UTC");
	send_letters(server, "KZ");
	assert_string_equal(parameters_get(link->link.parameters, (unsigned)index), "UTC");
	assert_int_equal(link->cancel_key_length, 8);
	assert_memory_equal(link->cancel_key, "\0\0\1\2\3\4\5\6", 8);
}

static void test_welcome_message_is_made_from_the_first_login_only(void **state)
{
	struct endpoint *server;
	const struct parameters *first;
	size_t head;

	(void)state;
	pool_forget_welcome(pool);
	server = launch();
	send_letters(server, "R");
	send_parameter_status(server, "TimeZone", "UTC");
	send_parameter_status(server, "server_version", "15.4");
	send_letters(server, "KZ");
	first = pool->welcome;
	head = pool->welcome_head.length;
	assert_non_null(first);
	assert_int_equal(head, 9 + 1 + 4 + sizeof("server_version") + sizeof("15.4"));
	assert_true(launch_server(pool, false));
	server = fake_launched();
	fake_connected(server, 0);
	send_letters(server, "R");
	send_parameter_status(server, "TimeZone", "GMT");
	send_letters(server, "SSSKZ");
	assert_ptr_equal(pool->welcome, first);
	assert_int_equal(pool->welcome_head.length, head);
}

static void test_message_after_the_login_makes_the_server_dirty(void **state)
{
	static const char *const tails[] = {"E", "N", "TDCZ", "S"};

	(void)state;
	for (size_t i = 0; i < COUNT(tails); i++) {
		struct endpoint *server;
		char all[16];

		assert_true(launch_server(pool, false));
		server = fake_launched();
		fake_connected(server, 0);
		snprintf(all, sizeof(all), "RKZ%s", tails[i]);
		send_letters(server, all);
		assert_true(endpoint_server(server)->dirty);
	}
}

static void test_incomplete_message_after_the_login_makes_the_server_dirty(void **state)
{
	struct endpoint *server;
	struct buffer bytes;

	(void)state;
	assert_true(launch_server(pool, false));
	server = fake_launched();
	fake_connected(server, 0);
	buffer_init(&bytes);
	letters_write(&bytes, FROM_SERVER, "RKZ");
	buffer_append(&bytes, "N\0\0", 3);
	send_buffer(server, &bytes);
	assert_true(endpoint_server(server)->dirty);
	waiting_client = fake_client(pool);
	send_letters(waiting_client, "Q");
	assert_closed(server);
}

/* The server is paired at once; its client receives whole messages. */
static void test_incomplete_message_after_the_login_is_forwarded_whole(void **state)
{
	struct endpoint *server = launch();
	struct buffer bytes;
	size_t all;

	(void)state;
	buffer_init(&bytes);
	letters_write(&bytes, FROM_SERVER, "RKZ");
	all = bytes.length;
	letters_write(&bytes, FROM_SERVER, "N");
	send_bytes(server, bytes.data, all + 7);
	assert_received(server, "Q");
	send_bytes(server, bytes.data + all + 7, bytes.length - all - 7);
	send_letters(server, "TDCZ");
	assert_received(waiting_client, "NTDCZ");
	assert_state(waiting_client, CLIENT_IDLE);
	assert_closed(server);
	buffer_free(&bytes);
}

/* --- passwords ---------------------------------------------------------------------------- */

static void test_cleartext_request_is_answered_with_a_plain_secret_only(void **state)
{
	char hashed[36];
	const char *const others[] = {NULL, "", hashed, PENCIL};
	struct endpoint *server;
	size_t length;

	(void)state;
	assert_true(md5_secret("secret", "alice", hashed));
	fake_user("alice", "secret");
	server = launch();
	send_authentication(server, AUTH_CLEARTEXT, NULL, 0);
	assert_received(server, "p");
	assert_string_equal((const char *)received_body(server, &length), "secret");
	assert_int_equal(length, 7);
	assert_logged_in(server);
	disconnect(server);
	for (size_t i = 0; i < COUNT(others); i++) {
		fake_user("alice", others[i]);
		server = launch();
		send_authentication(server, AUTH_CLEARTEXT, NULL, 0);
		assert_wrong_secret_kind(server);
	}
	fake_user("alice", NULL);
}

static void test_md5_request_is_answered_with_plain_and_md5_secrets(void **state)
{
	char hashed[36], response[36];
	const char *const good[] = {"secret", hashed};
	const char *const others[] = {NULL, "", PENCIL};
	struct endpoint *server;
	size_t length;

	(void)state;
	assert_true(md5_secret("secret", "alice", hashed));
	assert_true(md5_response(hashed, (const uint8_t *)"salt", response));
	for (size_t i = 0; i < COUNT(good); i++) {
		fake_user("alice", good[i]);
		server = launch();
		send_authentication(server, AUTH_MD5, "salt", 4);
		assert_received(server, "p");
		assert_string_equal((const char *)received_body(server, &length), response);
		assert_int_equal(length, 36);
		assert_logged_in(server);
		disconnect(server);
	}
	for (size_t i = 0; i < COUNT(others); i++) {
		fake_user("alice", others[i]);
		server = launch();
		send_authentication(server, AUTH_MD5, "salt", 4);
		assert_wrong_secret_kind(server);
	}
	server = launch();
	send_authentication(server, AUTH_MD5, "sal", 3);
	assert_failed(server, "bad pkt header");
	fake_user("alice", NULL);
}

static void test_password_of_the_database_is_used_for_the_forced_user(void **state)
{
	struct endpoint *server;
	size_t length;

	(void)state;
	start_with("host=/tmp user=carol password=hers");
	fake_user("carol", "another");
	pool = fake_pool("db", "carol");
	server = launch();
	send_authentication(server, AUTH_CLEARTEXT, NULL, 0);
	assert_received(server, "p");
	assert_string_equal((const char *)received_body(server, &length), "hers");
	assert_logged_in(server);
}

static void test_unsupported_authentication_requests_are_refused(void **state)
{
	static const uint32_t requests[] = {
		1, 2, 4, 6, AUTH_GSS, AUTH_GSS_CONTINUE, AUTH_SSPI, 13, 99, UINT32_MAX};

	(void)state;
	fake_user("alice", "secret");
	for (size_t i = 0; i < COUNT(requests); i++) {
		struct endpoint *server = launch();

		send_authentication(server, requests[i], "data", 4);
		assert_wrong_secret_kind(server);
	}
	assert_true(fake_logged("unknown/unsupported auth method: 7"));
}

static void test_truncated_authentication_request_is_refused(void **state)
{
	(void)state;
	for (size_t length = 0; length < 4; length++) {
		struct endpoint *server = launch();
		struct buffer buffer;

		buffer_init(&buffer);
		writer_message(&buffer, 'R', "\0\0\0\0", length);
		send_buffer(server, &buffer);
		assert_failed(server, "bad pkt header");
	}
}

/* --- SCRAM -------------------------------------------------------------------------------- */

/* the server's side of an exchange */
struct exchange {
	struct scram_server scram;
	struct scram_keys keys;
	struct buffer out;
};

static const uint8_t salt[] = "sixteen bytes...";

/*
 * Runs the exchange up to our last message, which was received; `password` is the one known to
 * the server.
 */
static struct endpoint *begin_scram(struct exchange *exchange, const char *password,
	const uint8_t *with_salt, size_t salt_length, uint32_t iterations)
{
	struct endpoint *server = launch();
	struct reader reader;
	const uint8_t *body, *message;
	uint8_t nonce[SCRAM_NONCE_SIZE] = "server's nonce";
	size_t length;
	uint32_t size;

	*exchange = (struct exchange){0};
	buffer_init(&exchange->out);
	assert_true(
		scram_derive(password, with_salt, salt_length, iterations, &exchange->keys));
	send_authentication(server, AUTH_SASL, "SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0", 34);
	assert_received(server, "p");
	body = received_body(server, &length);
	reader_init(&reader, body, length);
	assert_string_equal(reader_string(&reader), SCRAM_MECHANISM);
	size = reader_int32(&reader);
	message = reader_bytes(&reader, size);
	assert_non_null(message);
	assert_int_equal(reader_left(&reader), 0);
	assert_int_equal(scram_server_first(&exchange->scram, (const char *)message, size,
				 nonce, with_salt, salt_length, iterations, &exchange->out),
		SCRAM_GOOD);
	send_authentication(
		server, AUTH_SASL_CONTINUE, exchange->out.data, exchange->out.length);
	wait_for_helper();
	assert_received(server, "p");
	return server;
}

/* Verifies our last message, and writes the server's. */
static void end_scram(struct endpoint *server, struct exchange *exchange, bool good)
{
	uint8_t client_key[SCRAM_KEY_SIZE];
	size_t length;
	const uint8_t *body = received_body(server, &length);

	buffer_clear(&exchange->out);
	assert_int_equal(scram_server_final(&exchange->scram, (const char *)body, length,
				 exchange->keys.stored_key, exchange->keys.server_key,
				 client_key, &exchange->out),
		good ? SCRAM_GOOD : SCRAM_REFUSED);
}

static void free_exchange(struct exchange *exchange)
{
	scram_server_free(&exchange->scram);
	buffer_free(&exchange->out);
}

static void test_scram_is_answered_with_a_plain_secret(void **state)
{
	struct exchange exchange;
	struct endpoint *server;

	(void)state;
	fake_user("alice", "secret");
	server = begin_scram(&exchange, "secret", salt, 16, 10);
	end_scram(server, &exchange, true);
	send_authentication(server, AUTH_SASL_FINAL, exchange.out.data, exchange.out.length);
	assert_logged_in(server);
	free_exchange(&exchange);
}

static void test_scram_is_answered_with_keys_of_a_client_login(void **state)
{
	struct exchange exchange;
	struct endpoint *server;
	struct user *user = fake_user("alice", PENCIL);
	struct user_keys *keys = user_keys(user);
	uint8_t pencil_salt[64];
	size_t length = keys->verifier.salt_length;

	(void)state;
	memcpy(pencil_salt, keys->verifier.salt, length);
	assert_true(scram_derive("pencil", pencil_salt, length, 4096, &keys->keys));
	keys->client_key_known = true;
	server = begin_scram(&exchange, "pencil", pencil_salt, length, 4096);
	end_scram(server, &exchange, true);
	send_authentication(server, AUTH_SASL_FINAL, exchange.out.data, exchange.out.length);
	assert_logged_in(server);
	free_exchange(&exchange);
	fake_user("alice", NULL);
}

static void test_scram_is_not_answered_without_password_or_keys(void **state)
{
	char hashed[36];
	const char *const secrets[] = {NULL, "", hashed, PENCIL};

	(void)state;
	assert_true(md5_secret("secret", "alice", hashed));
	for (size_t i = 0; i < COUNT(secrets); i++) {
		struct endpoint *server;

		fake_user("alice", secrets[i]);
		server = launch();
		send_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
		assert_wrong_secret_kind(server);
	}
	assert_true(fake_logged("password is SCRAM secret but client authentication did not "
				"provide SCRAM keys"));
	fake_user("alice", NULL);
}

static void test_scram_keys_of_clients_are_not_used_for_a_forced_user(void **state)
{
	struct endpoint *server;
	struct user_keys *keys;

	(void)state;
	start_with("host=/tmp user=carol");
	keys = user_keys(fake_user("carol", PENCIL));
	keys->client_key_known = true;
	pool = fake_pool("db", "carol");
	server = launch();
	send_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
	assert_wrong_secret_kind(server);
}

static void test_sasl_request_without_scram_sha_256_is_refused(void **state)
{
	static const struct {
		const char *list;
		size_t length;
	} lists[] = {{"", 0}, {"\0", 1}, {"SCRAM-SHA-1\0\0", 13},
		{"SCRAM-SHA-256-PLUS\0\0", 20}, {"SCRAM-SHA-256", 13},
		{"OAUTHBEARER\0SCRAM", 17}};

	(void)state;
	fake_user("alice", "secret");
	for (size_t i = 0; i < COUNT(lists); i++) {
		struct endpoint *server = launch();

		send_authentication(server, AUTH_SASL, lists[i].list, lists[i].length);
		assert_closed_silently(server);
		assert_closed_with_error(waiting_client, "28000",
			"server login failed: none of the server's SASL authentication mechanisms "
			"are supported");
		prepare_next_attempt();
	}
}

static void test_invalid_server_signature_is_refused(void **state)
{
	static const char *const finals[] = {
		"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "v=", "", "e=no", "x"};

	(void)state;
	fake_user("alice", "secret");
	for (size_t i = 0; i < COUNT(finals); i++) {
		struct exchange exchange;
		struct endpoint *server = begin_scram(&exchange, "secret", salt, 16, 10);

		send_authentication(server, AUTH_SASL_FINAL, finals[i], strlen(finals[i]));
		assert_closed_silently(server);
		assert_closed_with_error(waiting_client, "28000",
			"server login failed: invalid server signature");
		prepare_next_attempt();
		free_exchange(&exchange);
	}
}

static void test_missing_server_signature_is_refused(void **state)
{
	struct exchange exchange;
	struct endpoint *server;

	(void)state;
	fake_user("alice", "secret");
	server = begin_scram(&exchange, "secret", salt, 16, 10);
	send_letters(server, "R");
	assert_closed_silently(server);
	assert_closed_with_error(
		waiting_client, "28000", "server login failed: invalid server signature");
	prepare_next_attempt();
	free_exchange(&exchange);
	/*
	 * The same when the server starts an exchange and sends AuthenticationOk before its
	 * end.
	 */
	server = launch();
	send_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
	assert_received(server, "p");
	send_letters(server, "RKZ");
	assert_closed_silently(server);
	assert_closed_with_error(
		waiting_client, "28000", "server login failed: invalid server signature");
}

static void test_scram_messages_out_of_order_are_refused(void **state)
{
	struct exchange exchange;
	struct endpoint *server;

	(void)state;
	fake_user("alice", "secret");
	server = launch();
	send_authentication(server, AUTH_SASL_CONTINUE, "r=abc,s=QUFB,i=10", 17);
	assert_failed(server, "failed to answer authreq");
	server = launch();
	send_authentication(server, AUTH_SASL_FINAL, "v=AAAA", 6);
	assert_closed(server);
	assert_received(waiting_client, "E");
	prepare_next_attempt();
	server = begin_scram(&exchange, "secret", salt, 16, 10);
	send_authentication(server, AUTH_SASL_CONTINUE, exchange.out.data, exchange.out.length);
	wait_for_helper();
	assert_closed(server);
	prepare_next_attempt();
	free_exchange(&exchange);
	server = begin_scram(&exchange, "secret", salt, 16, 10);
	send_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
	send_letters(server, "RKZ");
	assert_closed(server);
	prepare_next_attempt();
	free_exchange(&exchange);
}

static void test_malformed_scram_challenge_is_refused(void **state)
{
	static const char *const challenges[] = {
		"",
		"r=",
		"r=another client's nonce,s=c2FsdA==,i=4096",
		"m=ext,r=x,s=c2FsdA==,i=4096",
	};

	(void)state;
	fake_user("alice", "secret");
	for (size_t i = 0; i < COUNT(challenges); i++) {
		struct endpoint *server = launch();

		send_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
		assert_received(server, "p");
		send_authentication(
			server, AUTH_SASL_CONTINUE, challenges[i], strlen(challenges[i]));
		assert_failed(server, "failed to answer authreq");
	}
}

/* A challenge that begins with our nonce, taken from the message received last. */
static void send_challenge(struct endpoint *server, const char *tail)
{
	char text[400];
	size_t length;
	const uint8_t *body = received_body(server, &length);
	const char *nonce = memmem(body, length, "r=", 2);

	assert_non_null(nonce);
	snprintf(text, sizeof(text), "%.26sXYZ%s", nonce, tail);
	send_authentication(server, AUTH_SASL_CONTINUE, text, strlen(text));
}

static void test_scram_challenge_with_invalid_values_is_refused(void **state)
{
	static const char *const tails[] = {",s=c2FsdA==,i=0", ",s=c2FsdA==,i=-5",
		",s=c2FsdA==,i=10000000000", ",s=c2FsdA==,i=x", ",s=,i=4096", ",s=!!!!,i=4096",
		",i=4096", ",s=c2FsdA=="};

	(void)state;
	fake_user("alice", "secret");
	for (size_t i = 0; i < COUNT(tails); i++) {
		struct endpoint *server = launch();

		send_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
		assert_received(server, "p");
		send_challenge(server, tails[i]);
		wait_for_helper();
		assert_failed(server, "failed to answer authreq");
	}
}

static void test_server_that_demands_too_many_iterations_is_refused(void **state)
{
	struct endpoint *server;

	(void)state;
	fake_user("alice", "secret");
	server = launch();
	send_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
	assert_received(server, "p");
	send_challenge(server, ",s=c2FsdA==,i=1000001");
	assert_int_equal(derivations_pending(&fake_registry), 0);
	assert_closed_silently(server);
	assert_true(fake_logged("server demands 1000001 SCRAM iterations, more than 1000000"));
	assert_closed_with_error(waiting_client, "28000",
		"server login failed: the server demands too many SCRAM iterations");
	prepare_next_attempt();
}

static void test_server_may_disconnect_while_keys_are_derived(void **state)
{
	struct endpoint *server;

	(void)state;
	fake_user("alice", "secret");
	server = launch();
	send_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
	assert_received(server, "p");
	send_challenge(server, ",s=c2FsdA==,i=100");
	disconnect(server);
	assert_failed(server, "server conn crashed?");
	wait_for_helper();
}

/* --- what a server must not send ---------------------------------------------------------- */

static void test_ready_for_query_before_authentication_is_refused(void **state)
{
	struct endpoint *server = launch();

	(void)state;
	send_letters(server, "Z");
	assert_failed(server, "bad pkt header");
	fake_user("alice", "secret");
	server = launch();
	send_authentication(server, AUTH_CLEARTEXT, NULL, 0);
	send_letters(server, "SKZ");
	assert_failed(server, "bad pkt header");
}

static void test_login_that_ends_in_a_transaction_is_refused(void **state)
{
	struct endpoint *server = launch();

	(void)state;
	send_letters(server, "R>");
	assert_failed(server, "bad pkt header");
	server = launch();
	send_letters(server, "R!");
	assert_failed(server, "bad pkt header");
}

static void send_message(struct endpoint *server, uint8_t type, size_t length)
{
	struct buffer buffer;
	uint8_t *bytes = calloc(1, length + 1);

	memset(bytes, 'x', length);
	buffer_init(&buffer);
	writer_message(&buffer, type, bytes, length);
	send_buffer(server, &buffer);
	free(bytes);
}

static void test_cancel_key_of_invalid_length_or_sent_twice_is_refused(void **state)
{
	static const size_t bad[] = {0, 4, 7, 261, 300, 5000};
	static const size_t good[] = {8, 36, 260};
	struct endpoint *server;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		server = launch();
		send_letters(server, "R");
		send_message(server, 'K', bad[i]);
		assert_failed(server, "bad pkt header");
	}
	for (size_t i = 0; i < COUNT(good); i++) {
		server = launch();
		send_letters(server, "R");
		send_message(server, 'K', good[i]);
		assert_int_equal(endpoint_server(server)->cancel_key_length, good[i]);
		send_letters(server, "Z");
		send_letters(server, "CZ");
		disconnect(server);
		prepare_next_attempt();
	}
	server = launch();
	send_letters(server, "RKK");
	assert_failed(server, "bad pkt header");
}

static void test_server_without_a_cancel_key_is_accepted(void **state)
{
	struct endpoint *server = launch();

	(void)state;
	send_letters(server, "RZ");
	assert_received(server, "Q");
	assert_null(endpoint_server(server)->cancel_key);
}

static void test_unexpected_messages_are_refused(void **state)
{
	(void)state;
	for (const char *letter = "DTCI123GHWVAntsdc"; *letter; letter++) {
		struct endpoint *server = launch();
		const char letters[] = {'R', *letter, '\0'};

		send_letters(server, letters);
		assert_failed(server, "unknown pkt from server");
	}
}

static void test_negotiate_protocol_version_is_refused(void **state)
{
	struct endpoint *server = launch();

	(void)state;
	send_message(server, 'v', 8);
	assert_failed(server, "unknown pkt from server");
}

static void test_invalid_message_headers_are_refused(void **state)
{
	static const char *const headers[] = {"R\0\0\0\3", "R\xff\xff\xff\xff", "R\0\1\0\0",
		"E\x7f\xff\xff\xff", "S\0\0\0\0"};

	(void)state;
	for (size_t i = 0; i < COUNT(headers); i++) {
		struct endpoint *server = launch();

		send_bytes(server, headers[i], 5);
		assert_failed(server, "bad pkt header");
	}
}

static void test_large_message_is_gathered(void **state)
{
	struct endpoint *server = launch();
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	letters_write(&buffer, FROM_SERVER, "R");
	writer_byte(&buffer, 'N');
	writer_int32(&buffer, 60004);
	memset(buffer_extend(&buffer, 60000), 0, 60000);
	letters_write(&buffer, FROM_SERVER, "KZ");
	for (size_t at = 0; at < buffer.length; at += 1000)
		send_bytes(server, buffer.data + at,
			buffer.length - at < 1000 ? buffer.length - at : 1000);
	buffer_free(&buffer);
	assert_received(server, "Q");
}

static void test_many_notices_use_no_memory(void **state)
{
	struct endpoint *server = launch();
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	for (int i = 0; i < 20000; i++)
		letters_write(&buffer, FROM_SERVER, "N");
	send_buffer(server, &buffer);
	scripted_run_all(server->script);
	assert_true(endpoint_link(server)->held_length < 100);
	assert_logged_in(server);
}

static void test_total_length_of_parameters_is_limited(void **state)
{
	struct endpoint *server = launch();
	struct buffer buffer;
	size_t each;

	(void)state;
	buffer_init(&buffer);
	writer_parameter_status(&buffer, "in_hot_standby", "off");
	each = buffer.length;
	for (size_t all = each; all + each <= 64 * 1024; all += each)
		writer_parameter_status(&buffer, "in_hot_standby", "off");
	send_buffer(server, &buffer);
	scripted_run_all(server->script);
	assert_state(server, SERVER_AUTHENTICATING);
	send_letters(server, "S");
	assert_failed(server, "broken ParameterStatus packet");
}

static void test_malformed_parameter_status_is_refused(void **state)
{
	static const struct {
		const char *body;
		size_t length;
	} bodies[] = {{"", 0}, {"TimeZone", 8}, {"TimeZone\0", 9}, {"TimeZone\0UTC", 12}};

	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct endpoint *server = launch();
		struct buffer buffer;

		buffer_init(&buffer);
		writer_message(&buffer, 'S', bodies[i].body, bodies[i].length);
		send_buffer(server, &buffer);
		assert_failed(server, "broken ParameterStatus packet");
	}
}

static void test_server_may_disconnect_at_any_point(void **state)
{
	static const char *const parts[] = {"", "R", "RS", "RSK"};

	(void)state;
	for (size_t i = 0; i < COUNT(parts); i++) {
		struct endpoint *server = launch();

		send_letters(server, parts[i]);
		disconnect(server);
		assert_failed(server, "server conn crashed?");
	}
}

static void test_failed_connect_is_logged(void **state)
{
	struct endpoint *server;

	(void)state;
	waiting_client = fake_client(pool);
	send_letters(waiting_client, "Q");
	server = fake_launched();
	fake_connected(server, ECONNREFUSED);
	assert_true(fake_logged("sbuf_connect failed to connect to unix:5432"));
	assert_failed(server, "connect failed");
}

/* --- connect_query ------------------------------------------------------------------------ */

static struct endpoint *launch_preparing(void)
{
	struct endpoint *server;
	size_t length;

	start_with("host=/tmp connect_query='SET x=1'");
	server = launch();
	send_letters(server, "RSKZ");
	assert_state(server, SERVER_PREPARING);
	assert_state(waiting_client, CLIENT_WAITING);
	assert_received(server, "Q");
	assert_string_equal((const char *)received_body(server, &length), "SET x=1");
	return server;
}

static void test_connect_query_is_run_before_the_server_is_used(void **state)
{
	struct endpoint *server = launch_preparing();
	const int index = parameter_index(fake_registry.parameters, "TimeZone");

	(void)state;
	send_parameter_status(server, "TimeZone", "UTC");
	send_letters(server, "NTDC");
	send_letters(server, "Z");
	assert_string_equal(
		parameters_get(endpoint_link(server)->parameters, (unsigned)index), "UTC");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(waiting_client, "CZ");
}

static void test_error_of_the_connect_query_is_logged_only(void **state)
{
	struct endpoint *server = launch_preparing();

	(void)state;
	send_letters(server, "EZ");
	assert_true(
		fake_logged("S: error while executing exec_on_query: ERROR: division by zero"));
	assert_state(waiting_client, CLIENT_PAIRED);
}

static void test_connect_query_that_leaves_a_transaction_open_fails_the_login(void **state)
{
	struct endpoint *server = launch_preparing();

	(void)state;
	send_letters(server, "C>");
	assert_closed(server);
	assert_state(waiting_client, CLIENT_WAITING);
	assert_true(pool->failing);
}

static void test_server_closed_during_the_connect_query_fails_the_login(void **state)
{
	struct endpoint *server = launch_preparing();

	(void)state;
	disconnect(server);
	assert_failed(server, "server conn crashed?");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define OWN_TEST(name) cmocka_unit_test_teardown(test_##name, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(startup_message_names_database_and_user),
		OWN_TEST(startup_message_has_the_parameters_of_the_database),
		TEST(failed_write_of_the_startup_message_fails_the_login),
		TEST(login_may_arrive_byte_by_byte),
		TEST(reported_parameters_and_cancel_key_are_stored),
		TEST(welcome_message_is_made_from_the_first_login_only),
		TEST(message_after_the_login_makes_the_server_dirty),
		TEST(incomplete_message_after_the_login_makes_the_server_dirty),
		TEST(incomplete_message_after_the_login_is_forwarded_whole),
		TEST(cleartext_request_is_answered_with_a_plain_secret_only),
		TEST(md5_request_is_answered_with_plain_and_md5_secrets),
		OWN_TEST(password_of_the_database_is_used_for_the_forced_user),
		TEST(unsupported_authentication_requests_are_refused),
		TEST(truncated_authentication_request_is_refused),
		TEST(scram_is_answered_with_a_plain_secret),
		TEST(scram_is_answered_with_keys_of_a_client_login),
		TEST(scram_is_not_answered_without_password_or_keys),
		OWN_TEST(scram_keys_of_clients_are_not_used_for_a_forced_user),
		TEST(sasl_request_without_scram_sha_256_is_refused),
		TEST(invalid_server_signature_is_refused),
		TEST(missing_server_signature_is_refused),
		TEST(scram_messages_out_of_order_are_refused),
		TEST(malformed_scram_challenge_is_refused),
		TEST(scram_challenge_with_invalid_values_is_refused),
		TEST(server_that_demands_too_many_iterations_is_refused),
		TEST(server_may_disconnect_while_keys_are_derived),
		TEST(ready_for_query_before_authentication_is_refused),
		TEST(login_that_ends_in_a_transaction_is_refused),
		TEST(cancel_key_of_invalid_length_or_sent_twice_is_refused),
		TEST(server_without_a_cancel_key_is_accepted),
		TEST(unexpected_messages_are_refused),
		TEST(negotiate_protocol_version_is_refused),
		TEST(invalid_message_headers_are_refused),
		TEST(large_message_is_gathered),
		TEST(many_notices_use_no_memory),
		TEST(total_length_of_parameters_is_limited),
		TEST(malformed_parameter_status_is_refused),
		TEST(server_may_disconnect_at_any_point),
		TEST(failed_connect_is_logged),
		OWN_TEST(connect_query_is_run_before_the_server_is_used),
		OWN_TEST(error_of_the_connect_query_is_logged_only),
		OWN_TEST(connect_query_that_leaves_a_transaction_open_fails_the_login),
		OWN_TEST(server_closed_during_the_connect_query_fails_the_login),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
