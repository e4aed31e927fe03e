/* SPDX-License-Identifier: ISC */
/*
 * SCRAM matches the vectors of the standards, both sides agree, and invalid messages are
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crypt/base64.h"
#include "crypt/digest.h"
#include "crypt/scram.h"
#include "crypt/scram_derivation.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* RFC 7677 section 3: user "user", password "pencil" */
#define VECTOR_CLIENT_NONCE "rOprNGfwEbeRWgbNEkqO"
#define VECTOR_NONCE VECTOR_CLIENT_NONCE "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
#define VECTOR_SALT "W22ZaJ0SNY7soEsUEjb6gQ=="
#define VECTOR_CLIENT_FIRST_BARE "n=user,r=" VECTOR_CLIENT_NONCE
#define VECTOR_SERVER_FIRST "r=" VECTOR_NONCE ",s=" VECTOR_SALT ",i=4096"
#define VECTOR_CLIENT_FINAL                                                                    \
	"c=biws,r=" VECTOR_NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
#define VECTOR_SERVER_FINAL "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
#define VECTOR_SECRET                                                                          \
	"SCRAM-SHA-256$4096:" VECTOR_SALT "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"     \
	"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

/* As characters: "Q0xJRU5UQ0xJRU5UQ0xJRU5U" and "U0VSVkVSU0VSVkVSU0VSVkVS" */
static const uint8_t client_random[SCRAM_NONCE_SIZE] = "CLIENTCLIENTCLIENT";
static const uint8_t server_random[SCRAM_NONCE_SIZE] = "SERVERSERVERSERVER";
#define CLIENT_NONCE "Q0xJRU5UQ0xJRU5UQ0xJRU5U"
#define SERVER_NONCE "U0VSVkVSU0VSVkVSU0VSVkVS"

static const uint8_t salt[SCRAM_SALT_SIZE] = "sixteen bytes...";
#define SALT_TEXT "c2l4dGVlbiBieXRlcy4uLg=="

static struct scram_secret vector_secret(void)
{
	struct scram_secret secret;

	assert_true(scram_secret_parse(VECTOR_SECRET, &secret));
	return secret;
}

static void assert_text(const struct buffer *buffer, const char *text)
{
	assert_int_equal(buffer->length, strlen(text));
	assert_memory_equal(buffer->data, text, strlen(text));
}

/* --- Keys and secrets ------------------------------------------------------------------------ */

static void test_keys_of_the_vector_are_derived(void **state)
{
	struct scram_secret secret = vector_secret();
	struct scram_keys keys;
	char text[BASE64_SIZE(SCRAM_KEY_SIZE)];

	(void)state;
	assert_int_equal(secret.iterations, 4096);
	assert_int_equal(secret.salt_length, 16);
	assert_true(scram_derive(
		"pencil", secret.salt, secret.salt_length, secret.iterations, &keys));
	(void)base64_encode(keys.client_key, SCRAM_KEY_SIZE, text, sizeof(text));
	assert_string_equal(text, "pg/JI9Z+hkSpLRa5btpe9GVrDHJcSEN0viVTVXaZbos=");
	assert_memory_equal(keys.stored_key, secret.stored_key, SCRAM_KEY_SIZE);
	assert_memory_equal(keys.server_key, secret.server_key, SCRAM_KEY_SIZE);
	assert_true(scram_secret_accepts(&secret, &keys));
	assert_true(scram_derive(
		"Pencil", secret.salt, secret.salt_length, secret.iterations, &keys));
	assert_false(scram_secret_accepts(&secret, &keys));
}

static void test_password_is_prepared_before_derivation(void **state)
{
	struct scram_keys roman, latin;

	(void)state;
	assert_true(scram_derive("\xe2\x85\xa8", salt, sizeof(salt), 1, &roman));
	assert_true(scram_derive("I\xc2\xadX", salt, sizeof(salt), 1, &latin));
	assert_memory_equal(&roman, &latin, sizeof(roman));
}

static void test_derivation_refuses_arguments_out_of_range(void **state)
{
	struct scram_keys keys;

	(void)state;
	assert_false(scram_derive("x", salt, sizeof(salt), 0, &keys));
	assert_false(scram_derive("x", salt, sizeof(salt), UINT32_MAX, &keys));
	assert_false(scram_derive("x", salt, sizeof(salt), SCRAM_MAX_ITERATIONS + 1, &keys));
	assert_false(scram_derive("x", salt, SIZE_MAX, 1, &keys));
	assert_true(scram_derive("", salt, sizeof(salt), 1, &keys));
}

/* As PKCS5_PBKDF2_HMAC() derives them, for passwords around the size of a block of the hash. */
static void assert_as_openssl(const char *password, size_t salt_length, uint32_t iterations)
{
	static const uint8_t long_salt[SCRAM_MAX_SALT] = "salt";
	uint8_t salted[SCRAM_KEY_SIZE], client_key[SCRAM_KEY_SIZE];
	struct scram_keys keys;

	assert_int_equal(
		PKCS5_PBKDF2_HMAC(password, (int)strlen(password), long_salt, (int)salt_length,
			(int)iterations, EVP_sha256(), sizeof(salted), salted),
		1);
	assert_true(digest_hmac_sha256(salted, "Client Key", 10, client_key));
	assert_true(scram_derive(password, long_salt, salt_length, iterations, &keys));
	assert_memory_equal(keys.client_key, client_key, sizeof(client_key));
}

