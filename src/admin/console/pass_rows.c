/* SPDX-License-Identifier: ISC */
#include "admin/console/pass_rows.h"

#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"
#include "wire/message.h"
#include "wire/reader.h"

/* The descriptor that a row names in its first column; -1: the message is no row. */
static int descriptor_of(const uint8_t *message, const struct frame *frame)
{
	struct reader reader;
	char text[16] = "";
	const uint8_t *cell;
	uint32_t length;

	if (frame->type != PQ_DATA_ROW)
		return -1;
	reader_init(&reader, frame_body(message), frame_body_size(frame));
	reader_int16(&reader);
	length = reader_int32(&reader);
	cell = length < sizeof(text) ? reader_bytes(&reader, length) : NULL;
	if (!cell)
		return -1;
	memcpy(text, cell, length);
	return atoi(text);
}

static bool add_messages(struct passing *passing, const struct buffer *messages)
{
	struct frame frame;

	for (size_t at = 0; frame_peek(messages->data + at, messages->length - at, UINT32_MAX,
				    &frame) == FRAME_WHOLE;
		at += frame.total) {
		const uint8_t *message = messages->data + at;

		if (!passing_add(passing, message, frame.total, descriptor_of(message, &frame)))
			return false;
	}
	return true;
}

struct passing *pass_rows_begin(struct stream *stream, const struct buffer *messages,
	passing_function *done, void *context)
{
	struct passing *passing = NULL;

	if (!messages->failed)
		passing = passing_new(stream->loop, stream->fd, done, context);
	if (passing && add_messages(passing, messages) && passing_begin(passing))
		return passing;
	passing_free(passing);
	return NULL;
}
