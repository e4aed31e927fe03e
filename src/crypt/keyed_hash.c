/* SPDX-License-Identifier: ISC */
#include "crypt/keyed_hash.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <string.h>

bool keyed_hash_init(struct keyed_hash *hash, const uint8_t key[KEYED_HASH_KEY_SIZE])
{
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
	size_t size = sizeof(uint64_t);
	const OSSL_PARAM parameters[] = {
		OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
		OSSL_PARAM_construct_end(),
	};

	if (!mac)
		return false;
	hash->context = EVP_MAC_CTX_new(mac);
	EVP_MAC_free(mac);
	memcpy(hash->key, key, sizeof(hash->key));
	if (hash->context && EVP_MAC_CTX_set_params(hash->context, parameters))
		return true;
	EVP_MAC_CTX_free(hash->context);
	hash->context = NULL;
	return false;
}

uint64_t keyed_hash_of(struct keyed_hash *hash, const void *data, size_t length)
{
	uint64_t out = 0;
	size_t written;

	/* This fails only if OpenSSL is out of memory; then all such names share a bucket. */
	if (!EVP_MAC_init(hash->context, hash->key, sizeof(hash->key), NULL) ||
		!EVP_MAC_update(hash->context, data, length) ||
		!EVP_MAC_final(hash->context, (uint8_t *)&out, &written, sizeof(out)))
		return 0;
	return out;
}

void keyed_hash_free(struct keyed_hash *hash)
{
	EVP_MAC_CTX_free(hash->context);
	explicit_bzero(hash, sizeof(*hash));
}
