/* SPDX-License-Identifier: ISC */
#include "wire/trace_comment.h"

#include <stdint.h>
#include <string.h>

/* What is left of the text that is being read. */
struct span {
	const char *at, *end;
};

static size_t left_of(const struct span *span)
{
	return (size_t)(span->end - span->at);
}

static bool is_blank(char byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* --- a traceparent ------------------------------------------------------------------------ */

/* Are the bytes lower-case hex digits? */
static bool is_hex(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
	}
	return true;
}

static bool is_id(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] != '0')
			return is_hex(text, length);
	}
	return false;
}

/* W3C Trace Context, section 3.2. A later version may be longer, and is not read. */
bool trace_comment_is_parent(const char *text, size_t length)
{
	return length == TRACE_PARENT_LENGTH && text[2] == '-' && text[35] == '-' &&
		text[52] == '-' && is_hex(text, 2) && memcmp(text, "ff", 2) != 0 &&
		is_id(text + 3, 32) && is_id(text + 36, 16) && is_hex(text + 53, 2);
}

/* --- the items of a comment --------------------------------------------------------------- */

static int digit_of(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Decode a URL-encoded text. Returns its length; SIZE_MAX if it is malformed or longer than `size`. */
static size_t decode(const char *text, size_t length, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		int byte = (unsigned char)text[i];

		if (used == size)
			return SIZE_MAX;
		if (byte == '%') {
			if (length - i < 3 || digit_of(text[i + 1]) < 0 ||
				digit_of(text[i + 2]) < 0)
				return SIZE_MAX;
			byte = digit_of(text[i + 1]) << 4 | digit_of(text[i + 2]);
			i += 2;
		}
		out[used++] = (char)byte;
	}
	return used;
}

/*
 * Read key='value'. Returns false if that is not what comes next. A quote in a value has a backslash
 * before it.
 */
static bool read_item(struct span *rest, struct span *key, struct span *value)
{
	const char *equals = memchr(rest->at, '=', left_of(rest));
	const char *at;

	if (!equals || rest->end - equals < 3 || equals[1] != '\'')
		return false;
	*key = (struct span){rest->at, equals};
	while (key->end > key->at && is_blank(key->end[-1]))
		key->end--;
	for (at = equals + 2; at < rest->end && *at != '\''; at++) {
		if (*at == '\\')
			at++;
	}
	if (at >= rest->end)
		return false;
	*value = (struct span){equals + 2, at};
	rest->at = at + 1;
	return true;
}

/* The first item of this key decides. */
static bool find_item(struct span rest, char out[TRACE_PARENT_LENGTH + 1])
{
	static const char wanted[] = "traceparent";
	char name[sizeof(wanted) - 1], parent[TRACE_PARENT_LENGTH];
	struct span key, value;

	for (;;) {
		while (rest.at < rest.end && (is_blank(*rest.at) || *rest.at == ','))
			rest.at++;
		if (!read_item(&rest, &key, &value))
			return false;
		if (decode(key.at, left_of(&key), name, sizeof(name)) == sizeof(name) &&
			memcmp(name, wanted, sizeof(name)) == 0)
			break;
	}
	if (!trace_comment_is_parent(
		    parent, decode(value.at, left_of(&value), parent, sizeof(parent))))
		return false;
	memcpy(out, parent, sizeof(parent));
	out[sizeof(parent)] = '\0';
	return true;
}

/* --- the comments of a text --------------------------------------------------------------- */

static bool find_first(struct span text, char out[TRACE_PARENT_LENGTH + 1])
{
	const char *end;

	while (text.at < text.end && is_blank(*text.at))
		text.at++;
	if (left_of(&text) < 4 || memcmp(text.at, "/*", 2) != 0)
		return false;
	text.at += 2;
	end = memmem(text.at, left_of(&text), "*/", 2);
	if (!end)
		return false;
	text.end = end;
	return find_item(text, out);
}

/* Move the beginning of the span behind the last occurrence of these two bytes. */
static bool skip_to_last(struct span *text, const char *two)
{
	for (size_t at = left_of(text); at >= 2; at--) {
		if (memcmp(text->at + at - 2, two, 2) == 0) {
			text->at += at;
			return true;
		}
	}
	return false;
}

static bool find_last(struct span text, bool is_end, char out[TRACE_PARENT_LENGTH + 1])
{
	struct span comment;

	while (text.end > text.at && (is_blank(text.end[-1]) || text.end[-1] == ';'))
		text.end--;
	if (left_of(&text) < 2 || memcmp(text.end - 2, "*/", 2) != 0)
		return false;
	text.end -= 2;
	comment = text;
	if (skip_to_last(&comment, "/*"))
		return find_item(comment, out);
	if (!is_end)
		return false;
	/* The comment begins before: read from the end of an item. */
	comment.at = memmem(text.at, left_of(&text), "',", 2);
	return comment.at && find_item((struct span){comment.at + 2, comment.end}, out);
}

bool trace_comment_find(
	const char *text, size_t length, bool is_end, char out[TRACE_PARENT_LENGTH + 1])
{
	const struct span whole = {text, text + length};

	return find_last(whole, is_end, out) || (!is_end && find_first(whole, out));
}
