/* SPDX-License-Identifier: ISC */
/*
 * The fields of one message, taken from the front one after the other, each checked against
 * what is left.
 *
 * The first field that is not there marks the reader as failed; from then on it has nothing
 * left and every field is 0 or NULL. So a whole message can be read first and judged once:
 * reader_done(). What is returned points into the message. Protocol: "Message Data Types".
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

/* Read these bytes, usually the body of a message; data may be NULL if length is 0. */
void reader_init(struct reader *reader, const void *data, size_t length);

/* Bytes not read yet. */
size_t reader_left(const struct reader *reader);

/* Was every field there, and nothing behind them? */
bool reader_done(const struct reader *reader);

/* Numbers in network order, without a sign: a length of -1 is UINT32_MAX. */
uint8_t reader_byte(struct reader *reader);
uint16_t reader_int16(struct reader *reader);
uint32_t reader_int32(struct reader *reader);

/* Text up to its NUL, which is inside the message. NULL: no NUL is left. */
const char *reader_string(struct reader *reader);

/* The next bytes. NULL: so many are not left. */
const uint8_t *reader_bytes(struct reader *reader, size_t length);

#endif
