/* SPDX-License-Identifier: ISC */
/*
 * Reads the fields of one message in order, each checked against the bytes that are left.
 *
 * The first missing field marks the reader as failed; from then on nothing is left and every
 * field is 0 or NULL. So a whole message can be read first and checked once at the end, by
 * reader_done(). Returned pointers point into the message. Protocol: "Message Data Types".
 */
#ifndef PGUSHER_WIRE_READER_H
#define PGUSHER_WIRE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
	const uint8_t *at, *end;
	bool failed;
};

/*
 * Start reading these bytes, usually the body of a message. They are borrowed; `data` may be
 * NULL if length is 0.
 */
void reader_init(struct reader *reader, const void *data, size_t length);

/* Number of bytes not read yet. */
size_t reader_left(const struct reader *reader);

/* Whether all fields were present and no bytes follow them. */
bool reader_done(const struct reader *reader);

/* Unsigned numbers in network order: a length of -1 is UINT32_MAX. */
uint8_t reader_byte(struct reader *reader);
uint16_t reader_int16(struct reader *reader);
uint32_t reader_int32(struct reader *reader);

/*
 * Returns a text up to and including its NUL, which is inside the message; NULL if no NUL is
 * left.
 */
const char *reader_string(struct reader *reader);

/* Returns the next `length` bytes; NULL if fewer are left. */
const uint8_t *reader_bytes(struct reader *reader, size_t length);

#endif
