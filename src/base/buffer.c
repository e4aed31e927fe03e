/* SPDX-License-Identifier: ISC */
/* Growable buffers: capacity doubles, so that the cost per appended byte stays constant. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most messages are short. */
enum { FIRST_CAPACITY = 64 };

void buffer_init(struct buffer *buffer)
{
	memset(buffer, 0, sizeof(*buffer));
}

void buffer_init_secret(struct buffer *buffer)
{
	buffer_init(buffer);
	buffer->secret = true;
}

static void release(struct buffer *buffer, bool wipe)
{
	if (wipe && buffer->data != NULL)
		explicit_bzero(buffer->data, buffer->capacity);
	free(buffer->data);
	buffer->data = NULL;
	buffer->length = 0;
	buffer->capacity = 0;
	buffer->failed = false;
}

void buffer_free(struct buffer *buffer)
{
	release(buffer, buffer->secret);
}

void buffer_wipe(struct buffer *buffer)
{
	release(buffer, true);
}

/* Not realloc(): it may leave a copy of the bytes in the memory that it frees. */
static uint8_t *grow_secret(struct buffer *buffer, size_t capacity)
{
	uint8_t *data = malloc(capacity);

	if (data == NULL)
		return NULL;
	if (buffer->data != NULL) {
		memcpy(data, buffer->data, buffer->length);
		explicit_bzero(buffer->data, buffer->capacity);
		free(buffer->data);
	}
	return data;
}

static bool reserve(struct buffer *buffer, size_t length)
{
	size_t capacity = buffer->capacity == 0 ? FIRST_CAPACITY : buffer->capacity;
	uint8_t *data;

	if (buffer->failed)
		return false;
	if (length <= buffer->capacity - buffer->length)
		return true;
	if (length > SIZE_MAX / 2 - buffer->length) {
		buffer->failed = true;
		return false;
	}
	while (capacity < buffer->length + length)
		capacity *= 2;

	data = buffer->secret ? grow_secret(buffer, capacity) : realloc(buffer->data, capacity);
	if (data == NULL) {
		buffer->failed = true;
		return false;
	}
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

uint8_t *buffer_extend(struct buffer *buffer, size_t length)
{
	uint8_t *room;

	/* Allocate even for length 0, so that the returned pointer is not NULL. */
	if (!reserve(buffer, length > 0 ? length : 1))
		return NULL;
	room = buffer->data + buffer->length;
	buffer->length += length;
	return room;
}

bool buffer_append(struct buffer *buffer, const void *data, size_t length)
{
	if (!reserve(buffer, length))
		return false;
	if (length > 0) {
		memcpy(buffer->data + buffer->length, data, length);
		buffer->length += length;
	}
	return true;
}

void buffer_consume(struct buffer *buffer, size_t length)
{
	if (length >= buffer->length) {
		buffer->length = 0;
		return;
	}
	if (length == 0)
		return;
	memmove(buffer->data, buffer->data + length, buffer->length - length);
	buffer->length -= length;
}

void buffer_shorten(struct buffer *buffer, size_t length)
{
	if (length >= buffer->length)
		return;
	explicit_bzero(buffer->data + length, buffer->length - length);
	buffer->length = length;
}

void buffer_clear(struct buffer *buffer)
{
	if (buffer->secret && buffer->data != NULL)
		explicit_bzero(buffer->data, buffer->length);
	buffer->length = 0;
}

bool buffer_printf(struct buffer *buffer, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	/* vsnprintf() needs room for a NUL that is not counted. */
	if (length < 0 || !reserve(buffer, (size_t)length + 1)) {
		buffer->failed = true;
		return false;
	}
	va_start(arguments, format);
	(void)vsnprintf(
		(char *)buffer->data + buffer->length, (size_t)length + 1, format, arguments);
	va_end(arguments);
	buffer->length += (size_t)length;
	return true;
}