static void test_derivation_is_pbkdf2(void **state)
{
	static const size_t lengths[] = {0, 1, 63, 64, 65, 200};
	char password[201];

	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		memset(password, 'x', lengths[i]);
		password[lengths[i]] = '\0';
		assert_as_openssl(password, 16, 1);
		assert_as_openssl(password, 1, 2);
		assert_as_openssl(password, SCRAM_MAX_SALT, 100);
	}
}

static void test_slices_of_a_derivation_give_the_keys_of_the_whole(void **state)
{
	struct scram_keys whole, keys;

	(void)state;
	assert_true(scram_derive("pencil", salt, sizeof(salt), 100, &whole));
	for (uint32_t most = 1; most <= 101; most++) {
		struct scram_derivation *derivation =
			scram_derivation_new("pencil", salt, sizeof(salt), 100);
		unsigned slices = 1;

		while (scram_derivation_run(derivation, most, &keys) ==
			SCRAM_DERIVATION_UNFINISHED)
			slices++;
		assert_memory_equal(&keys, &whole, sizeof(keys));
		assert_int_equal(slices, (99 + most - 1) / most);
		scram_derivation_free(derivation);
	}
	scram_derivation_free(scram_derivation_new("pencil", salt, sizeof(salt), 100));
	scram_derivation_free(NULL);
}

static void test_secret_with_too_many_iterations_is_not_usable(void **state)
{
	struct scram_secret secret = vector_secret();

	(void)state;
	assert_true(scram_secret_is_usable(&secret));
	secret.iterations = SCRAM_MAX_ITERATIONS;
	assert_true(scram_secret_is_usable(&secret));
	secret.iterations++;
	assert_false(scram_secret_is_usable(&secret));
}

static void test_malformed_secrets_are_clear_passwords(void **state)
{
	static const char *const bad[] = {
		"",
		"pencil",
		"SCRAM-SHA-256",
		"SCRAM-SHA-256$",
		"SCRAM-SHA-256$4096",
		"SCRAM-SHA-256$4096:" VECTOR_SALT,
		"SCRAM-SHA-256$4096:" VECTOR_SALT "$",
		"SCRAM-SHA-256$4096:" VECTOR_SALT
		"$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=",
		"SCRAM-SHA-256$4096:" VECTOR_SALT
		"$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:",
		VECTOR_SECRET "A",
		VECTOR_SECRET " ",
		" " VECTOR_SECRET,
		"scram-sha-256$4096:" VECTOR_SALT
		"$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
		"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
		"SCRAM-SHA-1$4096:" VECTOR_SALT "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
		"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
	};
	static const char *const iterations[] = {"", "0", "-1", "+1", "4096x", " 4096", "0x10",
		"2147483648", "99999999999999999999"};
	static const char *const salts[] = {"", "!", "W22ZaJ0SNY7soEsUEjb6gQ", "W22Z aJ0S"};
	/* 31 and 33 bytes */
	static const char *const keys[] = {"QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQQ==",
		"QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB", ""};
	struct scram_secret secret;
	char text[512];

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(scram_secret_parse(bad[i], &secret));
	for (size_t i = 0; i < COUNT(iterations); i++) {
		(void)snprintf(text, sizeof(text), "SCRAM-SHA-256$%s%s", iterations[i],
			strchr(VECTOR_SECRET, ':'));
		assert_false(scram_secret_parse(text, &secret));
	}
	for (size_t i = 0; i < COUNT(salts); i++) {
		(void)snprintf(text, sizeof(text), "SCRAM-SHA-256$4096:%s%s", salts[i],
			strrchr(VECTOR_SECRET, '$'));
		assert_false(scram_secret_parse(text, &secret));
	}
	for (size_t i = 0; i < COUNT(keys); i++) {
		(void)snprintf(text, sizeof(text), "SCRAM-SHA-256$4096:%s$%s%s", VECTOR_SALT,
			keys[i], strrchr(VECTOR_SECRET, ':'));
		assert_false(scram_secret_parse(text, &secret));
		(void)snprintf(text, sizeof(text), "%.*s:%s",
			(int)(strrchr(VECTOR_SECRET, ':') - VECTOR_SECRET), VECTOR_SECRET,
			keys[i]);
		assert_false(scram_secret_parse(text, &secret));
	}
}

static void test_salt_of_a_secret_is_capped(void **state)
{
	static const uint8_t bytes[SCRAM_MAX_SALT + 1];
	char salt_text[BASE64_SIZE(sizeof(bytes))], text[1024];
	struct scram_secret secret;

	(void)state;
	for (size_t length = SCRAM_MAX_SALT; length <= SCRAM_MAX_SALT + 1; length++) {
		(void)base64_encode(bytes, length, salt_text, sizeof(salt_text));
		(void)snprintf(text, sizeof(text), "SCRAM-SHA-256$1:%s%s", salt_text,
			strrchr(VECTOR_SECRET, '$'));
		assert_int_equal(scram_secret_parse(text, &secret), length <= SCRAM_MAX_SALT);
	}
	assert_int_equal(secret.salt_length, SCRAM_MAX_SALT);
}

