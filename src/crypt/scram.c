/* SPDX-License-Identifier: ISC */
#include "crypt/scram.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <string.h>

#include "crypt/digest.h"
#include "crypt/scram_parts.h"

bool scram_hmac(const uint8_t key[SCRAM_KEY_SIZE], const void *data, size_t length,
	uint8_t out[SCRAM_KEY_SIZE])
{
	return digest_hmac_sha256(key, data, length, out);
}

bool scram_sha256(const uint8_t in[SCRAM_KEY_SIZE], uint8_t out[SCRAM_KEY_SIZE])
{
	const struct digest_piece piece = {in, SCRAM_KEY_SIZE};

	return digest_of(DIGEST_SHA256, &piece, 1, out);
}

void scram_exclusive_or(uint8_t out[SCRAM_KEY_SIZE], const uint8_t with[SCRAM_KEY_SIZE])
{
	for (size_t i = 0; i < SCRAM_KEY_SIZE; i++)
		out[i] ^= with[i];
}

/* The text before the separator; `text` moves past the separator. */
static bool split_off(const char **text, char separator, struct scram_span *out)
{
	const char *end = strchr(*text, separator);

	if (end == NULL)
		return false;
	*out = (struct scram_span){.at = *text, .length = (size_t)(end - *text)};
	*text = end + 1;
	return true;
}

bool scram_secret_parse(const char *text, struct scram_secret *out)
{
	static const char prefix[] = SCRAM_MECHANISM "$";
	struct scram_secret secret = {0};
	struct scram_span iterations, salt, stored_key, server_key;
	bool good;

	if (strncmp(text, prefix, strlen(prefix)) != 0)
		return false;
	text += strlen(prefix);
	if (!split_off(&text, ':', &iterations) || !split_off(&text, '$', &salt) ||
		!split_off(&text, ':', &stored_key))
		return false;
	server_key = (struct scram_span){.at = text, .length = strlen(text)};

	good = scram_read_number(iterations, INT_MAX, &secret.iterations) &&
		scram_read_salt(salt, secret.salt, &secret.salt_length) &&
		scram_read_key(stored_key, secret.stored_key) &&
		scram_read_key(server_key, secret.server_key);
	if (good)
		*out = secret;
	explicit_bzero(&secret, sizeof(secret));
	return good;
}

bool scram_secret_is_usable(const struct scram_secret *secret)
{
	return secret->iterations <= SCRAM_MAX_ITERATIONS;
}

bool scram_secret_accepts(const struct scram_secret *secret, const struct scram_keys *keys)
{
	return CRYPTO_memcmp(secret->server_key, keys->server_key, SCRAM_KEY_SIZE) == 0;
}

bool scram_secret_has_client_key(
	const struct scram_secret *secret, const uint8_t client_key[SCRAM_KEY_SIZE])
{
	uint8_t stored_key[SCRAM_KEY_SIZE];
	const bool good = scram_sha256(client_key, stored_key) &&
		CRYPTO_memcmp(stored_key, secret->stored_key, SCRAM_KEY_SIZE) == 0;

	explicit_bzero(stored_key, sizeof(stored_key));
	return good;
}
