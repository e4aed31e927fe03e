/* SPDX-License-Identifier: ISC */
/* Strings, numbers, booleans and dates of TOML. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "setup/convert/toml_parts.h"

/* --- strings ------------------------------------------------------------------------------ */

/* Output never is longer than the input: each escape is longer than what it stands for. */
struct string {
	char *out;
	size_t length;
};

static unsigned hex_value(const char *at, unsigned digits, bool *good)
{
	unsigned value = 0;

	*good = true;
	for (unsigned i = 0; i < digits; i++) {
		const int c = (unsigned char)at[i];

		if (!isxdigit(c)) {
			*good = false;
			return 0;
		}
		value = value * 16 + (unsigned)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
	}
	return value;
}

static void add_character(struct string *string, uint32_t code)
{
	char *out = string->out + string->length;

	if (code < 0x80) {
		out[0] = (char)code;
		string->length += 1;
	} else if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		string->length += 2;
	} else if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		string->length += 3;
	} else {
		out[0] = (char)(0xf0 | code >> 18);
		out[1] = (char)(0x80 | (code >> 12 & 0x3f));
		out[2] = (char)(0x80 | (code >> 6 & 0x3f));
		out[3] = (char)(0x80 | (code & 0x3f));
		string->length += 4;
	}
}

/* \uXXXX or \UXXXXXXXX; `at` is at the letter. */
static bool read_code(struct toml *toml, struct string *string)
{
	const unsigned digits = toml->at[0] == 'u' ? 4 : 8;
	bool good = false;
	uint32_t code = 0;

	if ((size_t)(toml->end - toml->at) > digits)
		code = hex_value(toml->at + 1, digits, &good);
	if (!good)
		return toml_refuse(toml, toml->at, "\\%c needs %u hexadecimal digits",
			toml->at[0], digits);
	if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return toml_refuse(toml, toml->at, "this is no character that a text may have");
	add_character(string, code);
	toml->at += 1 + digits;
	return true;
}

/* A backslash at the end of a line removes all white space behind it. False if it is none. */
static bool skip_joined_line(struct toml *toml)
{
	const char *at = toml->at;

	while (at < toml->end && (*at == ' ' || *at == '\t'))
		at++;
	if (at == toml->end || (*at != '\n' && *at != '\r'))
		return false;
	for (; at < toml->end && strchr(" \t\r\n", *at); at++)
		toml->line += *at == '\n';
	toml->at = at;
	return true;
}

static bool read_escape(struct toml *toml, struct string *string, bool several_lines)
{
	static const char letters[] = "btnfr\"\\", meanings[] = "\b\t\n\f\r\"\\";
	const char *found;

	toml->at++;
	if (several_lines && skip_joined_line(toml))
		return true;
	if (toml->at == toml->end)
		return toml_refuse(toml, toml->at, "the string has no end");
	if (*toml->at == 'u' || *toml->at == 'U')
		return read_code(toml, string);
	found = strchr(letters, *toml->at);
	if (!found)
		return toml_refuse(toml, toml->at,
			"no such escape: \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX are");
	string->out[string->length++] = meanings[found - letters];
	toml->at++;
	return true;
}

/* How many quotes are at the front, up to `most`. */
static unsigned count_quotes(const struct toml *toml, char quote, unsigned most)
{
	unsigned count = 0;

	while (count < most && toml->at + count < toml->end && toml->at[count] == quote)
		count++;
	return count;
}

static bool is_control(char c)
{
	return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

/* One byte, or a line end, of the string. */
static bool read_byte(struct toml *toml, struct string *string, bool several_lines)
{
	if (several_lines && toml_skip_line_end(toml)) {
		string->out[string->length++] = '\n';
		return true;
	}
	if (*toml->at == '\n' || *toml->at == '\r')
		return toml_refuse(toml, toml->at,
			"the string has no end in its line: several lines need three quotes");
	if (is_control(*toml->at))
		return toml_refuse(toml, toml->at, "a control character must be escaped");
	string->out[string->length++] = *toml->at++;
	return true;
}

/* Quotes at the front: the end of a string in three quotes, with up to two quotes before it. */
static bool ends_here(struct toml *toml, struct string *string, char quote)
{
	unsigned count = count_quotes(toml, quote, 5);

	if (count < 3)
		return false;
	toml->at += count;
	for (; count > 3; count--)
		string->out[string->length++] = quote;
	return true;
}

static bool read_body(struct toml *toml, struct string *string, char quote, bool several_lines)
{
	const char *start = toml->at;

	while (toml->at < toml->end) {
		if (*toml->at == quote && !several_lines) {
			toml->at++;
			return true;
		}
		if (*toml->at == quote && ends_here(toml, string, quote))
			return true;
		if (*toml->at == '\\' && quote == '"') {
			if (!read_escape(toml, string, several_lines))
				return false;
		} else if (!read_byte(toml, string, several_lines)) {
			return false;
		}
	}
	return toml_refuse(toml, start, "the string that starts here has no end");
}

const char *toml_read_string(struct toml *toml)
{
	const char quote = *toml->at;
	const bool several_lines = count_quotes(toml, quote, 3) == 3;
	struct string string = {0};
	char *copy;

	toml->at += several_lines ? 3 : 1;
	if (several_lines)
		toml_skip_line_end(toml);
	string.out = malloc((size_t)(toml->end - toml->at) + 1);
	if (!string.out) {
		toml_refuse(toml, toml->at, "out of memory");
		return NULL;
	}
	copy = read_body(toml, &string, quote, several_lines)
		? source_copy(toml->source, string.out, string.length)
		: NULL;
	explicit_bzero(string.out, string.length);
	free(string.out);
	return copy;
}

/* --- words -------------------------------------------------------------------------------- */

static bool is_digit(char c, bool is_hex)
{
	return is_hex ? isxdigit((unsigned char)c) : isdigit((unsigned char)c);
}

/* Copy digits without their underscores, each of which is between two digits. */
static bool copy_digits(const char *from, size_t length, char *out, size_t size)
{
	const bool is_hex = length > 2 && from[0] == '0' && from[1] == 'x';
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		if (from[i] == '_') {
			if (i == 0 || i + 1 == length || !is_digit(from[i - 1], is_hex) ||
				!is_digit(from[i + 1], is_hex))
				return false;
			continue;
		}
		if (used + 1 >= size)
			return false;
		out[used++] = from[i];
	}
	out[used] = '\0';
	return true;
}

