/* SPDX-License-Identifier: ISC */
#include "wire/tagged.h"

#include <string.h>

#include "wire/message.h"

size_t tagged_begin(struct buffer *buffer, uint8_t kind)
{
	const size_t mark = writer_begin(buffer, PQ_COPY_DATA);

	writer_byte(buffer, kind);
	return mark;
}

void tagged_end(struct buffer *buffer, size_t mark)
{
	writer_end(buffer, mark);
}

void tagged_bytes(struct buffer *buffer, uint16_t tag, const void *bytes, size_t length)
{
	writer_int16(buffer, tag);
	writer_int32(buffer, (uint32_t)length);
	writer_bytes(buffer, bytes, length);
}

void tagged_text(struct buffer *buffer, uint16_t tag, const char *text)
{
	if (text)
		tagged_bytes(buffer, tag, text, strlen(text) + 1);
}

void tagged_number(struct buffer *buffer, uint16_t tag, uint64_t number)
{
	if (number == 0)
		return;
	writer_int16(buffer, tag);
	writer_int32(buffer, sizeof(number));
	writer_int64(buffer, number);
}

bool tagged_next(struct reader *reader, struct tagged_field *out)
{
	if (reader_left(reader) == 0)
		return false;
	out->tag = reader_int16(reader);
	out->length = reader_int32(reader);
	out->bytes = reader_bytes(reader, out->length);
	return !reader->failed;
}

uint64_t tagged_to_number(const struct tagged_field *field)
{
	struct reader reader;
	uint64_t high, low;

	reader_init(&reader, field->bytes, field->length);
	high = reader_int32(&reader);
	low = reader_int32(&reader);
	return reader_done(&reader) ? high << 32 | low : 0;
}

const char *tagged_to_text(const struct tagged_field *field)
{
	if (field->length == 0 ||
		memchr(field->bytes, '\0', field->length) != field->bytes + field->length - 1)
		return NULL;
	return (const char *)field->bytes;
}
