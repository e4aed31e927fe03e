/* SPDX-License-Identifier: ISC */
#include "top/printable.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"

enum {
	PIECE_SIZE = MB_LEN_MAX + 16,
	MARKS_MOST = 2, /* combining characters that one character may have */
};

/* What one character of the text becomes. */
struct piece {
	char bytes[PIECE_SIZE];
	size_t length, columns;
	size_t taken; /* bytes of the text */
	bool mark; /* a combining character */
};

static uint32_t decode(const unsigned char *bytes, size_t length)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t point = bytes[0] & first[length];

	for (size_t i = 1; i < length; i++)
		point = point << 6 | (bytes[i] & 0x3f);
	return point;
}

/* Characters without a width that reorder, join or hide what is beside them. */
static bool is_deceptive(uint32_t point)
{
	return point == 0xad || point == 0x34f || point == 0x61c || point == 0x180e ||
		(point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
		(point >= 0x2060 && point <= 0x206f) || point == 0xfeff ||
		(point >= 0xfff9 && point <= 0xfffb) || point >= 0xe0000;
}

static bool is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

/* Spell out what is not shown itself. */
static void spell(struct piece *piece, uint32_t point)
{
	const int length = snprintf(piece->bytes, sizeof(piece->bytes),
		point < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)point);

	piece->length = piece->columns = (size_t)length;
}

static void encode(struct piece *piece, uint32_t point)
{
	const int width = wcwidth((wchar_t)point);
	mbstate_t state = {0};
	size_t length;

	length = width < 0 ? (size_t)-1 : wcrtomb(piece->bytes, (wchar_t)point, &state);
	if (length == (size_t)-1) {
		piece->bytes[0] = '?';
		piece->length = piece->columns = 1;
		return;
	}
	piece->length = length;
	piece->columns = (size_t)width;
	piece->mark = width == 0;
}

/* The next character of a text that is not at its end. */
static void next_piece(const char *text, struct piece *piece)
{
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t point;

	*piece = (struct piece){.taken = text_utf8_length(text, strnlen(text, 4))};
	if (piece->taken == 0) {
		piece->taken = 1;
		spell(piece, bytes[0]);
		return;
	}
	point = decode(bytes, piece->taken);
	if (is_control(point) || is_deceptive(point))
		spell(piece, point);
	else
		encode(piece, point);
}

/* Whether a combining character is left out: it has none to combine with, or there are too many. */
static bool is_stray(const struct piece *piece, unsigned *marks)
{
	if (!piece->mark) {
		*marks = 0;
		return false;
	}
	return (*marks)++ >= MARKS_MOST;
}

size_t printable_write(char *out, size_t size, const char *text, size_t columns)
{
	size_t length = 0, used = 0, cut = 0, cut_columns = 0;
	unsigned marks = MARKS_MOST;
	struct piece piece;

	for (; *text; text += piece.taken) {
		next_piece(text, &piece);
		if (is_stray(&piece, &marks))
			continue;
		if (used + piece.columns > columns || length + piece.length >= size) {
			if (columns == 0)
				break;
			out[cut] = PRINTABLE_CUT;
			out[cut + 1] = '\0';
			return cut_columns + 1;
		}
		memcpy(out + length, piece.bytes, piece.length);
		length += piece.length;
		used += piece.columns;
		/* Behind this character there is still room for the sign. */
		if (used < columns && length + 1 < size) {
			cut = length;
			cut_columns = used;
		}
	}
	out[length] = '\0';
	return used;
}

size_t printable_width(const char *text, size_t most)
{
	unsigned marks = MARKS_MOST;
	struct piece piece;
	size_t used = 0;

	for (; *text && used < most; text += piece.taken) {
		next_piece(text, &piece);
		if (!is_stray(&piece, &marks))
			used += piece.columns;
	}
	return used < most ? used : most;
}

size_t printable_fold(const char *text, size_t columns)
{
	size_t length = 0, used = 0, blank = 0;
	struct piece piece;

	for (; text[length]; length += piece.taken) {
		next_piece(text + length, &piece);
		if (length > 0 && used + piece.columns > columns)
			return blank > 0 ? blank : length;
		used += piece.columns;
		if (text[length] == ' ')
			blank = length + 1;
	}
	return length;
}
