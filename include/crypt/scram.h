/* SPDX-License-Identifier: ISC */
/*
 * SCRAM-SHA-256 (RFC 5802, RFC 7677), both sides, as steps from message to message.
 *
 * Pure computation: no sockets, no clock, and random numbers are passed in. The messages are
 * SCRAM's own, without the protocol's SASL messages around them. The peer's messages are not
 * trusted: they need no NUL and may hold any byte; each step either succeeds or ends the
 * exchange.
 *
 * scram_derive() is the only slow function; crypt/scram_derivation does the same in slices.
 *
 * Channel binding: set `binding` before the first step to bind the exchange; the data is then
 * part of the c= attribute. Without it the client side sends "n,," and the server side refuses
 * "p=...".
 */
#ifndef PGUSHER_CRYPT_SCRAM_H
#define PGUSHER_CRYPT_SCRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

#define SCRAM_MECHANISM "SCRAM-SHA-256"
#define SCRAM_MECHANISM_PLUS "SCRAM-SHA-256-PLUS"
#define SCRAM_BINDING_TYPE "tls-server-end-point" /* RFC 5929 section 4 */

enum {
	SCRAM_KEY_SIZE = 32,
	SCRAM_NONCE_SIZE = 18, /* random bytes that we draw; 24 characters in messages */
	SCRAM_SALT_SIZE = 16, /* of salts that we generate */
	SCRAM_MAX_SALT = 256,
	SCRAM_MAX_NONCE = 1024, /* of a peer, in characters */
	/* Of a peer, in bytes; longer ones are refused without parsing. */
	SCRAM_MAX_MESSAGE = 8 * 1024,
	/*
	 * Of a derivation, for whatever secret or server: about a second on a slow processor.
	 * PostgreSQL stores secrets with 4096 unless scram_iterations is set there.
	 */
	SCRAM_MAX_ITERATIONS = 1000000,
};

enum scram_result {
	SCRAM_GOOD,
	SCRAM_REFUSED,
	SCRAM_NO_MEMORY,
	SCRAM_TOO_MANY_ITERATIONS, /* a server demands more than SCRAM_MAX_ITERATIONS */
};

/* Everything derived from a password, a salt and an iteration count. The caller wipes it. */
struct scram_keys {
	uint8_t client_key[SCRAM_KEY_SIZE];
	uint8_t stored_key[SCRAM_KEY_SIZE];
	uint8_t server_key[SCRAM_KEY_SIZE];
};

/* A stored secret: SCRAM-SHA-256$ITERATIONS:SALT$STOREDKEY:SERVERKEY */
struct scram_secret {
	uint32_t iterations;
	size_t salt_length;
	uint8_t salt[SCRAM_MAX_SALT];
	uint8_t stored_key[SCRAM_KEY_SIZE];
	uint8_t server_key[SCRAM_KEY_SIZE];
};

/* Channel binding data (RFC 5056), for both sides; borrowed, not copied. */
struct scram_binding {
	const char *type; /* "tls-server-end-point" */
	const uint8_t *data;
	size_t length;
};

/*
 * Parse a stored secret. Returns false if the text is something else (then it is a clear-text
 * password).
 */
bool scram_secret_parse(const char *text, struct scram_secret *out);

/*
 * Whether the secret has at most SCRAM_MAX_ITERATIONS. A role of PostgreSQL may choose any
 * number for its own secret; one with more is not used.
 */
bool scram_secret_is_usable(const struct scram_secret *secret);

/*
 * Derive the keys in one go, including SASLprep of the password. Returns false when out of
 * memory or if an argument is out of range: iterations are 1 to SCRAM_MAX_ITERATIONS.
 */
bool scram_derive(const char *password, const uint8_t *salt, size_t salt_length,
	uint32_t iterations, struct scram_keys *out);

/* Whether these keys, derived from a password with the secret's salt, match the secret. */
bool scram_secret_accepts(const struct scram_secret *secret, const struct scram_keys *keys);

/* Whether this client key hashes to the secret's stored key. */
bool scram_secret_has_client_key(
	const struct scram_secret *secret, const uint8_t client_key[SCRAM_KEY_SIZE]);

/* --- Server side, for clients ------------------------------------------------------------- */

/* Zero it before use. The caller sets the first two members; the others are private. */
struct scram_server {
	struct scram_binding binding; /* type NULL: none */
	/*
	 * Whether binding was offered. A client that states it was not then proves that the
	 * offer was removed on the way. RFC 5802 section 6
	 */
	bool offers_binding;
	struct buffer gs2_header; /* the client's, unmodified */
	struct buffer auth_message; /* so far: client-first-bare "," server-first */
	struct buffer nonce; /* both halves, as characters */
};

/*
 * Process client-first and write server-first to `out`. Salt and iteration count are those of
 * the user's secret, or generated for a user that does not exist. REFUSED: the message is
 * invalid.
 */
enum scram_result scram_server_first(struct scram_server *server, const char *message,
	size_t length, const uint8_t nonce[SCRAM_NONCE_SIZE], const uint8_t *salt,
	size_t salt_length, uint32_t iterations, struct buffer *out);

/*
 * Process client-final, check the proof, write server-final to `out`. On GOOD, client_key_out
 * has the client key, which the proof contains. If stored_key and server_key are NULL, the
 * user does not exist: the same work is done, then the result is REFUSED.
 */
enum scram_result scram_server_final(struct scram_server *server, const char *message,
	size_t length, const uint8_t stored_key[SCRAM_KEY_SIZE],
	const uint8_t server_key[SCRAM_KEY_SIZE], uint8_t client_key_out[SCRAM_KEY_SIZE],
	struct buffer *out);

/* Wipe and free the exchange, in any state; it can be used again afterwards. */
void scram_server_free(struct scram_server *server);

/* --- Client side, for servers ------------------------------------------------------------- */

/* Zero it before use. */
struct scram_client {
	struct scram_binding binding; /* type NULL: none, "n,," */

	/* Valid after scram_client_challenge(). */
	uint32_t iterations; /* 1 to SCRAM_MAX_ITERATIONS, or those of a refused challenge */
	size_t salt_length;
	uint8_t salt[SCRAM_MAX_SALT];

	/* Private. */
	struct buffer auth_message; /* so far: client-first-bare, then "," server-first */
	struct buffer nonce; /* our nonce, then the server's, as characters */
	uint8_t server_signature[SCRAM_KEY_SIZE];
	bool answered;
};

/*
 * Write client-first to `out`. Returns GOOD or NO_MEMORY. Its user name is empty, as in libpq.
 */
enum scram_result scram_client_first(
	struct scram_client *client, const uint8_t nonce[SCRAM_NONCE_SIZE], struct buffer *out);

/*
 * Process server-first. GOOD: iterations and salt are set, so the keys can be derived.
 * REFUSED: the message is invalid or exceeds the limits above. TOO_MANY_ITERATIONS: the same,
 * and `iterations` has the number.
 */
enum scram_result scram_client_challenge(
	struct scram_client *client, const char *message, size_t length);

/* Write client-final to `out`. Of the keys only client_key and server_key are used. */
enum scram_result scram_client_answer(
	struct scram_client *client, const struct scram_keys *keys, struct buffer *out);

/* Check server-final. GOOD: the server knows the secret too. REFUSED: do not trust it. */
enum scram_result scram_client_verify(
	struct scram_client *client, const char *message, size_t length);

void scram_client_free(struct scram_client *client);

#endif
