/* SPDX-License-Identifier: ISC */
/*
 * Builds messages at the end of a buffer.
 *
 * These functions return no errors: after writing, the caller checks the buffer's `failed`
 * once. A failed buffer holds an incomplete message and must not be sent. A message too long
 * for the protocol also sets `failed`. Protocol: "Message Formats".
 */
#ifndef PGUSHER_WIRE_WRITER_H
#define PGUSHER_WIRE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "wire/message.h"

/*
 * Write any message: begin with its letter (0: a message without one), write its fields, end
 * with the mark that writer_begin() returned, which fills in the length.
 */
size_t writer_begin(struct buffer *buffer, uint8_t type);
void writer_end(struct buffer *buffer, size_t mark);

/* Append fields. Numbers are written in network order. */
void writer_byte(struct buffer *buffer, uint8_t value);
void writer_int16(struct buffer *buffer, uint16_t value);
void writer_int32(struct buffer *buffer, uint32_t value);
void writer_int64(struct buffer *buffer, uint64_t value);
void writer_string(struct buffer *buffer, const char *text); /* with its NUL */
void writer_bytes(struct buffer *buffer, const void *bytes, size_t length);

/* Append a complete message with this body. */
void writer_message(struct buffer *buffer, uint8_t type, const void *body, size_t length);

/* Append an ErrorResponse or NoticeResponse with the fields S, C and M. */
void writer_error(
	struct buffer *buffer, const char *severity, const char *sqlstate, const char *text);
void writer_notice(
	struct buffer *buffer, const char *severity, const char *sqlstate, const char *text);

/* As writer_error(), with the field D besides, unless that is NULL or empty. */
void writer_error_detail(struct buffer *buffer, const char *severity, const char *sqlstate,
	const char *text, const char *detail);

/* Append an Authentication message: the number and its data (a salt, mechanisms, SASL data). */
void writer_authentication(struct buffer *buffer, enum authentication_request request,
	const void *data, size_t length);

void writer_parameter_status(struct buffer *buffer, const char *name, const char *value);

/* Append BackendKeyData. Process number and secret are one opaque key here. */
void writer_backend_key(struct buffer *buffer, const void *key, size_t length);

void writer_ready(struct buffer *buffer, enum ready_status status);
void writer_command_complete(struct buffer *buffer, const char *tag);

/*
 * Append a Query. The second function takes text that does not end with a NUL; it must not
 * contain one.
 */
void writer_query(struct buffer *buffer, const char *sql);
void writer_query_text(struct buffer *buffer, const void *sql, size_t length);

/* Append a PasswordMessage or SASLResponse with this body. A password must include its NUL. */
void writer_password(struct buffer *buffer, const void *bytes, size_t length);

/* Append a SASLInitialResponse with data. */
void writer_sasl_initial(
	struct buffer *buffer, const char *mechanism, const void *data, size_t length);

void writer_terminate(struct buffer *buffer);

#endif
