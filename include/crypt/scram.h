/* SPDX-License-Identifier: ISC */
/*
 * SCRAM-SHA-256 (RFC 5802, RFC 7677), both sides, as steps from message to message.
 *
 * Bytes in, bytes out: no sockets, no clock, and random numbers are handed in. The messages are
 * SCRAM's own, without the SASL messages of the protocol around them. The peer's are hostile:
 * they need no NUL, may hold any byte, and each step either succeeds or ends the exchange.
 *
 * scram_derive() is the one slow function. It touches nothing but its arguments and may run on
 * a helper thread.
 *
 * Channel binding: an exchange is bound by setting `binding` before its first step; the bytes
 * are then part of the c= attribute. Without it the client side says "n,," and the server side
 * refuses "p=...".
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
	SCRAM_NONCE_SIZE = 18, /* random bytes of ours; 24 characters in messages */
	SCRAM_SALT_SIZE = 16, /* of salts that we choose ourselves */
	SCRAM_MAX_SALT = 256,
	SCRAM_MAX_NONCE = 1024, /* of a peer, in characters */
	SCRAM_MAX_MESSAGE = 8 * 1024, /* of a peer; longer ones are refused unread */
	SCRAM_MAX_ITERATIONS = 1000000, /* that we do for a server */
};

enum scram_result { SCRAM_GOOD, SCRAM_REFUSED, SCRAM_NO_MEMORY };

/* Everything that follows from a password, a salt and an iteration count. Wipe it. */
struct scram_keys {
	uint8_t client_key[SCRAM_KEY_SIZE];
	uint8_t stored_key[SCRAM_KEY_SIZE];
	uint8_t server_key[SCRAM_KEY_SIZE];
};

/* What a server stores: SCRAM-SHA-256$ITERATIONS:SALT$STOREDKEY:SERVERKEY */
struct scram_secret {
	uint32_t iterations;
	size_t salt_length;
	uint8_t salt[SCRAM_MAX_SALT];
	uint8_t stored_key[SCRAM_KEY_SIZE];
	uint8_t server_key[SCRAM_KEY_SIZE];
};

/* Channel binding data (RFC 5056), for both sides; not copied. */
struct scram_binding {
	const char *type; /* "tls-server-end-point" */
	const uint8_t *data;
	size_t length;
};

/* Read a stored secret; false: the text is something else (then it is a clear password). */
bool scram_secret_parse(const char *text, struct scram_secret *out);

/*
 * Derive the keys, SASLprep included. Takes time in proportion to iterations (1 or more, cap a
 * peer's). False: no memory, or arguments out of range.
 */
bool scram_derive(const char *password, const uint8_t *salt, size_t salt_length,
	uint32_t iterations, struct scram_keys *out);

/* Do these keys, derived from a password with the secret's salt, fit the secret? */
bool scram_secret_accepts(const struct scram_secret *secret, const struct scram_keys *keys);

/* Is this the client key behind the secret's stored key? */
bool scram_secret_has_client_key(
	const struct scram_secret *secret, const uint8_t client_key[SCRAM_KEY_SIZE]);

/* --- As a server, towards clients --------------------------------------------------------- */

/* Zero it before use. The first two members are the caller's to set, the rest is private. */
struct scram_server {
	struct scram_binding binding; /* type NULL: none */
	/*
	 * Binding was offered, so that a client which says that it was not has been lied to. RFC 5802
	 * section 6
	 */
	bool offers_binding;
	struct buffer gs2_header; /* the client's, as it came */
	struct buffer auth_message; /* so far: client-first-bare "," server-first */
	struct buffer nonce; /* both halves, as characters */
};

/*
 * Take client-first, write server-first to out. The salt and iteration count are those of the
 * user's secret, or made up for a user who has none. REFUSED: the message breaks a rule.
 */
enum scram_result scram_server_first(struct scram_server *server, const char *message,
	size_t length, const uint8_t nonce[SCRAM_NONCE_SIZE], const uint8_t *salt,
	size_t salt_length, uint32_t iterations, struct buffer *out);

/*
 * Take client-final, check the proof, write server-final to out. On GOOD client_key_out holds
 * the key that the client proved. stored_key and server_key NULL: there is no such user, do the
 * same work and refuse.
 */
enum scram_result scram_server_final(struct scram_server *server, const char *message,
	size_t length, const uint8_t stored_key[SCRAM_KEY_SIZE],
	const uint8_t server_key[SCRAM_KEY_SIZE], uint8_t client_key_out[SCRAM_KEY_SIZE],
	struct buffer *out);

/* Free what the exchange holds, at any point of it; usable again afterwards. */
void scram_server_free(struct scram_server *server);

/* --- As a client, towards servers --------------------------------------------------------- */

/* Zero it before use. */
struct scram_client {
	struct scram_binding binding; /* type NULL: none, "n,," */

	/* Valid after scram_client_challenge(). */
	uint32_t iterations; /* 1 to SCRAM_MAX_ITERATIONS */
	size_t salt_length;
	uint8_t salt[SCRAM_MAX_SALT];

	/* Private. */
	struct buffer auth_message; /* so far: client-first-bare, then "," server-first */
	struct buffer nonce; /* ours, then the server's, as characters */
	uint8_t server_signature[SCRAM_KEY_SIZE];
	bool answered;
};

/* Write client-first to out. GOOD or NO_MEMORY. The user name in it is empty, as in libpq. */
enum scram_result scram_client_first(
	struct scram_client *client, const uint8_t nonce[SCRAM_NONCE_SIZE], struct buffer *out);

/*
 * Take server-first. GOOD: iterations and salt are known, derive the keys. REFUSED: the message
 * breaks a rule or asks for more than the limits above.
 */
enum scram_result scram_client_challenge(
	struct scram_client *client, const char *message, size_t length);

/* Write client-final to out. Of the keys only client_key and server_key are read. */
enum scram_result scram_client_answer(
	struct scram_client *client, const struct scram_keys *keys, struct buffer *out);

/* Take server-final. GOOD: the server knows the secret too; REFUSED: do not trust it. */
enum scram_result scram_client_verify(
	struct scram_client *client, const char *message, size_t length);

void scram_client_free(struct scram_client *client);

#endif
