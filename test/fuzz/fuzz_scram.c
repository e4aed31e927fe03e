/* SPDX-License-Identifier: ISC */
/*
 * Both sides of SCRAM, and stored secrets, against an arbitrary peer: the first byte selects
 * the side (s: we are the server, c: the client, x: a secret), then follow the peer's two
 * messages with a line feed between. Random numbers are fixed, so that a seed can be a valid
 * exchange.
 */
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypt/scram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t our_random[SCRAM_NONCE_SIZE] = "CLIENTCLIENTCLIENT";
static const uint8_t salt[SCRAM_SALT_SIZE] = "sixteen bytes...";

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* The keys of the password "pencil"; one iteration, since only the messages matter. */
static const struct scram_keys *keys(void)
{
	static struct scram_keys derived;
	static bool known;

	if (!known)
		known = scram_derive("pencil", salt, sizeof(salt), 1, &derived);
	require(known);
	return &derived;
}

/* A login succeeds only with the key that has the stored hash. */
static void check_proof(const uint8_t client_key[SCRAM_KEY_SIZE])
{
	uint8_t hash[SCRAM_KEY_SIZE];

	require(EVP_Digest(client_key, SCRAM_KEY_SIZE, hash, NULL, EVP_sha256(), NULL) == 1);
	require(memcmp(hash, keys()->stored_key, sizeof(hash)) == 0);
}

static void be_server(
	const char *first, size_t first_length, const char *final, size_t final_length)
{
	struct scram_server server = {0};
	uint8_t client_key[SCRAM_KEY_SIZE];
	struct buffer out;

	buffer_init(&out);
	if (scram_server_first(&server, first, first_length, our_random, salt, sizeof(salt), 1,
		    &out) == SCRAM_GOOD) {
		require(out.length > 0);
		if (scram_server_final(&server, final, final_length, keys()->stored_key,
			    keys()->server_key, client_key, &out) == SCRAM_GOOD)
			check_proof(client_key);
	}
	scram_server_free(&server);
	if (scram_server_first(&server, first, first_length, our_random, salt, sizeof(salt), 1,
		    &out) == SCRAM_GOOD)
		require(scram_server_final(&server, final, final_length, NULL, NULL, client_key,
				&out) != SCRAM_GOOD);
	scram_server_free(&server);
	buffer_free(&out);
}

static void be_client(
	const char *first, size_t first_length, const char *final, size_t final_length)
{
	struct scram_client client = {0};
	struct buffer out;

	buffer_init(&out);
	require(scram_client_first(&client, our_random, &out) == SCRAM_GOOD);
	if (scram_client_challenge(&client, first, first_length) == SCRAM_GOOD) {
		require(client.iterations >= 1 && client.iterations <= SCRAM_MAX_ITERATIONS);
		require(client.salt_length >= 1 && client.salt_length <= SCRAM_MAX_SALT);
		require(scram_client_answer(&client, keys(), &out) == SCRAM_GOOD);
		(void)scram_client_verify(&client, final, final_length);
	}
	scram_client_free(&client);
	buffer_free(&out);
}

static void read_secret(const char *data, size_t size)
{
	struct scram_secret secret;
	char *text = strndup(data, size);

	require(text != NULL);
	if (scram_secret_parse(text, &secret)) {
		require(secret.iterations >= 1 && secret.salt_length <= SCRAM_MAX_SALT);
		require(!scram_secret_accepts(&secret, keys()) ||
			memcmp(secret.stored_key, keys()->stored_key, SCRAM_KEY_SIZE) == 0 ||
			memcmp(secret.server_key, keys()->server_key, SCRAM_KEY_SIZE) == 0);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *first = (const char *)data + 1, *feed, *final;
	size_t length, rest;

	if (size == 0)
		return 0;
	length = size - 1;
	feed = memchr(first, '\n', length);
	final = feed ? feed + 1 : first + length;
	rest = (size_t)(first + length - final);
	if (feed)
		length = (size_t)(feed - first);
	if (data[0] == 's')
		be_server(first, length, final, rest);
	else if (data[0] == 'c')
		be_client(first, length, final, rest);
	else
		read_secret(first, length);
	return 0;
}
