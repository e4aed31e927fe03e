/* SPDX-License-Identifier: ISC */
/*
 * Finds the next message in a stream of bytes: one letter, a length that counts itself, a body.
 *
 * Every message of both directions goes through here, hence inline. Messages without a letter
 * (the first of a connection, first byte 0) are for wire/startup.
 */
#ifndef PGUSHER_WIRE_FRAME_H
#define PGUSHER_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
	FRAME_HEADER_SIZE = 5,
	/* A limit below this is none: a length counts itself, so all messages are longer. */
	FRAME_MAX_LEAST = 4,
};

enum frame_result {
	FRAME_WHOLE, /* all of the message is there */
	FRAME_PARTIAL, /* its letter and length are known, its body is cut */
	FRAME_SHORT, /* not even the header is whole; `out` is not set */
	FRAME_MALFORMED, /* no such length is possible, or allowed; `out` is not set */
};

struct frame {
	uint8_t type; /* enum client_message or enum server_message, or anything else */
	size_t total; /* bytes from the letter to the end of the body */
};

/*
 * Look at the message at the front; one of more than `max` bytes in all is malformed. That is
 * FRAME_MAX_LEAST or more.
 */
static inline enum frame_result frame_peek(
	const uint8_t *data, size_t available, uint32_t max, struct frame *out)
{
	uint32_t length;

	if (available < FRAME_HEADER_SIZE)
		return FRAME_SHORT;
	length = (uint32_t)data[1] << 24 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 8 |
		(uint32_t)data[4];
	/* The letter is not counted: a length of max would make max + 1 bytes. */
	if (length - 4 >= max - 4)
		return FRAME_MALFORMED;
	out->type = data[0];
	out->total = (size_t)length + 1;
	return out->total <= available ? FRAME_WHOLE : FRAME_PARTIAL;
}

/* The body of a whole message, and its size. */
static inline const uint8_t *frame_body(const uint8_t *message)
{
	return message + FRAME_HEADER_SIZE;
}

static inline size_t frame_body_size(const struct frame *frame)
{
	return frame->total - FRAME_HEADER_SIZE;
}

#endif
