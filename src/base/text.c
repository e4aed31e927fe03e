/* SPDX-License-Identifier: ISC */
/* Parses values of settings, and makes bytes of peers printable. */
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* isspace() and isdigit(), independent of the locale. */
static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* strtoll() skips leading white space, which is not allowed here. */
static bool read_integer(const char *text, long long *out, const char **rest)
{
	char *end;
	long long number;

	if (text == NULL || is_blank(text[0]))
		return false;
	errno = 0;
	number = strtoll(text, &end, 0);
	if (end == text || errno == ERANGE)
		return false;
	*out = number;
	*rest = end;
	return true;
}

bool text_to_integer(const char *text, long long *out)
{
	long long number;
	const char *rest;

	if (!read_integer(text, &number, &rest) || *rest != '\0')
		return false;
	*out = number;
	return true;
}

struct unit {
	const char *name;
	unsigned long long factor;
};

static const struct unit duration_units[] = {
	{"us", 1},
	{"ms", 1000},
	{"s", 1000000},
	{"min", 60 * 1000000ULL},
	{"h", 3600 * 1000000ULL},
	{"d", 86400 * 1000000ULL},
	{NULL, 0},
};

static const struct unit size_units[] = {
	{"B", 1},
	{"kB", 1ULL << 10},
	{"MB", 1ULL << 20},
	{"GB", 1ULL << 30},
	{NULL, 0},
};

/*
 * Returns the factor of the unit in `rest`, leading blanks allowed; `without` if it is empty;
 * 0 if there is no such unit.
 */
static unsigned long long read_unit(
	const struct unit *units, const char *rest, unsigned long long without)
{
	if (*rest == '\0')
		return without;
	while (is_blank(*rest))
		rest++;
	for (const struct unit *unit = units; unit->name != NULL; unit++) {
		if (strcmp(rest, unit->name) == 0)
			return unit->factor;
	}
	return 0;
}

/* strtod() with a decimal point in every locale, and without signs, hex or "inf". */
static bool read_decimal(const char *text, double *out, const char **rest)
{
	const char *digits = text[0] == '+' ? text + 1 : text;
	locale_t plain;
	char *end;

	if (!is_digit(digits[0]) && digits[0] != '.')
		return false;
	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
		return false;
	plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (plain == (locale_t)0)
		return false;
	*out = strtod_l(text, &end, plain);
	freelocale(plain);
	*rest = end;
	return end != text;
}

bool text_to_duration(const char *text, usec_t *out)
{
	/* Two such durations can still be added to a time. */
	const double longest = (double)(INT64_MAX / 4);
	const char *rest;
	double number;
	unsigned long long factor;

	if (text == NULL || !read_decimal(text, &number, &rest))
		return false;
	factor = read_unit(duration_units, rest, USEC_PER_SEC);
	if (factor == 0)
		return false;
	number = number * (double)factor + 0.5;
	*out = number < longest ? (usec_t)number : INT64_MAX / 4;
	return true;
}

bool text_to_size(const char *text, unsigned long long *out)
{
	const char *rest;
	long long number;
	unsigned long long factor;

	if (!read_integer(text, &number, &rest) || number < 0)
		return false;
	factor = read_unit(size_units, rest, 1);
	if (factor == 0 || (unsigned long long)number > ULLONG_MAX / factor)
		return false;
	*out = (unsigned long long)number * factor;
	return true;
}

bool text_copy(char *out, size_t size, const char *in)
{
	size_t length = strlen(in);
	bool whole = length < size;

	if (!whole)
		length = size - 1;
	memcpy(out, in, length);
	out[length] = '\0';
	return whole;
}

bool text_next_item(
	const char **cursor, const char *separators, char *out, size_t size, bool *whole)
{
	const char *item = *cursor + strspn(*cursor, separators);
	size_t length = strcspn(item, separators);
	size_t kept = length < size ? length : size - 1;

	*cursor = item + length;
	if (length == 0)
		return false;
	memcpy(out, item, kept);
	out[kept] = '\0';
	if (whole != NULL)
		*whole = kept == length;
	return true;
}