/* --- The standard's exchange ----------------------------------------------------------------- */

static void test_client_side_of_the_vector(void **state)
{
	struct scram_secret secret = vector_secret();
	struct scram_client client = {0};
	struct scram_keys keys;
	struct buffer out = {0};

	(void)state;
	/*
	 * Set the nonce of the vector, which is not of our form, as if client-first had been
	 * written.
	 */
	buffer_append(&client.nonce, VECTOR_CLIENT_NONCE, strlen(VECTOR_CLIENT_NONCE));
	buffer_append(&client.auth_message, VECTOR_CLIENT_FIRST_BARE,
		strlen(VECTOR_CLIENT_FIRST_BARE));

	assert_int_equal(scram_client_challenge(
				 &client, VECTOR_SERVER_FIRST, strlen(VECTOR_SERVER_FIRST)),
		SCRAM_GOOD);
	assert_int_equal(client.iterations, 4096);
	assert_int_equal(client.salt_length, secret.salt_length);
	assert_memory_equal(client.salt, secret.salt, secret.salt_length);
	assert_true(scram_derive(
		"pencil", client.salt, client.salt_length, client.iterations, &keys));
	assert_int_equal(scram_client_answer(&client, &keys, &out), SCRAM_GOOD);
	assert_text(&out, VECTOR_CLIENT_FINAL);
	assert_int_equal(
		scram_client_verify(&client, VECTOR_SERVER_FINAL, strlen(VECTOR_SERVER_FINAL)),
		SCRAM_GOOD);
	scram_client_free(&client);
	buffer_free(&out);
}

static void test_server_side_of_the_vector(void **state)
{
	struct scram_secret secret = vector_secret();
	struct scram_server server = {0};
	uint8_t client_key[SCRAM_KEY_SIZE];
	struct scram_keys keys;
	struct buffer out = {0};

	(void)state;
	/*
	 * Set the state after a first step with the vector's nonce, which is not of our form.
	 */
	buffer_append(&server.gs2_header, "n,,", 3);
	buffer_append(&server.nonce, VECTOR_NONCE, strlen(VECTOR_NONCE));
	buffer_append(&server.auth_message, VECTOR_CLIENT_FIRST_BARE "," VECTOR_SERVER_FIRST,
		strlen(VECTOR_CLIENT_FIRST_BARE "," VECTOR_SERVER_FIRST));

	assert_int_equal(
		scram_server_final(&server, VECTOR_CLIENT_FINAL, strlen(VECTOR_CLIENT_FINAL),
			secret.stored_key, secret.server_key, client_key, &out),
		SCRAM_GOOD);
	assert_text(&out, VECTOR_SERVER_FINAL);
	/* The proof contained the client key: it logs in to a server with the same secret. */
	assert_true(scram_derive(
		"pencil", secret.salt, secret.salt_length, secret.iterations, &keys));
	assert_memory_equal(client_key, keys.client_key, SCRAM_KEY_SIZE);
	scram_server_free(&server);
	buffer_free(&out);
}

/* --- Both sides against each other ----------------------------------------------------------- */

struct exchange {
	struct scram_client client;
	struct scram_server server;
	struct buffer client_first, server_first, client_final, server_final;
	uint8_t client_key[SCRAM_KEY_SIZE];
};

static void end_exchange(struct exchange *exchange)
{
	scram_client_free(&exchange->client);
	scram_server_free(&exchange->server);
	buffer_free(&exchange->client_first);
	buffer_free(&exchange->server_first);
	buffer_free(&exchange->client_final);
	buffer_free(&exchange->server_final);
}

/*
 * The client logs in with `typed` at a server that stores the keys `stored`, which may be
 * NULL.
 */
static enum scram_result run_exchange(struct exchange *exchange, const struct scram_keys *typed,
	const struct scram_keys *stored)
{
	assert_int_equal(
		scram_client_first(&exchange->client, client_random, &exchange->client_first),
		SCRAM_GOOD);
	assert_int_equal(
		scram_server_first(&exchange->server, (const char *)exchange->client_first.data,
			exchange->client_first.length, server_random, salt, sizeof(salt), 10,
			&exchange->server_first),
		SCRAM_GOOD);
	assert_int_equal(scram_client_challenge(&exchange->client,
				 (const char *)exchange->server_first.data,
				 exchange->server_first.length),
		SCRAM_GOOD);
	assert_int_equal(scram_client_answer(&exchange->client, typed, &exchange->client_final),
		SCRAM_GOOD);
	return scram_server_final(&exchange->server, (const char *)exchange->client_final.data,
		exchange->client_final.length, stored != NULL ? stored->stored_key : NULL,
		stored != NULL ? stored->server_key : NULL, exchange->client_key,
		&exchange->server_final);
}

