/* SPDX-License-Identifier: ISC */
/* How we log in to servers: each request with each kind of secret, and what no server may say. */
#include <errno.h>

#include "crypt/md5.h"
#include "crypt/scram.h"
#include "session/pool/launch.h"
#include "session/server/server_login.h"
#include "session/work/control.h"
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
static struct actor *waiter; /* a client that waits for the server */

static void start_with(const char *database)
{
	char config[600];

	snprintf(config, sizeof(config),
		"[databases]\ndb = %s\n[pgbouncer]\npool_mode = transaction\n"
		"query_wait_notify = 0\nserver_reset_query =\n",
		database);
	fake_start(config);
	pool = fake_pool("db", "alice");
	waiter = NULL;
}

static int start(void **state)
{
	(void)state;
	start_with("host=/tmp");
	return 0;
}

/* --- servers ------------------------------------------------------------------------------ */

/* A server that was launched for a waiting client, and has our StartupMessage. */
static struct actor *launch(void)
{
	struct actor *server;

	waiter = fake_client(pool);
	say(waiter, "Q");
	server = fake_launched();
	assert_non_null(server);
	fake_connected(server, 0);
	assert_heard(server, "^");
	assert_state(server, SERVER_AUTHENTICATING);
	return server;
}

/* Ready for the next attempt, whatever became of the last one. */
static void begin_anew(void)
{
	if (waiter && !is_gone(waiter))
		leave(waiter);
	pool->failing = false;
}

static void say_authentication(
	struct actor *server, uint32_t request, const void *data, size_t length)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_authentication(&buffer, (enum authentication_request)request, data, length);
	say_buffer(server, &buffer);
}

static void assert_logged_in(struct actor *server)
{
	say(server, "RSKZ");
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_heard(waiter, "CZ");
	assert_state(server, SERVER_IDLE);
	assert_null(actor_server(server)->login);
}

/* The server is closed for this reason; the client goes on waiting. */
static void assert_failed(struct actor *server, const char *reason)
{
	char line[200];

	assert_gone(server);
	snprintf(line, sizeof(line), "closing because: %s", reason);
	assert_true(fake_logged(line));
	assert_state(waiter, CLIENT_WAITING);
	assert_true(pool->failing);
	assert_string_equal(pool->last_failure.text, reason);
	begin_anew();
}

/* The server is closed; those who wait hear that our secret does not do. */
static void assert_wrong_kind(struct actor *server)
{
	assert_heard(server, "");
	assert_gone(server);
	assert_told(waiter, "28000", "server login failed: wrong password type");
	begin_anew();
}

static void wait_for_helper(void)
{
	while (helper_pending(fake_registry.derivations) > 0)
		fake_wait();
}

/* --- the startup message ------------------------------------------------------------------ */

static void test_the_startup_names_the_database_and_the_user(void **state)
{
	static const char expected[] = "\0\0\0\x20\0\3\0\0database\0db\0user\0alice\0";
	struct actor *server = launch();
	size_t length;
	const uint8_t *output = scripted_output(server->script, &length);

	(void)state;
	assert_int_equal(length, 0x20);
	assert_memory_equal(output, expected, length);
	assert_logged_in(server);
}

static void test_the_startup_has_the_start_values_of_the_database(void **state)
{
	static const char expected[] =
		"database\0other\0client_encoding\0UTF8\0datestyle\0ISO\0"
		"timezone\0UTC\0application_name\0web\0user\0carol\0";
	struct actor *server;
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

static void test_a_server_to_which_nothing_can_be_written(void **state)
{
	struct actor *server;

	(void)state;
	waiter = fake_client(pool);
	say(waiter, "Q");
	server = fake_launched();
	scripted_break(server->script);
	fake_connected(server, 0);
	assert_failed(server, "startup pkt failed");
}

/* --- a login ------------------------------------------------------------------------------ */

static void test_a_login_may_come_byte_by_byte(void **state)
{
	struct actor *server = launch();
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes);
	letters_write(&bytes, SERVER_SPEAKS, "NRSNSKNZ");
	for (size_t i = 0; i < bytes.length; i++) {
		assert_state(server, SERVER_AUTHENTICATING);
		say_bytes(server, bytes.data + i, 1);
	}
	buffer_free(&bytes);
	assert_heard(server, "Q");
	assert_state(waiter, CLIENT_PAIRED);
	say(server, "CZ");
	assert_int_equal(fake_registry.helds.used, 0);
}