static bool has_only(const char *text, const char *bytes)
{
	return text[0] != '\0' && text[strspn(text, bytes)] == '\0';
}

/* 0x, 0o, 0b. */
static bool read_prefixed(const char *word, char *out, size_t size)
{
	static const struct {
		char letter;
		int base;
		const char *digits;
	} bases[] = {
		{'x', 16, "0123456789abcdefABCDEF"},
		{'o', 8, "01234567"},
		{'b', 2, "01"},
	};

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		unsigned long long value;

		if (word[0] != '0' || word[1] != bases[i].letter ||
			!has_only(word + 2, bases[i].digits))
			continue;
		errno = 0;
		value = strtoull(word + 2, NULL, bases[i].base);
		if (errno != 0 || value > INT64_MAX)
			return false;
		snprintf(out, size, "%llu", value);
		return true;
	}
	return false;
}

static bool read_decimal(const char *word, char *out, size_t size)
{
	const char *digits = word + (word[0] == '+' || word[0] == '-');
	long long value;

	if (!has_only(digits, "0123456789") || (digits[0] == '0' && digits[1] != '\0'))
		return false;
	errno = 0;
	value = strtoll(word, NULL, 10);
	if (errno != 0)
		return false;
	snprintf(out, size, "%lld", value);
	return true;
}

/* [+-]digits[.digits][e[+-]digits], inf, nan. */
static bool is_float(const char *word)
{
	const char *at = word + (word[0] == '+' || word[0] == '-');
	size_t digits = strspn(at, "0123456789");

	if (strcmp(at, "inf") == 0 || strcmp(at, "nan") == 0)
		return true;
	if (digits == 0 || (digits > 1 && at[0] == '0'))
		return false;
	at += digits;
	if (*at == '.') {
		digits = strspn(++at, "0123456789");
		at += digits;
		if (digits == 0)
			return false;
	}
	if (*at == 'e' || *at == 'E') {
		at++;
		at += *at == '+' || *at == '-';
		return has_only(at, "0123456789");
	}
	/* Digits alone are an integer, or too many. */
	return *at == '\0' && strchr(word, '.');
}

/* 1979-05-27T07:32:00Z, with parts left out. Only its form is looked at. */
static bool is_date(const char *word)
{
	const size_t digits = strspn(word, "0123456789");

	return ((digits == 4 && word[4] == '-') || (digits == 2 && word[2] == ':')) &&
		has_only(word, "0123456789-:.TtZz+ ");
}

static bool is_boolean(const char *word)
{
	return strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
}

/* A date and a time may have a blank between them. */
static size_t word_length(const struct toml *toml)
{
	static const char bytes[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.:";
	const char *at = toml->at;

	while (at < toml->end && *at != '\0' && strchr(bytes, *at))
		at++;
	if (at - toml->at == 10 && toml->at[4] == '-' && toml->end - at > 2 && at[0] == ' ' &&
		isdigit((unsigned char)at[1])) {
		at++;
		while (at < toml->end && *at != '\0' && strchr(bytes, *at))
			at++;
	}
	return (size_t)(at - toml->at);
}

const char *toml_read_word(struct toml *toml)
{
	const char *start = toml->at;
	const size_t length = word_length(toml);
	char word[128], number[32];
	const char *value = word;

	if (length == 0) {
		toml_refuse(toml, start, "a value is missing here");
		return NULL;
	}
	if (!copy_digits(start, length, word, sizeof(word)))
		value = NULL;
	else if (read_prefixed(word, number, sizeof(number)) ||
		read_decimal(word, number, sizeof(number)))
		value = number;
	else if (!is_boolean(word) && !is_float(word) && !is_date(word))
		value = NULL;
	if (!value || (is_boolean(word) && length != strlen(word))) {
		toml_refuse(toml, start,
			"this is no value: a text needs quotes, a switch is true or false");
		return NULL;
	}
	toml->at += length;
	return source_copy(toml->source, value, strlen(value));
}
