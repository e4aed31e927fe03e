/* SPDX-License-Identifier: ISC */
/*
 * Shared by the source files of crypt/scram only: parsing and building messages, which both
 * sides do, and key operations.
 *
 * The messages, with the names of RFC 5802 section 7 for their parts:
 *
 *	client-first  gs2-header client-first-bare    n,, n=,r=CNONCE
 *	server-first                                  r=CNONCE SNONCE,s=SALT,i=ITERATIONS
 *	client-final  without-proof ,p=PROOF          c=biws,r=CNONCE SNONCE,p=PROOF
 *	server-final                                  v=SIGNATURE
 *
 * The signed text is AuthMessage: client-first-bare, server-first and
 * client-final-without-proof, joined with commas. It is collected as messages are processed.
 *
 * Messages are parsed by a cursor over attributes, which knows its end and expects each
 * attribute at its place: missing, empty, repeated and reordered ones all fail in the same
 * way.
 */
#ifndef PGUSHER_CRYPT_SCRAM_PARTS_H
#define PGUSHER_CRYPT_SCRAM_PARTS_H

#include "crypt/scram.h"

/* --- src/crypt/scram_message.c: reading --------------------------------------------------- */

/* A part of a message; borrowed. */
struct scram_span {
	const char *at;
	size_t length;
};

struct scram_cursor {
	const char *at, *end;
};

struct scram_cursor scram_cursor_over(const char *message, size_t length);

/* Whether the length and bytes are those of a SCRAM message. */
bool scram_is_acceptable(const char *message, size_t length);

size_t scram_cursor_left(const struct scram_cursor *cursor);

/* Skip exactly this text. Returns false if the cursor is not at it. */
bool scram_cursor_skip(struct scram_cursor *cursor, const char *text);

/*
 * Read the value of the attribute expected next, such as `,r=`. Returns false for any other
 * one.
 */
bool scram_cursor_attribute(
	struct scram_cursor *cursor, const char *name, struct scram_span *value);

/* Skip extensions, up to the text `until` or, if that is NULL, to the end. */
bool scram_cursor_skip_extensions(struct scram_cursor *cursor, const char *until);

/* Check and decode values. Output is set on success only. */
bool scram_is_nonce(struct scram_span nonce);
bool scram_read_number(struct scram_span digits, uint32_t most, uint32_t *out);
bool scram_read_salt(struct scram_span text, uint8_t out[SCRAM_MAX_SALT], size_t *length);
bool scram_read_key(struct scram_span text, uint8_t out[SCRAM_KEY_SIZE]);

/* --- src/crypt/scram_message.c: writing --------------------------------------------------- */

/* Append to a message. Out of memory sets the buffer's `failed`. */
void scram_append_text(struct buffer *out, const char *text);
void scram_append_key(struct buffer *out, const uint8_t key[SCRAM_KEY_SIZE]);
void scram_append_nonce(struct buffer *out, const uint8_t nonce[SCRAM_NONCE_SIZE]);

/*
 * Append the c= value: the gs2-header followed by the channel binding data. Returns false if
 * together they are too long.
 */
bool scram_append_binding(struct buffer *out, const void *gs2_header, size_t header_length,
	const struct scram_binding *binding);

/* --- src/crypt/scram.c: keys -------------------------------------------------------------- */

/* Returns false when out of memory. */
bool scram_hmac(const uint8_t key[SCRAM_KEY_SIZE], const void *data, size_t length,
	uint8_t out[SCRAM_KEY_SIZE]);
bool scram_sha256(const uint8_t in[SCRAM_KEY_SIZE], uint8_t out[SCRAM_KEY_SIZE]);

void scram_exclusive_or(uint8_t out[SCRAM_KEY_SIZE], const uint8_t with[SCRAM_KEY_SIZE]);

#endif
