/* SPDX-License-Identifier: ISC */
/* Messages are built in place; the length is filled in at the end. */
#include "wire/writer.h"

#include <string.h>

/* The protocol's lengths are signed. */
enum { MESSAGE_LENGTH_MAX = INT32_MAX };

static void put_int32(uint8_t *out, uint32_t value)
{
	out[0] = (uint8_t)(value >> 24);
	out[1] = (uint8_t)(value >> 16);
	out[2] = (uint8_t)(value >> 8);
	out[3] = (uint8_t)value;
}

size_t writer_begin(struct buffer *buffer, uint8_t type)
{
	size_t mark;

	if (type != 0)
		writer_byte(buffer, type);
	mark = buffer->length;
	writer_int32(buffer, 0);
	return mark;
}

void writer_end(struct buffer *buffer, size_t mark)
{
	size_t length;

	if (buffer->failed)
		return;
	length = buffer->length - mark;
	if (length > MESSAGE_LENGTH_MAX) {
		buffer->failed = true;
		return;
	}
	put_int32(buffer->data + mark, (uint32_t)length);
}

void writer_byte(struct buffer *buffer, uint8_t value)
{
	buffer_append(buffer, &value, sizeof(value));
}

void writer_int16(struct buffer *buffer, uint16_t value)
{
	const uint8_t bytes[2] = {(uint8_t)(value >> 8), (uint8_t)value};

	buffer_append(buffer, bytes, sizeof(bytes));
}

void writer_int32(struct buffer *buffer, uint32_t value)
{
	uint8_t bytes[4];

	put_int32(bytes, value);
	buffer_append(buffer, bytes, sizeof(bytes));
}

void writer_int64(struct buffer *buffer, uint64_t value)
{
	writer_int32(buffer, (uint32_t)(value >> 32));
	writer_int32(buffer, (uint32_t)value);
}

void writer_string(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text) + 1);
}

void writer_bytes(struct buffer *buffer, const void *bytes, size_t length)
{
	buffer_append(buffer, bytes, length);
}

void writer_message(struct buffer *buffer, uint8_t type, const void *body, size_t length)
{
	enum { HEADER_SIZE = 5 };
	uint8_t *message;

	/*
	 * Written in one step for speed: every login and every Sync of ours writes such
	 * messages.
	 */
	if (length > MESSAGE_LENGTH_MAX - HEADER_SIZE) {
		buffer->failed = true;
		return;
	}
	message = buffer_extend(buffer, HEADER_SIZE + length);
	if (!message)
		return;
	message[0] = type;
	put_int32(message + 1, (uint32_t)(length + sizeof(uint32_t)));
	if (length > 0)
		memcpy(message + HEADER_SIZE, body, length);
}

static void write_field(struct buffer *buffer, uint8_t code, const char *text)
{
	writer_byte(buffer, code);
	writer_string(buffer, text);
}

static void write_report(struct buffer *buffer, uint8_t type, const char *severity,
	const char *sqlstate, const char *text, const char *detail)
{
	const size_t mark = writer_begin(buffer, type);

	write_field(buffer, REPORT_SEVERITY, severity);
	write_field(buffer, REPORT_SQLSTATE, sqlstate);
	write_field(buffer, REPORT_TEXT, text);
	if (detail && *detail)
		write_field(buffer, REPORT_DETAIL, detail);
	writer_byte(buffer, 0);
	writer_end(buffer, mark);
}

void writer_error(
	struct buffer *buffer, const char *severity, const char *sqlstate, const char *text)
{
	write_report(buffer, PQ_ERROR_RESPONSE, severity, sqlstate, text, NULL);
}

void writer_error_detail(struct buffer *buffer, const char *severity, const char *sqlstate,
	const char *text, const char *detail)
{
	write_report(buffer, PQ_ERROR_RESPONSE, severity, sqlstate, text, detail);
}

void writer_notice(
	struct buffer *buffer, const char *severity, const char *sqlstate, const char *text)
{
	write_report(buffer, PQ_NOTICE_RESPONSE, severity, sqlstate, text, NULL);
}

void writer_authentication(struct buffer *buffer, enum authentication_request request,
	const void *data, size_t length)
{
	const size_t mark = writer_begin(buffer, PQ_AUTHENTICATION);

	writer_int32(buffer, (uint32_t)request);
	writer_bytes(buffer, data, length);
	writer_end(buffer, mark);
}

void writer_parameter_status(struct buffer *buffer, const char *name, const char *value)
{
	const size_t mark = writer_begin(buffer, PQ_PARAMETER_STATUS);

	writer_string(buffer, name);
	writer_string(buffer, value);
	writer_end(buffer, mark);
}

void writer_backend_key(struct buffer *buffer, const void *key, size_t length)
{
	writer_message(buffer, PQ_BACKEND_KEY_DATA, key, length);
}

void writer_ready(struct buffer *buffer, enum ready_status status)
{
	const uint8_t byte = (uint8_t)status;

	writer_message(buffer, PQ_READY_FOR_QUERY, &byte, sizeof(byte));
}

void writer_command_complete(struct buffer *buffer, const char *tag)
{
	writer_message(buffer, PQ_COMMAND_COMPLETE, tag, strlen(tag) + 1);
}

void writer_query(struct buffer *buffer, const char *sql)
{
	writer_query_text(buffer, sql, strlen(sql));
}

void writer_query_text(struct buffer *buffer, const void *sql, size_t length)
{
	const size_t mark = writer_begin(buffer, PQ_QUERY);

	writer_bytes(buffer, sql, length);
	writer_byte(buffer, 0);
	writer_end(buffer, mark);
}

void writer_password(struct buffer *buffer, const void *bytes, size_t length)
{
	writer_message(buffer, PQ_PASSWORD, bytes, length);
}

void writer_sasl_initial(
	struct buffer *buffer, const char *mechanism, const void *data, size_t length)
{
	const size_t mark = writer_begin(buffer, PQ_PASSWORD);

	/* The length does not fit in its field, so the message is too long as well. */
	writer_string(buffer, mechanism);
	writer_int32(buffer, (uint32_t)length);
	writer_bytes(buffer, data, length);
	writer_end(buffer, mark);
}

void writer_terminate(struct buffer *buffer)
{
	writer_message(buffer, PQ_TERMINATE, NULL, 0);
}
