/* SPDX-License-Identifier: ISC */
/*
 * Digests of a sequence of pieces, and HMAC-SHA-256. Computed by OpenSSL, each algorithm
 * looked up once: a lookup takes longer than a digest of a short text, and HMAC() does two
 * lookups at each call.
 */
#ifndef PGUSHER_CRYPT_DIGEST_H
#define PGUSHER_CRYPT_DIGEST_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum digest_kind { DIGEST_MD5, DIGEST_SHA256, DIGEST_KINDS };

enum { MD5_SIZE = 16, SHA256_SIZE = 32 };

struct digest_piece {
	const void *data;
	size_t length;
};

/*
 * Compute the digest of the pieces, concatenated: MD5_SIZE or SHA256_SIZE bytes to `out`.
 * Returns false when out of memory or if the crypto library refuses the algorithm, as a FIPS
 * policy does with MD5.
 */
bool digest_of(
	enum digest_kind kind, const struct digest_piece *pieces, size_t count, uint8_t *out);

/* HMAC of RFC 2104, for keys of exactly the digest's size. Returns false when out of memory. */
bool digest_hmac_sha256(const uint8_t key[SHA256_SIZE], const void *data, size_t length,
	uint8_t out[SHA256_SIZE]);

/* Returns SHA-256 for functions of OpenSSL that take a digest; it is never freed. */
const EVP_MD *digest_sha256(void);

#endif