static void test_what_the_server_reports_is_known_of_it(void **state)
{
	struct actor *server = launch();
	struct server_link *link = actor_server(server);
	const int index = parameter_index(fake_registry.parameters, "TimeZone");

	(void)state;
	say(server, "R");
	say_parameter(server, "TimeZone", "UTC");
	say(server, "KZ");
	assert_string_equal(parameters_get(link->link.parameters, (unsigned)index), "UTC");
	assert_int_equal(link->cancel_key_length, 8);
	assert_memory_equal(link->cancel_key, "\0\0\1\2\3\4\5\6", 8);
}

static void test_only_the_first_login_makes_the_welcome(void **state)
{
	struct actor *server;
	const struct parameters *first;
	size_t head;

	(void)state;
	pool_forget_welcome(pool);
	server = launch();
	say(server, "R");
	say_parameter(server, "TimeZone", "UTC");
	say_parameter(server, "server_version", "15.4");
	say(server, "KZ");
	first = pool->welcome;
	head = pool->welcome_head.length;
	assert_non_null(first);
	assert_int_equal(head, 9 + 1 + 4 + sizeof("server_version") + sizeof("15.4"));
	assert_true(launch_server(pool, false));
	server = fake_launched();
	fake_connected(server, 0);
	say(server, "R");
	say_parameter(server, "TimeZone", "GMT");
	say(server, "SSSKZ");
	assert_ptr_equal(pool->welcome, first);
	assert_int_equal(pool->welcome_head.length, head);
}

static void test_what_is_said_behind_the_login_makes_the_server_dirty(void **state)
{
	static const char *const tails[] = {"E", "N", "TDCZ", "S"};

	(void)state;
	for (size_t i = 0; i < COUNT(tails); i++) {
		struct actor *server;
		char all[16];

		assert_true(launch_server(pool, false));
		server = fake_launched();
		fake_connected(server, 0);
		snprintf(all, sizeof(all), "RKZ%s", tails[i]);
		say(server, all);
		assert_true(actor_server(server)->dirty);
	}
}

static void test_half_a_message_behind_the_login_makes_it_dirty_too(void **state)
{
	struct actor *server;
	struct buffer bytes;

	(void)state;
	assert_true(launch_server(pool, false));
	server = fake_launched();
	fake_connected(server, 0);
	buffer_init(&bytes);
	letters_write(&bytes, SERVER_SPEAKS, "RKZ");
	buffer_append(&bytes, "N\0\0", 3);
	say_buffer(server, &bytes);
	assert_true(actor_server(server)->dirty);
	waiter = fake_client(pool);
	say(waiter, "Q");
	assert_gone(server);
}

/* It has a client at once, who hears whole messages all the same. */
static void test_half_a_message_behind_the_login_is_not_lost(void **state)
{
	struct actor *server = launch();
	struct buffer bytes;
	size_t all;

	(void)state;
	buffer_init(&bytes);
	letters_write(&bytes, SERVER_SPEAKS, "RKZ");
	all = bytes.length;
	letters_write(&bytes, SERVER_SPEAKS, "N");
	say_bytes(server, bytes.data, all + 7);
	assert_heard(server, "Q");
	say_bytes(server, bytes.data + all + 7, bytes.length - all - 7);
	say(server, "TDCZ");
	assert_heard(waiter, "NTDCZ");
	assert_state(waiter, CLIENT_IDLE);
	assert_gone(server);
	buffer_free(&bytes);
}

/* --- passwords ---------------------------------------------------------------------------- */

static void test_a_clear_password_is_told_if_it_is_known(void **state)
{
	char hashed[36];
	const char *const others[] = {NULL, "", hashed, PENCIL};
	struct actor *server;
	size_t length;

	(void)state;
	assert_true(md5_secret("secret", "alice", hashed));
	fake_user("alice", "secret");
	server = launch();
	say_authentication(server, AUTH_CLEARTEXT, NULL, 0);
	assert_heard(server, "p");
	assert_string_equal((const char *)heard_body(server, &length), "secret");
	assert_int_equal(length, 7);
	assert_logged_in(server);
	leave(server);
	for (size_t i = 0; i < COUNT(others); i++) {
		fake_user("alice", others[i]);
		server = launch();
		say_authentication(server, AUTH_CLEARTEXT, NULL, 0);
		assert_wrong_kind(server);
	}
	fake_user("alice", NULL);
}

