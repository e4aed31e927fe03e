/* SPDX-License-Identifier: ISC */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

size_t json_character(
	const char *text, size_t length, char out[JSON_CHARACTER_SIZE], size_t *taken)
{
	static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	const size_t character = text_utf8_length(text, length);
	const char *found = memchr(special, *text, sizeof(special) - 1);

	*taken = character > 0 ? character : 1;
	if (character == 0) {
		memcpy(out, replacement, sizeof(replacement) - 1);
		return sizeof(replacement) - 1;
	}
	if (found) {
		out[0] = '\\';
		out[1] = letters[found - special];
		return 2;
	}
	if ((uint8_t)*text < ' ' || *text == 0x7f)
		return (size_t)snprintf(out, JSON_CHARACTER_SIZE, "\\u%04x", (uint8_t)*text);
	memcpy(out, text, character);
	return character;
}

static void put(struct json *json, const char *text)
{
	buffer_append(json->out, text, strlen(text));
}

static void begin(struct json *json, const char *name)
{
	if (json->follows)
		put(json, ",");
	json->follows = true;
	if (!name)
		return;
	put(json, "\"");
	put(json, name);
	put(json, "\":");
}

static void open_with(struct json *json, const char *name, const char *bracket)
{
	begin(json, name);
	put(json, bracket);
	json->follows = false;
}

static void close_with(struct json *json, const char *bracket)
{
	put(json, bracket);
	json->follows = true;
}

void json_open_object(struct json *json, const char *name)
{
	open_with(json, name, "{");
}

void json_close_object(struct json *json)
{
	close_with(json, "}");
}

void json_open_array(struct json *json, const char *name)
{
	open_with(json, name, "[");
}

void json_close_array(struct json *json)
{
	close_with(json, "]");
}

void json_bytes(struct json *json, const char *name, const char *text, size_t length)
{
	begin(json, name);
	put(json, "\"");
	while (length > 0) {
		char out[JSON_CHARACTER_SIZE];
		size_t taken = 1, size;

		if (memchr("<>&", *text, 3))
			size = (size_t)snprintf(out, sizeof(out), "\\u%04x", (uint8_t)*text);
		else
			size = json_character(text, length, out, &taken);
		buffer_append(json->out, out, size);
		text += taken;
		length -= taken;
	}
	put(json, "\"");
}

void json_text(struct json *json, const char *name, const char *text)
{
	if (text)
		json_bytes(json, name, text, strlen(text));
	else
		json_null(json, name);
}

void json_null(struct json *json, const char *name)
{
	begin(json, name);
	put(json, "null");
}

void json_boolean(struct json *json, const char *name, bool value)
{
	begin(json, name);
	put(json, value ? "true" : "false");
}

void json_integer(struct json *json, const char *name, int64_t value)
{
	json_fraction(json, name, value, 0);
}

/* Not by printf: a history has a quarter of a million numbers. */
void json_fraction(struct json *json, const char *name, int64_t value, unsigned decimals)
{
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char digits[32];
	size_t at = sizeof(digits);

	begin(json, name);
	while (decimals > 0 && rest % 10 == 0) {
		rest /= 10;
		decimals--;
	}
	if (decimals > 0) {
		for (; decimals > 0; decimals--, rest /= 10)
			digits[--at] = (char)('0' + rest % 10);
		digits[--at] = '.';
	}
	do {
		digits[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (value < 0)
		digits[--at] = '-';
	buffer_append(json->out, digits + at, sizeof(digits) - at);
}
