/* SPDX-License-Identifier: ISC */
/*
 * PKCS5_PBKDF2_HMAC() of OpenSSL cannot be interrupted. This one can, and needs fewer copies of
 * digest states: the states behind the first block of the inner and the outer digest, which
 * depend on the password only, are computed once.
 */
#include "crypt/scram_derivation.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "crypt/digest.h"
#include "crypt/saslprep.h"
#include "crypt/scram_parts.h"

enum { BLOCK_SIZE = 64, INNER = 0x36, OUTER = 0x5c };

struct scram_derivation {
	EVP_MD_CTX *inner, *outer; /* behind the key; copied for each HMAC */
	EVP_MD_CTX *running;
	uint32_t left; /* iterations */
	uint8_t last[SCRAM_KEY_SIZE]; /* U of the last iteration */
	uint8_t salted[SCRAM_KEY_SIZE]; /* XOR of all of them so far */
};

/* Make the state of a digest behind the key of an HMAC, which fills one block. RFC 2104 */
static EVP_MD_CTX *begin_digest(const uint8_t key[BLOCK_SIZE], uint8_t with)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	uint8_t pad[BLOCK_SIZE];
	bool good;

	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] = key[i] ^ with;
	good = context && EVP_DigestInit_ex(context, digest_sha256(), NULL) == 1 &&
		EVP_DigestUpdate(context, pad, sizeof(pad)) == 1;
	explicit_bzero(pad, sizeof(pad));
	if (good)
		return context;
	EVP_MD_CTX_free(context);
	return NULL;
}

static bool set_password(struct scram_derivation *derivation, const char *prepared)
{
	const size_t length = strlen(prepared);
	const struct digest_piece piece = {prepared, length};
	uint8_t key[BLOCK_SIZE] = {0};

	if (length <= sizeof(key))
		memcpy(key, prepared, length);
	else if (!digest_of(DIGEST_SHA256, &piece, 1, key))
		return false;
	derivation->inner = begin_digest(key, INNER);
	derivation->outer = begin_digest(key, OUTER);
	derivation->running = EVP_MD_CTX_new();
	explicit_bzero(key, sizeof(key));
	return derivation->inner && derivation->outer && derivation->running;
}

/* The HMAC of the data with the password as its key. */
static bool run_hmac(struct scram_derivation *derivation, const void *data, size_t length,
	uint8_t out[SCRAM_KEY_SIZE])
{
	EVP_MD_CTX *running = derivation->running;

	return EVP_MD_CTX_copy_ex(running, derivation->inner) == 1 &&
		EVP_DigestUpdate(running, data, length) == 1 &&
		EVP_DigestFinal_ex(running, out, NULL) == 1 &&
		EVP_MD_CTX_copy_ex(running, derivation->outer) == 1 &&
		EVP_DigestUpdate(running, out, SCRAM_KEY_SIZE) == 1 &&
		EVP_DigestFinal_ex(running, out, NULL) == 1;
}

/* U1: the salt is followed by the number of the block of output, of which there is one. */
static bool run_first(
	struct scram_derivation *derivation, const uint8_t *salt, size_t salt_length)
{
	static const uint8_t block_number[4] = {0, 0, 0, 1};
	uint8_t text[SCRAM_MAX_SALT + sizeof(block_number)];

	memcpy(text, salt, salt_length);
	memcpy(text + salt_length, block_number, sizeof(block_number));
	if (!run_hmac(derivation, text, salt_length + sizeof(block_number), derivation->last))
		return false;
	memcpy(derivation->salted, derivation->last, SCRAM_KEY_SIZE);
	derivation->left--;
	return true;
}

struct scram_derivation *scram_derivation_new(
	const char *password, const uint8_t *salt, size_t salt_length, uint32_t iterations)
{
	struct scram_derivation *derivation;
	char *prepared;
	bool good;

	if (iterations == 0 || iterations > SCRAM_MAX_ITERATIONS ||
		salt_length > SCRAM_MAX_SALT)
		return NULL;
	prepared = saslprep(password);
	if (!prepared)
		return NULL;
	derivation = calloc(1, sizeof(*derivation));
	good = derivation && set_password(derivation, prepared);
	explicit_bzero(prepared, strlen(prepared));
	free(prepared);
	if (good) {
		derivation->left = iterations;
		good = run_first(derivation, salt, salt_length);
	}
	if (good)
		return derivation;
	scram_derivation_free(derivation);
	return NULL;
}

/* RFC 5802 section 3: ClientKey, StoredKey and ServerKey from SaltedPassword. */
static bool make_keys(const uint8_t salted[SCRAM_KEY_SIZE], struct scram_keys *out)
{
	static const char client_label[] = "Client Key", server_label[] = "Server Key";

	return scram_hmac(salted, client_label, strlen(client_label), out->client_key) &&
		scram_sha256(out->client_key, out->stored_key) &&
		scram_hmac(salted, server_label, strlen(server_label), out->server_key);
}

enum scram_progress scram_derivation_run(
	struct scram_derivation *derivation, uint32_t most, struct scram_keys *out)
{
	for (; most > 0 && derivation->left > 0; most--, derivation->left--) {
		if (!run_hmac(derivation, derivation->last, SCRAM_KEY_SIZE, derivation->last))
			return SCRAM_DERIVATION_FAILED;
		scram_exclusive_or(derivation->salted, derivation->last);
	}
	if (derivation->left > 0)
		return SCRAM_DERIVATION_UNFINISHED;
	return make_keys(derivation->salted, out) ? SCRAM_DERIVATION_DONE
						  : SCRAM_DERIVATION_FAILED;
}

void scram_derivation_free(struct scram_derivation *derivation)
{
	if (!derivation)
		return;
	/* OpenSSL wipes the states of digests. */
	EVP_MD_CTX_free(derivation->inner);
	EVP_MD_CTX_free(derivation->outer);
	EVP_MD_CTX_free(derivation->running);
	explicit_bzero(derivation, sizeof(*derivation));
	free(derivation);
}

bool scram_derive(const char *password, const uint8_t *salt, size_t salt_length,
	uint32_t iterations, struct scram_keys *out)
{
	struct scram_derivation *derivation =
		scram_derivation_new(password, salt, salt_length, iterations);
	const bool good = derivation &&
		scram_derivation_run(derivation, iterations, out) == SCRAM_DERIVATION_DONE;

	scram_derivation_free(derivation);
	return good;
}