static void test_md5_is_answered_with_plain_and_md5_secrets(void **state)
{
	char hashed[36], response[36];
	const char *const good[] = {"secret", hashed};
	const char *const others[] = {NULL, "", PENCIL};
	struct actor *server;
	size_t length;

	(void)state;
	assert_true(md5_secret("secret", "alice", hashed));
	assert_true(md5_response(hashed, (const uint8_t *)"salt", response));
	for (size_t i = 0; i < COUNT(good); i++) {
		fake_user("alice", good[i]);
		server = launch();
		say_authentication(server, AUTH_MD5, "salt", 4);
		assert_heard(server, "p");
		assert_string_equal((const char *)heard_body(server, &length), response);
		assert_int_equal(length, 36);
		assert_logged_in(server);
		leave(server);
	}
	for (size_t i = 0; i < COUNT(others); i++) {
		fake_user("alice", others[i]);
		server = launch();
		say_authentication(server, AUTH_MD5, "salt", 4);
		assert_wrong_kind(server);
	}
	server = launch();
	say_authentication(server, AUTH_MD5, "sal", 3);
	assert_failed(server, "bad pkt header");
	fake_user("alice", NULL);
}

static void test_the_password_of_the_database_is_the_forced_users(void **state)
{
	struct actor *server;
	size_t length;

	(void)state;
	start_with("host=/tmp user=carol password=hers");
	fake_user("carol", "another");
	pool = fake_pool("db", "carol");
	server = launch();
	say_authentication(server, AUTH_CLEARTEXT, NULL, 0);
	assert_heard(server, "p");
	assert_string_equal((const char *)heard_body(server, &length), "hers");
	assert_logged_in(server);
}

static void test_other_ways_to_log_in_are_not_known(void **state)
{
	static const uint32_t requests[] = {
		1, 2, 4, 6, AUTH_GSS, AUTH_GSS_CONTINUE, AUTH_SSPI, 13, 99, UINT32_MAX};

	(void)state;
	fake_user("alice", "secret");
	for (size_t i = 0; i < COUNT(requests); i++) {
		struct actor *server = launch();

		say_authentication(server, requests[i], "data", 4);
		assert_wrong_kind(server);
	}
	assert_true(fake_logged("unknown/unsupported auth method: 7"));
}

static void test_a_request_that_is_cut_is_refused(void **state)
{
	(void)state;
	for (size_t length = 0; length < 4; length++) {
		struct actor *server = launch();
		struct buffer buffer;

		buffer_init(&buffer);
		writer_message(&buffer, 'R', "\0\0\0\0", length);
		say_buffer(server, &buffer);
		assert_failed(server, "bad pkt header");
	}
}

/* --- SCRAM -------------------------------------------------------------------------------- */

/* The server's side of an exchange. */
struct exchange {
	struct scram_server scram;
	struct scram_keys keys;
	struct buffer out;
};

static const uint8_t salt[] = "sixteen bytes...";

/* Up to our last message, which has been heard; the password is the one that the server knows. */
static struct actor *begin_scram(struct exchange *exchange, const char *password,
	const uint8_t *with_salt, size_t salt_length, uint32_t iterations)
{
	struct actor *server = launch();
	struct reader reader;
	const uint8_t *body, *message;
	uint8_t nonce[SCRAM_NONCE_SIZE] = "server's nonce";
	size_t length;
	uint32_t size;

	*exchange = (struct exchange){0};
	buffer_init(&exchange->out);
	assert_true(
		scram_derive(password, with_salt, salt_length, iterations, &exchange->keys));
	say_authentication(server, AUTH_SASL, "SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0", 34);
	assert_heard(server, "p");
	body = heard_body(server, &length);
	reader_init(&reader, body, length);
	assert_string_equal(reader_string(&reader), SCRAM_MECHANISM);
	size = reader_int32(&reader);
	message = reader_bytes(&reader, size);
	assert_non_null(message);
	assert_int_equal(reader_left(&reader), 0);
	assert_int_equal(scram_server_first(&exchange->scram, (const char *)message, size,
				 nonce, with_salt, salt_length, iterations, &exchange->out),
		SCRAM_GOOD);
	say_authentication(
		server, AUTH_SASL_CONTINUE, exchange->out.data, exchange->out.length);
	wait_for_helper();
	assert_heard(server, "p");
	return server;
}

