/* SPDX-License-Identifier: ISC */
/*
 * Builds messages at the end of a buffer.
 *
 * Nothing here is checked for lack of memory on the way: the buffer's `failed` is looked at
 * once, when all is written; a buffer that failed holds half a message and must not be sent.
 * The same is set when a message would be longer than the protocol can say.
 * Protocol: "Message Formats".
 */
#ifndef PGUSHER_WIRE_WRITER_H
#define PGUSHER_WIRE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "wire/message.h"

/*
 * Any message: its letter and room for its length; its fields; then its length. The mark that
 * writer_begin() returns is for its writer_end(). A message without a letter has the type 0.
 */
size_t writer_begin(struct buffer *buffer, uint8_t type);
void writer_end(struct buffer *buffer, size_t mark);

/* Fields. Numbers are written in network order. */
void writer_byte(struct buffer *buffer, uint8_t value);
void writer_int16(struct buffer *buffer, uint16_t value);
void writer_int32(struct buffer *buffer, uint32_t value);
void writer_int64(struct buffer *buffer, uint64_t value);
void writer_string(struct buffer *buffer, const char *text); /* with its NUL */
void writer_bytes(struct buffer *buffer, const void *bytes, size_t length);

/* A whole message of ready bytes. */
void writer_message(struct buffer *buffer, uint8_t type, const void *body, size_t length);

/* ErrorResponse and NoticeResponse with the fields S, C and M. */
void writer_error(
	struct buffer *buffer, const char *severity, const char *sqlstate, const char *text);
void writer_notice(
	struct buffer *buffer, const char *severity, const char *sqlstate, const char *text);

/* Authentication: the number and what comes with it (a salt, mechanisms, SASL data). */
void writer_authentication(struct buffer *buffer, enum authentication_request request,
	const void *data, size_t length);

void writer_parameter_status(struct buffer *buffer, const char *name, const char *value);

/* BackendKeyData: process number and secret are one text of bytes to us. */
void writer_backend_key(struct buffer *buffer, const void *key, size_t length);

void writer_ready(struct buffer *buffer, enum ready_status status);
void writer_command_complete(struct buffer *buffer, const char *tag);

/* Query. The second takes text without a NUL at its end; there must be none inside. */
void writer_query(struct buffer *buffer, const char *sql);
void writer_query_text(struct buffer *buffer, const void *sql, size_t length);

/* PasswordMessage, SASLResponse: the body as it is. A password brings its own NUL. */
void writer_password(struct buffer *buffer, const void *bytes, size_t length);

/* SASLInitialResponse with data. */
void writer_sasl_initial(
	struct buffer *buffer, const char *mechanism, const void *data, size_t length);

void writer_terminate(struct buffer *buffer);

#endif
