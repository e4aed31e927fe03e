/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "crypt/base64.h"
#include "crypt/scram_parts.h"

enum {
	NONCE_TEXT_SIZE = BASE64_SIZE(SCRAM_NONCE_SIZE),
	KEY_TEXT_SIZE = BASE64_SIZE(SCRAM_KEY_SIZE),
};

/*
 * --- Reading messages ------------------------------------------------------------------------
 */

struct scram_cursor scram_cursor_over(const char *message, size_t length)
{
	return (struct scram_cursor){.at = message, .end = message + length};
}

/* A SCRAM message contains no NUL, and no valid one is longer than this. */
bool scram_is_acceptable(const char *message, size_t length)
{
	return length > 0 && length <= SCRAM_MAX_MESSAGE &&
		memchr(message, '\0', length) == NULL;
}

size_t scram_cursor_left(const struct scram_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

bool scram_cursor_skip(struct scram_cursor *cursor, const char *text)
{
	size_t length = strlen(text);

	if (scram_cursor_left(cursor) < length || memcmp(cursor->at, text, length) != 0)
		return false;
	cursor->at += length;
	return true;
}

/* The text up to the next comma or the end. The comma is not consumed. */
static struct scram_span cursor_value(struct scram_cursor *cursor)
{
	struct scram_span value = {.at = cursor->at, .length = scram_cursor_left(cursor)};
	const char *comma = memchr(cursor->at, ',', value.length);

	if (comma != NULL)
		value.length = (size_t)(comma - cursor->at);
	cursor->at += value.length;
	return value;
}

bool scram_cursor_attribute(
	struct scram_cursor *cursor, const char *name, struct scram_span *value)
{
	if (!scram_cursor_skip(cursor, name))
		return false;
	*value = cursor_value(cursor);
	return true;
}

/*
 * Skip extensions up to the end, or up to the text `until`. Extensions are optional, but
 * letters to which RFC 5802 gives a meaning are not extensions, wherever they appear.
 */
bool scram_cursor_skip_extensions(struct scram_cursor *cursor, const char *until)
{
	while (scram_cursor_left(cursor) > 0) {
		struct scram_cursor ahead = *cursor;
		char name;

		if (until != NULL && scram_cursor_skip(&ahead, until))
			return true;
		if (!scram_cursor_skip(cursor, ",") ||
			scram_cursor_left(cursor) < strlen("x=y"))
			return false;
		name = *cursor->at++;
		if (!((name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z')) ||
			strchr("aceimnprsv", name) != NULL)
			return false;
		if (!scram_cursor_skip(cursor, "=") || cursor_value(cursor).length == 0)
			return false;
	}
	return until == NULL;
}

/* Printable characters; an attribute's value contains no comma. */
bool scram_is_nonce(struct scram_span nonce)
{
	if (nonce.length == 0 || nonce.length > SCRAM_MAX_NONCE)
		return false;
	for (size_t i = 0; i < nonce.length; i++) {
		if (nonce.at[i] < '!' || nonce.at[i] > '~')
			return false;
	}
	return true;
}

bool scram_read_number(struct scram_span digits, uint32_t most, uint32_t *out)
{
	uint64_t number = 0;

	/* Ten digits do not overflow, and a longer number is above every limit. */
	if (digits.length == 0 || digits.length > 10 || digits.at[0] == '0')
		return false;
	for (size_t i = 0; i < digits.length; i++) {
		if (digits.at[i] < '0' || digits.at[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(digits.at[i] - '0');
	}
	if (number > most)
		return false;
	*out = (uint32_t)number;
	return true;
}

bool scram_read_salt(struct scram_span text, uint8_t out[SCRAM_MAX_SALT], size_t *length)
{
	ssize_t bytes = base64_decode(text.at, text.length, out, SCRAM_MAX_SALT);

	if (bytes <= 0)
		return false;
	*length = (size_t)bytes;
	return true;
}

bool scram_read_key(struct scram_span text, uint8_t out[SCRAM_KEY_SIZE])
{
	return base64_decode(text.at, text.length, out, SCRAM_KEY_SIZE) == SCRAM_KEY_SIZE;
}

/*
 * --- Writing messages ------------------------------------------------------------------------
 */

void scram_append_text(struct buffer *out, const char *text)
{
	(void)buffer_append(out, text, strlen(text));
}

void scram_append_key(struct buffer *out, const uint8_t key[SCRAM_KEY_SIZE])
{
	char text[KEY_TEXT_SIZE];

	(void)base64_encode(key, SCRAM_KEY_SIZE, text, sizeof(text));
	scram_append_text(out, text);
	explicit_bzero(text, sizeof(text));
}

void scram_append_nonce(struct buffer *out, const uint8_t nonce[SCRAM_NONCE_SIZE])
{
	char text[NONCE_TEXT_SIZE];

	(void)base64_encode(nonce, SCRAM_NONCE_SIZE, text, sizeof(text));
	scram_append_text(out, text);
}

bool scram_append_binding(struct buffer *out, const void *gs2_header, size_t header_length,
	const struct scram_binding *binding)
{
	/* The digest of a certificate has at most 64 bytes. */
	uint8_t bound[256];
	char text[BASE64_SIZE(sizeof(bound))];
	size_t length = binding->type != NULL ? binding->length : 0;

	if (header_length > sizeof(bound) || length > sizeof(bound) - header_length)
		return false;
	memcpy(bound, gs2_header, header_length);
	if (length > 0)
		memcpy(bound + header_length, binding->data, length);
	(void)base64_encode(bound, header_length + length, text, sizeof(text));
	scram_append_text(out, text);
	return true;
}