/* Judge our last message, and make the server's. */
static void end_scram(struct actor *server, struct exchange *exchange, bool good)
{
	uint8_t client_key[SCRAM_KEY_SIZE];
	size_t length;
	const uint8_t *body = heard_body(server, &length);

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

static void test_scram_proves_a_plain_secret(void **state)
{
	struct exchange exchange;
	struct actor *server;

	(void)state;
	fake_user("alice", "secret");
	server = begin_scram(&exchange, "secret", salt, 16, 10);
	end_scram(server, &exchange, true);
	say_authentication(server, AUTH_SASL_FINAL, exchange.out.data, exchange.out.length);
	assert_logged_in(server);
	free_exchange(&exchange);
}

static void test_keys_that_a_client_proved_are_passed_on(void **state)
{
	struct exchange exchange;
	struct actor *server;
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
	say_authentication(server, AUTH_SASL_FINAL, exchange.out.data, exchange.out.length);
	assert_logged_in(server);
	free_exchange(&exchange);
	fake_user("alice", NULL);
}

static void test_without_a_password_scram_cannot_be_answered(void **state)
{
	char hashed[36];
	const char *const secrets[] = {NULL, "", hashed, PENCIL};

	(void)state;
	assert_true(md5_secret("secret", "alice", hashed));
	for (size_t i = 0; i < COUNT(secrets); i++) {
		struct actor *server;

		fake_user("alice", secrets[i]);
		server = launch();
		say_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
		assert_wrong_kind(server);
	}
	assert_true(fake_logged("password is SCRAM secret but client authentication did not "
				"provide SCRAM keys"));
	fake_user("alice", NULL);
}

static void test_a_forced_user_does_not_have_the_clients_keys(void **state)
{
	struct actor *server;
	struct user_keys *keys;

	(void)state;
	start_with("host=/tmp user=carol");
	keys = user_keys(fake_user("carol", PENCIL));
	keys->client_key_known = true;
	pool = fake_pool("db", "carol");
	server = launch();
	say_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
	assert_wrong_kind(server);
}

static void test_the_only_mechanism_has_to_be_offered(void **state)
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
		struct actor *server = launch();

		say_authentication(server, AUTH_SASL, lists[i].list, lists[i].length);
		assert_dropped(server);
		assert_told(waiter, "28000",
			"server login failed: none of the server's SASL authentication mechanisms "
			"are supported");
		begin_anew();
	}
}