static void test_right_password_is_accepted_and_the_server_signature_matches(void **state)
{
	struct exchange exchange = {0};
	struct scram_keys keys;

	(void)state;
	assert_true(scram_derive("right", salt, sizeof(salt), 10, &keys));
	assert_int_equal(run_exchange(&exchange, &keys, &keys), SCRAM_GOOD);
	assert_text(&exchange.client_first, "n,,n=,r=" CLIENT_NONCE);
	assert_text(
		&exchange.server_first, "r=" CLIENT_NONCE SERVER_NONCE ",s=" SALT_TEXT ",i=10");
	assert_memory_equal(exchange.client_key, keys.client_key, SCRAM_KEY_SIZE);
	assert_int_equal(
		scram_client_verify(&exchange.client, (const char *)exchange.server_final.data,
			exchange.server_final.length),
		SCRAM_GOOD);
	end_exchange(&exchange);
}

static void test_wrong_password_is_refused_without_a_message(void **state)
{
	struct exchange exchange = {0};
	struct scram_keys right, wrong;

	(void)state;
	assert_true(scram_derive("right", salt, sizeof(salt), 10, &right));
	assert_true(scram_derive("wrong", salt, sizeof(salt), 10, &wrong));
	assert_int_equal(run_exchange(&exchange, &wrong, &right), SCRAM_REFUSED);
	assert_int_equal(exchange.server_final.length, 0);
	end_exchange(&exchange);
}

static void test_missing_user_is_refused_at_the_last_step(void **state)
{
	struct exchange exchange = {0};
	struct scram_keys keys;

	(void)state;
	assert_true(scram_derive("any", salt, sizeof(salt), 10, &keys));
	assert_int_equal(run_exchange(&exchange, &keys, NULL), SCRAM_REFUSED);
	assert_int_equal(exchange.server_final.length, 0);
	end_exchange(&exchange);
}

static void test_client_key_from_a_proof_logs_in_to_a_server_with_the_same_secret(void **state)
{
	struct exchange client_to_us = {0}, us_to_server = {0};
	struct scram_keys keys, passed = {0};

	(void)state;
	assert_true(scram_derive("right", salt, sizeof(salt), 10, &keys));
	assert_int_equal(run_exchange(&client_to_us, &keys, &keys), SCRAM_GOOD);
	/*
	 * The keys that we have: the client key from the proof, the server key from the
	 * secret.
	 */
	memcpy(passed.client_key, client_to_us.client_key, SCRAM_KEY_SIZE);
	memcpy(passed.server_key, keys.server_key, SCRAM_KEY_SIZE);
	assert_int_equal(run_exchange(&us_to_server, &passed, &keys), SCRAM_GOOD);
	assert_int_equal(scram_client_verify(&us_to_server.client,
				 (const char *)us_to_server.server_final.data,
				 us_to_server.server_final.length),
		SCRAM_GOOD);
	end_exchange(&client_to_us);
	end_exchange(&us_to_server);
}

static void test_server_that_does_not_know_the_secret_is_not_trusted(void **state)
{
	static const char *const answers[] = {"", "v=", "e=other-error",
		"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
		"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95A==", "V=", "x"};
	struct exchange exchange = {0};
	struct scram_keys keys;

	(void)state;
	assert_true(scram_derive("right", salt, sizeof(salt), 10, &keys));
	assert_int_equal(run_exchange(&exchange, &keys, &keys), SCRAM_GOOD);
	for (size_t i = 0; i < COUNT(answers); i++)
		assert_int_equal(
			scram_client_verify(&exchange.client, answers[i], strlen(answers[i])),
			SCRAM_REFUSED);
	end_exchange(&exchange);
}

static void test_channel_binding_data_is_part_of_the_exchange(void **state)
{
	static const struct scram_binding ours = {
		.type = "tls-server-end-point", .data = (const uint8_t *)"digest", .length = 6};
	static const struct scram_binding other = {
		.type = "tls-server-end-point", .data = (const uint8_t *)"DIGEST", .length = 6};
	struct scram_keys keys;

	(void)state;
	assert_true(scram_derive("right", salt, sizeof(salt), 10, &keys));
	{
		struct exchange exchange = {0};

		exchange.client.binding = ours;
		exchange.server.binding = ours;
		assert_int_equal(run_exchange(&exchange, &keys, &keys), SCRAM_GOOD);
		assert_text(
			&exchange.client_first, "p=tls-server-end-point,,n=,r=" CLIENT_NONCE);
		end_exchange(&exchange);
	}
	{
		struct exchange exchange = {0};

		exchange.client.binding = other;
		exchange.server.binding = ours;
		assert_int_equal(run_exchange(&exchange, &keys, &keys), SCRAM_REFUSED);
		end_exchange(&exchange);
	}
}

/* --- Hostile clients ------------------------------------------------------------------------- */

static enum scram_result give_first(
	struct scram_server *server, const char *message, size_t length)
{
	struct buffer out = {0};
	enum scram_result result = scram_server_first(
		server, message, length, server_random, salt, sizeof(salt), 4096, &out);

	buffer_free(&out);
	return result;
}

static enum scram_result try_first(const char *message, size_t length)
{
	struct scram_server server = {0};
	/* A copy of exactly that size, so that a read past its end is detected. */
	char *copy = malloc(length > 0 ? length : 1);
	enum scram_result result;

	memcpy(copy, message, length);
	result = give_first(&server, copy, length);
	scram_server_free(&server);
	free(copy);
	return result;
}

