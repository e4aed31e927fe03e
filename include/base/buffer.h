/* SPDX-License-Identifier: ISC */
/*
 * Bytes that grow: a message being built, input being gathered.
 *
 * Memory may run out on a peer's account: then `failed` is set and stays set, and whoever built
 * the message looks at it once, at the end. What was in the buffer before is kept. No limit is
 * known here: cap what a peer announces before asking for room.
 */
#ifndef PGUSHER_BASE_BUFFER_H
#define PGUSHER_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	uint8_t *data; /* NULL while nothing was ever put in */
	size_t length, capacity;
	bool failed; /* memory ran out; buffer_free() and buffer_wipe() reset it */
	bool secret; /* memory is wiped whenever it is let go of */
};

/* An empty buffer; owns no memory yet. All bytes zero is the same. */
void buffer_init(struct buffer *buffer);

/* An empty buffer for passwords and keys: also growing leaves no copy behind. */
void buffer_init_secret(struct buffer *buffer);

/* Let the memory go. The buffer is empty and usable afterwards. */
void buffer_free(struct buffer *buffer);

/* Overwrite the memory, then let it go. */
void buffer_wipe(struct buffer *buffer);

/* Append; data may be NULL if length is 0, and must not lie in the buffer. False: no memory. */
bool buffer_append(struct buffer *buffer, const void *data, size_t length);

/*
 * Make the buffer longer by `length` bytes and return the first of them, for the caller to
 * fill. NULL: no memory. The next call that grows the buffer moves them.
 */
uint8_t *buffer_extend(struct buffer *buffer, size_t length);

/* Drop bytes from the front, at most what is there; the rest moves down. */
void buffer_consume(struct buffer *buffer, size_t length);

/* Drop and wipe bytes at the end, so that this length is left; nothing if there are not as many. */
void buffer_shorten(struct buffer *buffer, size_t length);

/* Forget the content and keep the memory. */
void buffer_clear(struct buffer *buffer);

/* Append text without its NUL. False: no memory. */
bool buffer_printf(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