static void test_a_server_that_does_not_know_the_secret_is_not_believed(void **state)
{
	static const char *const finals[] = {
		"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "v=", "", "e=no", "x"};

	(void)state;
	fake_user("alice", "secret");
	for (size_t i = 0; i < COUNT(finals); i++) {
		struct exchange exchange;
		struct actor *server = begin_scram(&exchange, "secret", salt, 16, 10);

		say_authentication(server, AUTH_SASL_FINAL, finals[i], strlen(finals[i]));
		assert_dropped(server);
		assert_told(waiter, "28000", "server login failed: invalid server signature");
		begin_anew();
		free_exchange(&exchange);
	}
}

static void test_a_server_that_leaves_its_proof_out_is_not_believed(void **state)
{
	struct exchange exchange;
	struct actor *server;

	(void)state;
	fake_user("alice", "secret");
	server = begin_scram(&exchange, "secret", salt, 16, 10);
	say(server, "R");
	assert_dropped(server);
	assert_told(waiter, "28000", "server login failed: invalid server signature");
	begin_anew();
	free_exchange(&exchange);
	/* Nor if it begins an exchange and then does not wait for its end. */
	server = launch();
	say_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
	assert_heard(server, "p");
	say(server, "RKZ");
	assert_dropped(server);
	assert_told(waiter, "28000", "server login failed: invalid server signature");
}

static void test_scram_messages_out_of_order_are_refused(void **state)
{
	struct exchange exchange;
	struct actor *server;

	(void)state;
	fake_user("alice", "secret");
	server = launch();
	say_authentication(server, AUTH_SASL_CONTINUE, "r=abc,s=QUFB,i=10", 17);
	assert_failed(server, "failed to answer authreq");
	server = launch();
	say_authentication(server, AUTH_SASL_FINAL, "v=AAAA", 6);
	assert_gone(server);
	assert_heard(waiter, "E");
	begin_anew();
	server = begin_scram(&exchange, "secret", salt, 16, 10);
	say_authentication(server, AUTH_SASL_CONTINUE, exchange.out.data, exchange.out.length);
	wait_for_helper();
	assert_gone(server);
	begin_anew();
	free_exchange(&exchange);
	server = begin_scram(&exchange, "secret", salt, 16, 10);
	say_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
	say(server, "RKZ");
	assert_gone(server);
	begin_anew();
	free_exchange(&exchange);
}

static void test_a_challenge_that_is_not_one_is_refused(void **state)
{
	static const char *const challenges[] = {
		"",
		"r=",
		"r=somebody else's nonce,s=c2FsdA==,i=4096",
		"m=ext,r=x,s=c2FsdA==,i=4096",
	};

	(void)state;
	fake_user("alice", "secret");
	for (size_t i = 0; i < COUNT(challenges); i++) {
		struct actor *server = launch();

		say_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
		assert_heard(server, "p");
		say_authentication(
			server, AUTH_SASL_CONTINUE, challenges[i], strlen(challenges[i]));
		assert_failed(server, "failed to answer authreq");
	}
}

/* Our nonce as it stands in the message that was heard last. */
static void continue_with(struct actor *server, const char *tail)
{
	char text[400];
	size_t length;
	const uint8_t *body = heard_body(server, &length);
	const char *nonce = memmem(body, length, "r=", 2);

	assert_non_null(nonce);
	snprintf(text, sizeof(text), "%.26sXYZ%s", nonce, tail);
	say_authentication(server, AUTH_SASL_CONTINUE, text, strlen(text));
}

static void test_a_challenge_with_values_that_cannot_be_is_refused(void **state)
{
	static const char *const tails[] = {",s=c2FsdA==,i=0", ",s=c2FsdA==,i=-5",
		",s=c2FsdA==,i=1000001", ",s=c2FsdA==,i=10000000000", ",s=c2FsdA==,i=x",
		",s=,i=4096", ",s=!!!!,i=4096", ",i=4096", ",s=c2FsdA=="};

	(void)state;
	fake_user("alice", "secret");
	for (size_t i = 0; i < COUNT(tails); i++) {
		struct actor *server = launch();

		say_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
		assert_heard(server, "p");
		continue_with(server, tails[i]);
		wait_for_helper();
		assert_failed(server, "failed to answer authreq");
	}
}

static void test_a_server_that_goes_while_keys_are_derived_for_it(void **state)
{
	struct actor *server;

	(void)state;
	fake_user("alice", "secret");
	server = launch();
	say_authentication(server, AUTH_SASL, "SCRAM-SHA-256\0\0", 15);
	assert_heard(server, "p");
	continue_with(server, ",s=c2FsdA==,i=100");
	leave(server);
	assert_failed(server, "server conn crashed?");
	wait_for_helper();
}

/* --- what no server may say --------------------------------------------------------------- */

static void test_ready_before_the_authentication_is_refused(void **state)
{
	struct actor *server = launch();

	(void)state;
	say(server, "Z");
	assert_failed(server, "bad pkt header");
	fake_user("alice", "secret");
	server = launch();
	say_authentication(server, AUTH_CLEARTEXT, NULL, 0);
	say(server, "SKZ");
	assert_failed(server, "bad pkt header");
}

static void test_a_login_ends_outside_of_a_transaction(void **state)
{
	struct actor *server = launch();

	(void)state;
	say(server, "R>");
	assert_failed(server, "bad pkt header");
	server = launch();
	say(server, "R!");
	assert_failed(server, "bad pkt header");
}

static void say_message(struct actor *server, uint8_t type, size_t length)
{
	struct buffer buffer;
	uint8_t *bytes = calloc(1, length + 1);

	memset(bytes, 'x', length);
	buffer_init(&buffer);
	writer_message(&buffer, type, bytes, length);
	say_buffer(server, &buffer);
	free(bytes);
}

static void test_cancel_keys_have_a_length_and_come_once(void **state)
{
	static const size_t bad[] = {0, 4, 7, 261, 300, 5000};
	static const size_t good[] = {8, 36, 260};
	struct actor *server;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		server = launch();
		say(server, "R");
		say_message(server, 'K', bad[i]);
		assert_failed(server, "bad pkt header");
	}
	for (size_t i = 0; i < COUNT(good); i++) {
		server = launch();
		say(server, "R");
		say_message(server, 'K', good[i]);
		assert_int_equal(actor_server(server)->cancel_key_length, good[i]);
		say(server, "Z");
		say(server, "CZ");
		leave(server);
		begin_anew();
	}
	server = launch();
	say(server, "RKK");
	assert_failed(server, "bad pkt header");
}