static void test_client_first_forms_that_are_accepted(void **state)
{
	static const char *const good[] = {
		"n,,n=,r=abc",
		"y,,n=,r=abc",
		"n,,n=user,r=abc",
		"n,,n=us=2Cer,r=!~=",
		"n,,n=,r=abc,x=ignored",
		"n,,n=,r=abc,x=1,Z=2,x=3",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_int_equal(try_first(good[i], strlen(good[i])), SCRAM_GOOD);
}

static void test_client_first_that_breaks_a_rule_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"n",
		"n,",
		"n,,",
		"n,,n=",
		"n,,n=,",
		"n,,n=,r",
		"n,,n=,r=", /* empty */
		"n,,r=abc", /* missing */
		"n,,n=user",
		"n,,r=abc,n=user", /* reordered */
		"n,,n=a,n=b,r=abc", /* doubled */
		"n,,n=,r=abc,r=abc",
		"n,,n=,r=abc,n=user",
		"n,,n=,r=abc,", /* nothing after the comma */
		"n,,n=,r=abc,x",
		"n,,n=,r=abc,x=",
		"n,,n=,r=abc,=y",
		"n,,n=,r=abc,1=y",
		"n,,n=,r=abc,xx=y",
		"n,,n=,r=abc,m=must",
		"n,,n=,r=abc,p=proof",
		"n,,m=must,n=,r=abc",
		"n,a=admin,n=,r=abc", /* an authorization identity */
		"n,a=,n=,r=abc",
		"n,,a=admin,n=,r=abc",
		"p=tls-server-end-point,,n=,r=abc", /* binding that was not offered */
		"p=tls-unique,,n=,r=abc",
		"p=,,n=,r=abc",
		"p,,n=,r=abc",
		"x,,n=,r=abc",
		"N,,n=,r=abc",
		",,n=,r=abc",
		"ny,,n=,r=abc",
		"n,,N=,r=abc",
		"n,,n=,R=abc",
		"n,,n=,r=a c",
		"n,,n=,r=a\x7f",
		"n,,n=,r=a\xc3\xa9",
		"n,,n=,r=a\n",
		" n,,n=,r=abc",
		"c=biws,r=abc,p=abc",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (try_first(bad[i], strlen(bad[i])) != SCRAM_REFUSED)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_int_equal(try_first("n,,n=\0,r=abc", 12), SCRAM_REFUSED);
	assert_int_equal(try_first("n,,n=,r=abc\0", 12), SCRAM_REFUSED);
}

static void test_long_client_first_is_refused(void **state)
{
	static char message[64 * 1024];
	static const size_t lengths[] = {SCRAM_MAX_NONCE + 1, 5000, 60000};

	(void)state;
	memset(message, 'a', sizeof(message));
	memcpy(message, "n,,n=,r=", 8);
	assert_int_equal(try_first(message, 8 + SCRAM_MAX_NONCE), SCRAM_GOOD);
	for (size_t i = 0; i < COUNT(lengths); i++)
		assert_int_equal(try_first(message, 8 + lengths[i]), SCRAM_REFUSED);
	/* A name may be long, but the message may not. */
	memcpy(message, "n,,n=aaaaaaaa", 13);
	memcpy(message + SCRAM_MAX_MESSAGE - 6, ",r=abc", 6);
	assert_int_equal(try_first(message, SCRAM_MAX_MESSAGE), SCRAM_GOOD);
	memcpy(message + SCRAM_MAX_MESSAGE - 5, ",r=abc", 6);
	assert_int_equal(try_first(message, SCRAM_MAX_MESSAGE + 1), SCRAM_REFUSED);
}

static void test_second_client_first_is_refused(void **state)
{
	struct scram_server server = {0};

	(void)state;
	assert_int_equal(give_first(&server, "n,,n=,r=abc", 11), SCRAM_GOOD);
	assert_int_equal(give_first(&server, "n,,n=,r=abc", 11), SCRAM_REFUSED);
	scram_server_free(&server);
}

static enum scram_result try_final_after(const char *first, const char *message, size_t length)
{
	static const uint8_t key[SCRAM_KEY_SIZE] = {1};
	struct scram_server server = {0};
	uint8_t client_key[SCRAM_KEY_SIZE];
	struct buffer out = {0};
	char *copy = malloc(length > 0 ? length : 1);
	enum scram_result result;

	memcpy(copy, message, length);
	assert_int_equal(give_first(&server, first, strlen(first)), SCRAM_GOOD);
	result = scram_server_final(&server, copy, length, key, key, client_key, &out);
	assert_int_equal(out.length, 0);
	scram_server_free(&server);
	free(copy);
	return result;
}

