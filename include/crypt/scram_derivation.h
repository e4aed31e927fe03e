/* SPDX-License-Identifier: ISC */
/*
 * Derives SCRAM keys from a password in slices: salted password by PBKDF2 with HMAC-SHA-256
 * (RFC 8018 section 5.2, RFC 5802 section 3 `Hi`), then the three keys.
 *
 * A derivation takes time proportional to the number of iterations, which a peer chooses. The
 * caller runs as many iterations at a time as it likes, on any thread, and may stop between
 * two slices.
 */
#ifndef PGUSHER_CRYPT_SCRAM_DERIVATION_H
#define PGUSHER_CRYPT_SCRAM_DERIVATION_H

#include "crypt/scram.h"

struct scram_derivation;

enum scram_progress {
	SCRAM_DERIVATION_UNFINISHED,
	SCRAM_DERIVATION_DONE,
	SCRAM_DERIVATION_FAILED, /* out of memory */
};

/*
 * Begin a derivation, with SASLprep of the password, which takes time proportional to its
 * length. Password and salt are not kept. Returns NULL when out of memory or if an argument is
 * out of range: iterations are 1 to SCRAM_MAX_ITERATIONS.
 */
struct scram_derivation *scram_derivation_new(
	const char *password, const uint8_t *salt, size_t salt_length, uint32_t iterations);

/* Run at most this many iterations (at least 1). `out` has the keys if the result is DONE. */
enum scram_progress scram_derivation_run(
	struct scram_derivation *derivation, uint32_t most, struct scram_keys *out);

/* Wipe and free it, in any state. NULL is allowed. */
void scram_derivation_free(struct scram_derivation *derivation);

#endif
