/* SPDX-License-Identifier: ISC */
/*
 * A hash for tables whose keys are chosen by peers: SipHash (OpenSSL's) with a key that nobody
 * outside knows, so that nobody can aim many names at one bucket.
 */
#ifndef PGUSHER_CRYPT_KEYED_HASH_H
#define PGUSHER_CRYPT_KEYED_HASH_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYED_HASH_KEY_SIZE = 16 };

struct keyed_hash {
	EVP_MAC_CTX *context;
	uint8_t key[KEYED_HASH_KEY_SIZE];
};

/* Start with this key; false when OpenSSL has no SipHash or no memory. */
bool keyed_hash_init(struct keyed_hash *hash, const uint8_t key[KEYED_HASH_KEY_SIZE]);

/* Hash the bytes. The context is kept and reused, so one hash serves one thread. */
uint64_t keyed_hash_of(struct keyed_hash *hash, const void *data, size_t length);

void keyed_hash_free(struct keyed_hash *hash);

#endif