static void test_client_final_that_breaks_a_rule_is_refused(void **state)
{
#define NONCE "abc" SERVER_NONCE
#define PROOF "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
	static const char *const bad[] = {
		"",
		"c",
		"c=",
		"c=biws",
		"c=biws,",
		"c=biws,r=" NONCE,
		"c=biws,r=" NONCE ",",
		"c=biws,r=" NONCE ",p",
		"c=biws,r=" NONCE ",p=",
		"c=biws,r=" NONCE ",p=AAAA",
		"c=biws,r=" NONCE ",p=" PROOF "AAAA",
		"c=biws,r=" NONCE ",p=" PROOF ",",
		"c=biws,r=" NONCE ",p=" PROOF ",x=y",
		"c=biws,r=" NONCE ",p=" PROOF ",p=" PROOF,
		"c=biws,r=" NONCE ",p= QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE",
		"c=,r=" NONCE ",p=" PROOF,
		"r=" NONCE ",p=" PROOF,
		"c=biws,p=" PROOF,
		"p=" PROOF,
		"r=" NONCE ",c=biws,p=" PROOF,
		"c=biws,p=" PROOF ",r=" NONCE,
		"c=biws,c=biws,r=" NONCE ",p=" PROOF,
		"c=biws,r=" NONCE ",r=" NONCE ",p=" PROOF,
		"c=biws,m=must,r=" NONCE ",p=" PROOF,
		"c=biws,r=" NONCE ",m=must,p=" PROOF,
		"c=biws,r=" NONCE ",x,p=" PROOF,
		"c=biws,r=,p=" PROOF,
		"c=biws,r=abc,p=" PROOF,
		"c=biws,r=" SERVER_NONCE ",p=" PROOF,
		"c=biws,r=" NONCE "A,p=" PROOF,
		"c=biws,r=Abc" SERVER_NONCE ",p=" PROOF,
		"c=eSws,r=" NONCE ",p=" PROOF, /* sent n before, sends y now */
		"c=biw=,r=" NONCE ",p=" PROOF,
		"c=cD10bHMtc2VydmVyLWVuZC1wb2ludCws,r=" NONCE ",p=" PROOF,
		/* Well-formed, but without a valid proof. */
		"c=biws,r=" NONCE ",p=" PROOF,
		"c=biws,r=" NONCE ",x=ignored,p=" PROOF,
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (try_final_after("n,,n=,r=abc", bad[i], strlen(bad[i])) != SCRAM_REFUSED)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_int_equal(try_final_after("y,,n=,r=abc", "c=biws,r=" NONCE ",p=" PROOF,
				 strlen("c=biws,r=" NONCE ",p=" PROOF)),
		SCRAM_REFUSED);
}

static void test_header_and_extensions_are_covered_by_the_proof(void **state)
{
	static const char first[] = "y,,n=,r=" CLIENT_NONCE;
	static const char without[] =
		"c=eSws,r=" CLIENT_NONCE SERVER_NONCE ",x=kept in the signature";
	struct scram_server server = {0};
	struct scram_client client = {0};
	struct buffer server_first = {0}, client_final = {0}, out = {0};
	uint8_t client_key[SCRAM_KEY_SIZE];
	struct scram_keys keys;

	(void)state;
	assert_true(scram_derive("right", salt, sizeof(salt), 10, &keys));
	assert_int_equal(scram_server_first(&server, first, strlen(first), server_random, salt,
				 sizeof(salt), 10, &server_first),
		SCRAM_GOOD);
	/* The client steps sign "c=biws,r=...", so replace that by this message. */
	buffer_append(&client.auth_message, first + 3, strlen(first) - 3);
	buffer_append(&client.auth_message, ",", 1);
	buffer_append(&client.auth_message, server_first.data, server_first.length);
	assert_memory_equal(
		client.auth_message.data, server.auth_message.data, server.auth_message.length);
	buffer_append(&client_final, without, strlen(without));
	buffer_append(&client_final, ",p=" PROOF, strlen(",p=" PROOF));
	assert_int_equal(scram_server_final(&server, (const char *)client_final.data,
				 client_final.length, keys.stored_key, keys.server_key,
				 client_key, &out),
		SCRAM_REFUSED);
	/* The whole message sent is signed. */
	buffer_append(&client.auth_message, ",", 1);
	buffer_append(&client.auth_message, without, strlen(without));
	assert_int_equal(client.auth_message.length, server.auth_message.length);
	assert_memory_equal(
		client.auth_message.data, server.auth_message.data, server.auth_message.length);
	scram_server_free(&server);
	scram_client_free(&client);
	buffer_free(&server_first);
	buffer_free(&client_final);
	buffer_free(&out);
}

static void test_final_without_first_is_refused(void **state)
{
	static const uint8_t key[SCRAM_KEY_SIZE];
	struct scram_server server = {0};
	uint8_t client_key[SCRAM_KEY_SIZE];
	struct buffer out = {0};

	(void)state;
	assert_int_equal(scram_server_final(&server, "c=biws,r=,p=" PROOF,
				 strlen("c=biws,r=,p=" PROOF), key, key, client_key, &out),
		SCRAM_REFUSED);
	assert_int_equal(scram_server_final(&server, "c=,r=,p=" PROOF, strlen("c=,r=,p=" PROOF),
				 key, key, client_key, &out),
		SCRAM_REFUSED);
	scram_server_free(&server);
}

static void test_proof_cannot_be_used_twice(void **state)
{
	struct exchange exchange = {0};
	struct scram_keys keys;

	(void)state;
	assert_true(scram_derive("right", salt, sizeof(salt), 10, &keys));
	assert_int_equal(run_exchange(&exchange, &keys, &keys), SCRAM_GOOD);
	assert_int_equal(
		scram_server_final(&exchange.server, (const char *)exchange.client_final.data,
			exchange.client_final.length, keys.stored_key, keys.server_key,
			exchange.client_key, &exchange.server_final),
		SCRAM_REFUSED);
	end_exchange(&exchange);
}

/* --- Hostile servers ------------------------------------------------------------------------- */

static enum scram_result try_challenge(const char *message, size_t length)
{
	struct scram_client client = {0};
	struct buffer out = {0};
	char *copy = malloc(length > 0 ? length : 1);
	enum scram_result result;

	memcpy(copy, message, length);
	assert_int_equal(scram_client_first(&client, client_random, &out), SCRAM_GOOD);
	result = scram_client_challenge(&client, copy, length);
	scram_client_free(&client);
	buffer_free(&out);
	free(copy);
	return result;
}

static void test_server_first_forms_that_are_accepted(void **state)
{
	static const char *const good[] = {
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096",
		"r=" CLIENT_NONCE "x,s=AA==,i=1",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=1000000",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096,x=ignored",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_int_equal(try_challenge(good[i], strlen(good[i])), SCRAM_GOOD);
}

static void test_server_first_that_breaks_a_rule_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"r=",
		"r=" CLIENT_NONCE "x",
		"r=" CLIENT_NONCE "x,s=c2FsdA==",
		"r=" CLIENT_NONCE "x,i=4096",
		"s=c2FsdA==,i=4096",
		"r=" CLIENT_NONCE "x,i=4096,s=c2FsdA==",
		"s=c2FsdA==,r=" CLIENT_NONCE "x,i=4096",
		"r=" CLIENT_NONCE "x,r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096,i=1",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096,",
		"m=must,r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096,m=must",
		"e=other-error",
		/* nonces */
		"r=,s=c2FsdA==,i=4096",
		"r=x,s=c2FsdA==,i=4096",
		"r=" CLIENT_NONCE ",s=c2FsdA==,i=4096", /* only the client's nonce */
		"r=" SERVER_NONCE CLIENT_NONCE ",s=c2FsdA==,i=4096",
		"r=" CLIENT_NONCE " ,s=c2FsdA==,i=4096",
		"r=" CLIENT_NONCE "\x80,s=c2FsdA==,i=4096",
		/* salts */
		"r=" CLIENT_NONCE "x,s=,i=4096",
		"r=" CLIENT_NONCE "x,s=!,i=4096",
		"r=" CLIENT_NONCE "x,s=c2FsdA,i=4096",
		"r=" CLIENT_NONCE "x,s=c2Fs dA==,i=4096",
		/* iterations */
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=0",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=-5",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=+5",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i= 5",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=5x",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=4294967297",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=18446744073709551617",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (try_challenge(bad[i], strlen(bad[i])) != SCRAM_REFUSED)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_int_equal(try_challenge("r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096\0",
				 strlen("r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096") + 1),
		SCRAM_REFUSED);
}

