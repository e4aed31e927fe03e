/* SPDX-License-Identifier: ISC */
/*
 * Digests of a few runs of bytes, and HMAC-SHA-256. OpenSSL's, each looked up once: it takes longer
 * to find a digest than to compute one, and HMAC() finds two of them at each call.
 */
#ifndef PGUSHER_CRYPT_DIGEST_H
#define PGUSHER_CRYPT_DIGEST_H

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
 * The digest of the pieces in a row, MD5_SIZE or SHA256_SIZE bytes. False: no memory, or the
 * crypto library refuses this digest, as a FIPS policy does with MD5.
 */
bool digest_of(
	enum digest_kind kind, const struct digest_piece *pieces, size_t count, uint8_t *out);

/* RFC 2104, for keys that are as long as a digest. False: no memory. */
bool digest_hmac_sha256(const uint8_t key[SHA256_SIZE], const void *data, size_t length,
	uint8_t out[SHA256_SIZE]);

#endif
