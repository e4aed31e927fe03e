/* SPDX-License-Identifier: ISC */
/*
 * Growable byte buffer: for a message under construction and for input being collected.
 *
 * When memory runs out, `failed` is set and stays set; the caller that builds a message checks
 * it once, at the end. The content up to then is kept. The buffer has no size limit: check a
 * length that a peer announces before reserving space for it.
 */
#ifndef PGUSHER_BASE_BUFFER_H
#define PGUSHER_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	uint8_t *data; /* NULL until something is appended */
	size_t length, capacity;
	bool failed; /* memory ran out; buffer_free() and buffer_wipe() reset it */
	bool secret; /* wipe the memory before it is freed */
};

/* Make an empty buffer; it owns no memory yet. A zeroed struct is the same. */
void buffer_init(struct buffer *buffer);

/*
 * Make an empty buffer for passwords and keys: growing leaves no copy in freed memory either.
 */
void buffer_init_secret(struct buffer *buffer);

/* Free the memory. The buffer is empty and usable afterwards. */
void buffer_free(struct buffer *buffer);

/* Overwrite the memory, then free it. The buffer is empty and usable afterwards. */
void buffer_wipe(struct buffer *buffer);

/*
 * Append a copy of the bytes. `data` may be NULL if length is 0, and must not point into the
 * buffer. Returns false when out of memory.
 */
bool buffer_append(struct buffer *buffer, const void *data, size_t length);

/*
 * Extend the buffer by `length` bytes and return a pointer to the first of them, for the
 * caller to fill; NULL when out of memory. The pointer is valid until the next call that grows
 * the buffer.
 */
uint8_t *buffer_extend(struct buffer *buffer, size_t length);

/* Remove bytes from the front, at most all of them; the remaining bytes move down. */
void buffer_consume(struct buffer *buffer, size_t length);

/*
 * Remove and wipe bytes at the end, so that `length` bytes remain. Does nothing if the buffer
 * holds fewer bytes than that.
 */
void buffer_shorten(struct buffer *buffer, size_t length);

/* Make the buffer empty but keep its memory. A secret buffer is wiped. */
void buffer_clear(struct buffer *buffer);

/* Append formatted text without its NUL. Returns false when out of memory. */
bool buffer_printf(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
