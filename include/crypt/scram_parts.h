/* SPDX-License-Identifier: ISC */
/*
 * What the bodies of crypt/scram have for one another, and nobody else: reading and writing of
 * messages, which both sides do, and what is done with keys.
 *
 * The messages, with the names that RFC 5802 section 7 gives their parts:
 *
 *	client-first  gs2-header client-first-bare    n,, n=,r=CNONCE
 *	server-first                                  r=CNONCE SNONCE,s=SALT,i=ITERATIONS
 *	client-final  without-proof ,p=PROOF          c=biws,r=CNONCE SNONCE,p=PROOF
 *	server-final                                  v=SIGNATURE
 *
 * What is signed is AuthMessage: client-first-bare, server-first and client-final-without-proof,
 * with commas between. It is gathered as the messages go by.
 *
 * Messages are read by a cursor over attributes, which knows its end and expects each attribute
 * in its place: missing, empty, doubled and reordered ones all fail the same way.
 */
#ifndef PGUSHER_CRYPT_SCRAM_PARTS_H
#define PGUSHER_CRYPT_SCRAM_PARTS_H

#include "crypt/scram.h"

/* --- src/crypt/scram_message.c: reading --------------------------------------------------- */

/* A part of a message, lent. */
struct scram_span {
	const char *at;
	size_t length;
};

struct scram_cursor {
	const char *at, *end;
};

struct scram_cursor scram_cursor_over(const char *message, size_t length);

/* May it be a message at all? */
bool scram_is_acceptable(const char *message, size_t length);

size_t scram_cursor_left(const struct scram_cursor *cursor);

/* Step over this very text. False: something else stands there. */
bool scram_cursor_skip(struct scram_cursor *cursor, const char *text);

/* The value of the attribute that must come now, such as `,r=`. False: another one does. */
bool scram_cursor_attribute(
	struct scram_cursor *cursor, const char *name, struct scram_span *value);

/* Step over extensions, up to the text `until` or, if that is NULL, the end. */
bool scram_cursor_skip_extensions(struct scram_cursor *cursor, const char *until);

/* Values that keep their rules. Output is set on success only. */
bool scram_is_nonce(struct scram_span nonce);
bool scram_read_number(struct scram_span digits, uint32_t most, uint32_t *out);
bool scram_read_salt(struct scram_span text, uint8_t out[SCRAM_MAX_SALT], size_t *length);
bool scram_read_key(struct scram_span text, uint8_t out[SCRAM_KEY_SIZE]);

/* --- src/crypt/scram_message.c: writing --------------------------------------------------- */

/* The buffer says whether there was memory for all of it. */
void scram_append_text(struct buffer *out, const char *text);
void scram_append_key(struct buffer *out, const uint8_t key[SCRAM_KEY_SIZE]);
void scram_append_nonce(struct buffer *out, const uint8_t nonce[SCRAM_NONCE_SIZE]);

/* The c= value: the gs2-header and the channel binding data behind it. False: both are too long. */
bool scram_append_binding(struct buffer *out, const void *gs2_header, size_t header_length,
	const struct scram_binding *binding);

/* --- src/crypt/scram.c: keys -------------------------------------------------------------- */

/* False: no memory. */
bool scram_hmac(const uint8_t key[SCRAM_KEY_SIZE], const void *data, size_t length,
	uint8_t out[SCRAM_KEY_SIZE]);
bool scram_sha256(const uint8_t in[SCRAM_KEY_SIZE], uint8_t out[SCRAM_KEY_SIZE]);

void scram_exclusive_or(uint8_t out[SCRAM_KEY_SIZE], const uint8_t with[SCRAM_KEY_SIZE]);

#endif