static void test_a_server_without_a_cancel_key_is_good(void **state)
{
	struct actor *server = launch();

	(void)state;
	say(server, "RZ");
	assert_heard(server, "Q");
	assert_null(actor_server(server)->cancel_key);
}

static void test_unknown_messages_are_refused(void **state)
{
	(void)state;
	for (const char *letter = "DTCI123GHWVAntsdc"; *letter; letter++) {
		struct actor *server = launch();
		const char letters[] = {'R', *letter, '\0'};

		say(server, letters);
		assert_failed(server, "unknown pkt from server");
	}
}

static void test_a_protocol_that_is_not_asked_for_is_not_negotiated(void **state)
{
	struct actor *server = launch();

	(void)state;
	say_message(server, 'v', 8);
	assert_failed(server, "unknown pkt from server");
}

static void test_headers_that_cannot_be_are_refused(void **state)
{
	static const char *const headers[] = {"R\0\0\0\3", "R\xff\xff\xff\xff", "R\0\1\0\0",
		"E\x7f\xff\xff\xff", "S\0\0\0\0"};

	(void)state;
	for (size_t i = 0; i < COUNT(headers); i++) {
		struct actor *server = launch();

		say_bytes(server, headers[i], 5);
		assert_failed(server, "bad pkt header");
	}
}

static void test_a_large_message_is_waited_for(void **state)
{
	struct actor *server = launch();
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	letters_write(&buffer, SERVER_SPEAKS, "R");
	writer_byte(&buffer, 'N');
	writer_int32(&buffer, 60004);
	memset(buffer_extend(&buffer, 60000), 0, 60000);
	letters_write(&buffer, SERVER_SPEAKS, "KZ");
	for (size_t at = 0; at < buffer.length; at += 1000)
		say_bytes(server, buffer.data + at,
			buffer.length - at < 1000 ? buffer.length - at : 1000);
	buffer_free(&buffer);
	assert_heard(server, "Q");
}

static void test_many_notices_cost_nothing(void **state)
{
	struct actor *server = launch();
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	for (int i = 0; i < 20000; i++)
		letters_write(&buffer, SERVER_SPEAKS, "N");
	say_buffer(server, &buffer);
	scripted_run_all(server->script);
	assert_true(actor_link(server)->held_length < 100);
	assert_logged_in(server);
}

static void test_parameters_have_an_end(void **state)
{
	struct actor *server = launch();
	struct buffer buffer;
	size_t each;

	(void)state;
	buffer_init(&buffer);
	writer_parameter_status(&buffer, "in_hot_standby", "off");
	each = buffer.length;
	for (size_t all = each; all + each <= 64 * 1024; all += each)
		writer_parameter_status(&buffer, "in_hot_standby", "off");
	say_buffer(server, &buffer);
	scripted_run_all(server->script);
	assert_state(server, SERVER_AUTHENTICATING);
	say(server, "S");
	assert_failed(server, "broken ParameterStatus packet");
}

static void test_a_broken_parameter_is_refused(void **state)
{
	static const struct {
		const char *body;
		size_t length;
	} bodies[] = {{"", 0}, {"TimeZone", 8}, {"TimeZone\0", 9}, {"TimeZone\0UTC", 12}};

	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct actor *server = launch();
		struct buffer buffer;

		buffer_init(&buffer);
		writer_message(&buffer, 'S', bodies[i].body, bodies[i].length);
		say_buffer(server, &buffer);
		assert_failed(server, "broken ParameterStatus packet");
	}
}

static void test_a_server_may_end_at_any_point(void **state)
{
	static const char *const parts[] = {"", "R", "RS", "RSK"};

	(void)state;
	for (size_t i = 0; i < COUNT(parts); i++) {
		struct actor *server = launch();

		say(server, parts[i]);
		leave(server);
		assert_failed(server, "server conn crashed?");
	}
}

static void test_a_connect_that_fails_is_told_in_the_log(void **state)
{
	struct actor *server;

	(void)state;
	waiter = fake_client(pool);
	say(waiter, "Q");
	server = fake_launched();
	fake_connected(server, ECONNREFUSED);
	assert_true(fake_logged("sbuf_connect failed to connect to unix:5432"));
	assert_failed(server, "connect failed");
}

