/* SPDX-License-Identifier: ISC */
/*
 * Hash for tables with keys chosen by peers: SipHash (OpenSSL's) with a secret key, so
 * that a peer cannot construct many names for one bucket.
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

/*
 * Set up with this key, which is copied. Returns false if OpenSSL has no SipHash or when out
 * of memory.
 */
bool keyed_hash_init(struct keyed_hash *hash, const uint8_t key[KEYED_HASH_KEY_SIZE]);

/* Hash the bytes. The context is reused for each call, so a hash belongs to one thread. */
uint64_t keyed_hash_of(struct keyed_hash *hash, const void *data, size_t length);

void keyed_hash_free(struct keyed_hash *hash);

#endif
