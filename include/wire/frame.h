/* SPDX-License-Identifier: ISC */
/*
 * Finds the next message in a stream of bytes: one letter, a length that includes itself, a
 * body.
 *
 * Every message in both directions passes through here, so the code is inline. Messages
 * without a letter (the first of a connection, first byte 0) are handled in wire/startup.
 */
#ifndef PGUSHER_WIRE_FRAME_H
#define PGUSHER_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
	FRAME_HEADER_SIZE = 5,
	/* Smallest usable limit: a length includes itself, so every message is longer. */
	FRAME_MAX_LEAST = 4,
};

enum frame_result {
	FRAME_WHOLE, /* the complete message is available */
	FRAME_PARTIAL, /* its letter and length are known, its body is incomplete */
	FRAME_SHORT, /* the header is incomplete; `out` is not set */
	FRAME_MALFORMED, /* the length is invalid or above the limit; `out` is not set */
};

struct frame {
	uint8_t type; /* enum client_message, enum server_message, or any other byte */
	size_t total; /* bytes from the letter to the end of the body */
};

/*
 * Examine the message at the front of `data`. A message of more than `max` bytes, letter
 * included, is malformed; `max` is at least FRAME_MAX_LEAST.
 */
static inline enum frame_result frame_peek(
	const uint8_t *data, size_t available, uint32_t max, struct frame *out)
{
	uint32_t length;

	if (available < FRAME_HEADER_SIZE)
		return FRAME_SHORT;
	length = (uint32_t)data[1] << 24 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 8 |
		(uint32_t)data[4];
	/* The length does not count the letter, so a length of max would make max + 1 bytes. */
	if (length - 4 >= max - 4)
		return FRAME_MALFORMED;
	out->type = data[0];
	out->total = (size_t)length + 1;
	return out->total <= available ? FRAME_WHOLE : FRAME_PARTIAL;
}

/* The body of a complete message, and its size in bytes. */
static inline const uint8_t *frame_body(const uint8_t *message)
{
	return message + FRAME_HEADER_SIZE;
}

static inline size_t frame_body_size(const struct frame *frame)
{
	return frame->total - FRAME_HEADER_SIZE;
}

#endif
