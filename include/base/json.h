/* SPDX-License-Identifier: ISC */
/*
 * Writes JSON (RFC 8259) into a buffer. The text is always valid UTF-8: U+FFFD replaces bytes of a
 * string that are not. In strings <, > and & are escaped too, so that no reader can take a part of
 * the text for HTML.
 *
 * Memory may run out: see buffer.failed. The caller opens and closes objects and arrays in pairs,
 * and gives each member of an object a name, each element of an array NULL.
 */
#ifndef PGUSHER_BASE_JSON_H
#define PGUSHER_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/clock.h"

struct json {
	struct buffer *out; /* borrowed */
	bool follows; /* the next value stands behind another one */
};

enum { JSON_CHARACTER_SIZE = 8 };

/*
 * Write the first character of the text as it stands in a string, to `out`. Returns the length of
 * that, and sets `taken` to the number of bytes that it stands for. The text is not empty.
 */
size_t json_character(
	const char *text, size_t length, char out[JSON_CHARACTER_SIZE], size_t *taken);

/* Names are constants, and written as they are. */
void json_open_object(struct json *json, const char *name);
void json_close_object(struct json *json);
void json_open_array(struct json *json, const char *name);
void json_close_array(struct json *json);

/* NULL is written as null. */
void json_text(struct json *json, const char *name, const char *text);
void json_bytes(struct json *json, const char *name, const char *text, size_t length);

void json_null(struct json *json, const char *name);
void json_boolean(struct json *json, const char *name, bool value);
void json_integer(struct json *json, const char *name, int64_t value);

/* The number divided by ten so many times, with the decimals that it then has: 1500 and 3: 1.5 */
void json_fraction(struct json *json, const char *name, int64_t value, unsigned decimals);

/* A time in microseconds as seconds, or as milliseconds. */
static inline void json_seconds(struct json *json, const char *name, usec_t time)
{
	json_fraction(json, name, time, 6);
}

static inline void json_milliseconds(struct json *json, const char *name, usec_t time)
{
	json_fraction(json, name, time, 3);
}

#endif