static void test_server_first_with_too_many_iterations_is_refused(void **state)
{
	static const char *const bad[] = {
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=1000001",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=30000000",
		"r=" CLIENT_NONCE "x,s=c2FsdA==,i=4294967295",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(
			try_challenge(bad[i], strlen(bad[i])), SCRAM_TOO_MANY_ITERATIONS);
}

static void test_long_server_nonce_is_refused(void **state)
{
	static const char rest[] = ",s=c2FsdA==,i=4096";
	static const size_t lengths[] = {
		100, 500, SCRAM_MAX_NONCE, SCRAM_MAX_NONCE + 1, 5000, 60000};
	static char message[64 * 1024];

	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		memset(message, 'a', sizeof(message));
		memcpy(message, "r=" CLIENT_NONCE, strlen("r=" CLIENT_NONCE));
		memcpy(message + 2 + lengths[i], rest, strlen(rest));
		assert_int_equal(try_challenge(message, 2 + lengths[i] + strlen(rest)),
			lengths[i] <= SCRAM_MAX_NONCE ? SCRAM_GOOD : SCRAM_REFUSED);
	}
}

static void test_long_server_salt_is_refused(void **state)
{
	static const uint8_t bytes[SCRAM_MAX_SALT + 1];
	char salt_text[BASE64_SIZE(sizeof(bytes))], message[1024];

	(void)state;
	for (size_t length = SCRAM_MAX_SALT; length <= SCRAM_MAX_SALT + 1; length++) {
		(void)base64_encode(bytes, length, salt_text, sizeof(salt_text));
		(void)snprintf(
			message, sizeof(message), "r=" CLIENT_NONCE "x,s=%s,i=1", salt_text);
		assert_int_equal(try_challenge(message, strlen(message)),
			length <= SCRAM_MAX_SALT ? SCRAM_GOOD : SCRAM_REFUSED);
	}
}