/* --- connect_query ------------------------------------------------------------------------ */

static struct actor *prepare(void)
{
	struct actor *server;
	size_t length;

	start_with("host=/tmp connect_query='SET x=1'");
	server = launch();
	say(server, "RSKZ");
	assert_state(server, SERVER_PREPARING);
	assert_state(waiter, CLIENT_WAITING);
	assert_heard(server, "Q");
	assert_string_equal((const char *)heard_body(server, &length), "SET x=1");
	return server;
}

static void test_a_query_prepares_the_server(void **state)
{
	struct actor *server = prepare();
	const int index = parameter_index(fake_registry.parameters, "TimeZone");

	(void)state;
	say_parameter(server, "TimeZone", "UTC");
	say(server, "NTDC");
	say(server, "Z");
	assert_string_equal(
		parameters_get(actor_link(server)->parameters, (unsigned)index), "UTC");
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_heard(waiter, "CZ");
}

static void test_errors_of_the_query_are_only_logged(void **state)
{
	struct actor *server = prepare();

	(void)state;
	say(server, "EZ");
	assert_true(
		fake_logged("S: error while executing exec_on_query: ERROR: division by zero"));
	assert_state(waiter, CLIENT_PAIRED);
}

static void test_a_query_that_leaves_a_transaction_open_fails(void **state)
{
	struct actor *server = prepare();

	(void)state;
	say(server, "C>");
	assert_gone(server);
	assert_state(waiter, CLIENT_WAITING);
	assert_true(pool->failing);
}

static void test_a_server_that_ends_in_the_query_has_failed_to_log_in(void **state)
{
	struct actor *server = prepare();

	(void)state;
	leave(server);
	assert_failed(server, "server conn crashed?");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define OWN_TEST(name) cmocka_unit_test_teardown(test_##name, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(the_startup_names_the_database_and_the_user),
		OWN_TEST(the_startup_has_the_start_values_of_the_database),
		TEST(a_server_to_which_nothing_can_be_written),
		TEST(a_login_may_come_byte_by_byte),
		TEST(what_the_server_reports_is_known_of_it),
		TEST(only_the_first_login_makes_the_welcome),
		TEST(what_is_said_behind_the_login_makes_the_server_dirty),
		TEST(half_a_message_behind_the_login_makes_it_dirty_too),
		TEST(half_a_message_behind_the_login_is_not_lost),
		TEST(a_clear_password_is_told_if_it_is_known),
		TEST(md5_is_answered_with_plain_and_md5_secrets),
		OWN_TEST(the_password_of_the_database_is_the_forced_users),
		TEST(other_ways_to_log_in_are_not_known),
		TEST(a_request_that_is_cut_is_refused),
		TEST(scram_proves_a_plain_secret),
		TEST(keys_that_a_client_proved_are_passed_on),
		TEST(without_a_password_scram_cannot_be_answered),
		OWN_TEST(a_forced_user_does_not_have_the_clients_keys),
		TEST(the_only_mechanism_has_to_be_offered),
		TEST(a_server_that_does_not_know_the_secret_is_not_believed),
		TEST(a_server_that_leaves_its_proof_out_is_not_believed),
		TEST(scram_messages_out_of_order_are_refused),
		TEST(a_challenge_that_is_not_one_is_refused),
		TEST(a_challenge_with_values_that_cannot_be_is_refused),
		TEST(a_server_that_goes_while_keys_are_derived_for_it),
		TEST(ready_before_the_authentication_is_refused),
		TEST(a_login_ends_outside_of_a_transaction),
		TEST(cancel_keys_have_a_length_and_come_once),
		TEST(a_server_without_a_cancel_key_is_good),
		TEST(unknown_messages_are_refused),
		TEST(a_protocol_that_is_not_asked_for_is_not_negotiated),
		TEST(headers_that_cannot_be_are_refused),
		TEST(a_large_message_is_waited_for),
		TEST(many_notices_cost_nothing),
		TEST(parameters_have_an_end),
		TEST(a_broken_parameter_is_refused),
		TEST(a_server_may_end_at_any_point),
		TEST(a_connect_that_fails_is_told_in_the_log),
		OWN_TEST(a_query_prepares_the_server),
		OWN_TEST(errors_of_the_query_are_only_logged),
		OWN_TEST(a_query_that_leaves_a_transaction_open_fails),
		OWN_TEST(a_server_that_ends_in_the_query_has_failed_to_log_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
