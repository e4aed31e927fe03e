/* SPDX-License-Identifier: ISC */
/* Every field is read through reader_bytes(), which alone checks the remaining length. */
#include "wire/reader.h"

#include <string.h>

void reader_init(struct reader *reader, const void *data, size_t length)
{
	reader->at = data;
	reader->end = length > 0 ? reader->at + length : reader->at;
	reader->failed = false;
}

size_t reader_left(const struct reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

bool reader_done(const struct reader *reader)
{
	return !reader->failed && reader->at == reader->end;
}

const uint8_t *reader_bytes(struct reader *reader, size_t length)
{
	const uint8_t *bytes = reader->at;

	if (reader->failed || length > reader_left(reader)) {
		reader->failed = true;
		reader->at = reader->end;
		return NULL;
	}
	if (length > 0)
		reader->at += length;
	return bytes;
}

uint8_t reader_byte(struct reader *reader)
{
	const uint8_t *bytes = reader_bytes(reader, 1);

	return bytes != NULL ? bytes[0] : 0;
}

uint16_t reader_int16(struct reader *reader)
{
	const uint8_t *bytes = reader_bytes(reader, 2);

	return bytes != NULL ? (uint16_t)(bytes[0] << 8 | bytes[1]) : 0;
}

uint32_t reader_int32(struct reader *reader)
{
	const uint8_t *bytes = reader_bytes(reader, 4);

	if (bytes == NULL)
		return 0;
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
		(uint32_t)bytes[3];
}

const char *reader_string(struct reader *reader)
{
	const size_t left = reader_left(reader);
	const uint8_t *nul = left > 0 ? memchr(reader->at, 0, left) : NULL;

	/* Without a NUL, request more than is left, which fails. */
	return (const char *)reader_bytes(
		reader, nul != NULL ? (size_t)(nul - reader->at) + 1 : left + 1);
}