static void test_client_steps_out_of_order_are_refused(void **state)
{
	static const char challenge[] = "r=" CLIENT_NONCE "x,s=c2FsdA==,i=4096";
	struct scram_client client = {0};
	struct scram_keys keys = {0};
	struct buffer out = {0};

	(void)state;
	/* A client that has not sent its answer would compare with an all-zero signature. */
	assert_int_equal(scram_client_verify(
				 &client, "v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", 46),
		SCRAM_REFUSED);
	assert_int_equal(scram_client_answer(&client, &keys, &out), SCRAM_REFUSED);
	assert_int_equal(
		scram_client_challenge(&client, challenge, strlen(challenge)), SCRAM_REFUSED);
	assert_int_equal(scram_client_first(&client, client_random, &out), SCRAM_GOOD);
	assert_int_equal(scram_client_answer(&client, &keys, &out), SCRAM_REFUSED);
	assert_int_equal(
		scram_client_challenge(&client, challenge, strlen(challenge)), SCRAM_GOOD);
	assert_int_equal(
		scram_client_challenge(&client, challenge, strlen(challenge)), SCRAM_REFUSED);
	assert_int_equal(scram_client_verify(
				 &client, "v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", 46),
		SCRAM_REFUSED);
	assert_int_equal(scram_client_answer(&client, &keys, &out), SCRAM_GOOD);
	assert_int_equal(scram_client_answer(&client, &keys, &out), SCRAM_REFUSED);
	scram_client_free(&client);
	buffer_free(&out);
}

/* --- Mutated messages --------------------------------------------------------------------- */

/* Valid messages with bytes changed, cut or repeated: no crash, and never accepted. */
static void test_changed_messages_are_never_accepted(void **state)
{
	struct exchange exchange = {0};
	struct scram_keys keys;
	uint32_t random = 1;

	(void)state;
	assert_true(scram_derive("right", salt, sizeof(salt), 10, &keys));
	assert_int_equal(run_exchange(&exchange, &keys, &keys), SCRAM_GOOD);
	for (int i = 0; i < 20000; i++) {
		struct scram_server server = {0};
		struct buffer server_first = {0}, server_final = {0};
		uint8_t client_key[SCRAM_KEY_SIZE];
		size_t length = exchange.client_final.length;
		char *changed = malloc(length);

		memcpy(changed, exchange.client_final.data, length);
		random = random * 1664525 + 1013904223;
		changed[(random >> 8) % length] ^= (char)(1 + (random >> 24) % 255);
		if (i % 3 == 0)
			length = (random >> 4) % length;
		(void)scram_server_first(&server, (const char *)exchange.client_first.data,
			exchange.client_first.length, server_random, salt, sizeof(salt), 10,
			&server_first);
		assert_int_equal(scram_server_final(&server, changed, length, keys.stored_key,
					 keys.server_key, client_key, &server_final),
			SCRAM_REFUSED);
		scram_server_free(&server);
		buffer_free(&server_first);
		buffer_free(&server_final);

		/* The same bytes as each of the other messages. */
		(void)try_first(changed, length);
		(void)try_challenge(changed, length);
		free(changed);
	}
	end_exchange(&exchange);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_of_the_vector_are_derived),
		cmocka_unit_test(test_password_is_prepared_before_derivation),
		cmocka_unit_test(test_derivation_refuses_arguments_out_of_range),
		cmocka_unit_test(test_derivation_is_pbkdf2),
		cmocka_unit_test(test_slices_of_a_derivation_give_the_keys_of_the_whole),
		cmocka_unit_test(test_secret_with_too_many_iterations_is_not_usable),
		cmocka_unit_test(test_malformed_secrets_are_clear_passwords),
		cmocka_unit_test(test_salt_of_a_secret_is_capped),
		cmocka_unit_test(test_client_side_of_the_vector),
		cmocka_unit_test(test_server_side_of_the_vector),
		cmocka_unit_test(
			test_right_password_is_accepted_and_the_server_signature_matches),
		cmocka_unit_test(test_wrong_password_is_refused_without_a_message),
		cmocka_unit_test(test_missing_user_is_refused_at_the_last_step),
		cmocka_unit_test(
			test_client_key_from_a_proof_logs_in_to_a_server_with_the_same_secret),
		cmocka_unit_test(test_server_that_does_not_know_the_secret_is_not_trusted),
		cmocka_unit_test(test_channel_binding_data_is_part_of_the_exchange),
		cmocka_unit_test(test_client_first_forms_that_are_accepted),
		cmocka_unit_test(test_client_first_that_breaks_a_rule_is_refused),
		cmocka_unit_test(test_long_client_first_is_refused),
		cmocka_unit_test(test_second_client_first_is_refused),
		cmocka_unit_test(test_client_final_that_breaks_a_rule_is_refused),
		cmocka_unit_test(test_header_and_extensions_are_covered_by_the_proof),
		cmocka_unit_test(test_final_without_first_is_refused),
		cmocka_unit_test(test_proof_cannot_be_used_twice),
		cmocka_unit_test(test_server_first_forms_that_are_accepted),
		cmocka_unit_test(test_server_first_that_breaks_a_rule_is_refused),
		cmocka_unit_test(test_server_first_with_too_many_iterations_is_refused),
		cmocka_unit_test(test_long_server_nonce_is_refused),
		cmocka_unit_test(test_long_server_salt_is_refused),
		cmocka_unit_test(test_client_steps_out_of_order_are_refused),
		cmocka_unit_test(test_changed_messages_are_never_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