bool text_list_has(const char *list, const char *name)
{
	size_t wanted = strlen(name);

	if (list == NULL)
		return false;
	for (;;) {
		size_t length;

		list += strspn(list, TEXT_LIST_SEPARATORS);
		length = strcspn(list, TEXT_LIST_SEPARATORS);
		if (length == 0)
			return false;
		if (length == wanted && memcmp(list, name, length) == 0)
			return true;
		list += length;
	}
}

static const char hex_digits[] = "0123456789abcdef";

void text_hex(char *out, size_t size, const void *bytes, size_t length)
{
	const uint8_t *from = bytes;

	for (; length > 0 && size > 2; length--, from++, size -= 2) {
		*out++ = hex_digits[*from >> 4];
		*out++ = hex_digits[*from & 15];
	}
	*out = '\0';
}

const char *text_grouped(uint64_t number, char out[TEXT_GROUPED_SIZE])
{
	char digits[24];
	const int count = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	size_t length = 0;

	for (int i = 0; i < count; i++) {
		if (i > 0 && (count - i) % 3 == 0)
			out[length++] = ',';
		out[length++] = digits[i];
	}
	out[length] = '\0';
	return out;
}

void text_escape(char *out, size_t size, const void *bytes, size_t length)
{
	const uint8_t *from = bytes;

	while (length > 0) {
		size_t character = text_utf8_length(from, length);
		bool plain = character > 0 && from[0] >= ' ' && from[0] != 0x7f;
		size_t taken = plain ? character : 1;
		size_t written = plain ? character : strlen("\\x00");

		if (written >= size)
			break;
		if (plain) {
			memcpy(out, from, character);
		} else {
			memcpy(out, "\\x", 2);
			text_hex(out + 2, 3, from, 1);
		}
		out += written;
		size -= written;
		from += taken;
		length -= taken;
	}
	*out = '\0';
}

/*
 * The valid UTF-8 sequences by their first byte (RFC 3629 section 4). The range of the second
 * byte excludes overlong forms, surrogates and code points above U+10FFFF.
 */
struct utf8_range {
	uint8_t first_low, first_high;
	uint8_t second_low, second_high;
	uint8_t length;
};

static const struct utf8_range utf8_ranges[] = {
	{0xc2, 0xdf, 0x80, 0xbf, 2},
	{0xe0, 0xe0, 0xa0, 0xbf, 3},
	{0xe1, 0xec, 0x80, 0xbf, 3},
	{0xed, 0xed, 0x80, 0x9f, 3},
	{0xee, 0xef, 0x80, 0xbf, 3},
	{0xf0, 0xf0, 0x90, 0xbf, 4},
	{0xf1, 0xf3, 0x80, 0xbf, 4},
	{0xf4, 0xf4, 0x80, 0x8f, 4},
};

static bool fits_range(const struct utf8_range *range, const uint8_t *at, size_t length)
{
	if (at[0] < range->first_low || at[0] > range->first_high || length < range->length)
		return false;
	if (at[1] < range->second_low || at[1] > range->second_high)
		return false;
	for (size_t i = 2; i < range->length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return false;
	}
	return true;
}

size_t text_utf8_length(const void *bytes, size_t length)
{
	const uint8_t *at = bytes;

	if (length == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	for (size_t i = 0; i < sizeof(utf8_ranges) / sizeof(utf8_ranges[0]); i++) {
		if (fits_range(&utf8_ranges[i], at, length))
			return utf8_ranges[i].length;
	}
	return 0;
}

bool text_is_ascii(const void *bytes, size_t length)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < length; i++) {
		if (at[i] >= 0x80)
			return false;
	}
	return true;
}

size_t text_utf8_cut(const char *text, size_t length, size_t limit)
{
	size_t kept = limit;

	if (length <= limit)
		return length;
	/* Step back over continuation bytes; a character has at most three. */
	while (kept > 0 && limit - kept < 3 && ((uint8_t)text[kept] & 0xc0) == 0x80)
		kept--;
	/* Not UTF-8: cut anywhere. */
	return ((uint8_t)text[kept] & 0xc0) == 0x80 ? limit : kept;
}
