/* SPDX-License-Identifier: ISC */
#include "wire/sql_scanner.h"

#include <string.h>
#include <strings.h>

void sql_scanner_init(
	struct sql_scanner *scanner, const char *text, size_t length, bool escapes)
{
	*scanner = (struct sql_scanner){text, text + strnlen(text, length), escapes};
}

/* --- white space -------------------------------------------------------------------------- */

static bool skip_two(struct sql_scanner *scanner, const char *two)
{
	if (scanner->end - scanner->at < 2 || memcmp(scanner->at, two, 2) != 0)
		return false;
	scanner->at += 2;
	return true;
}

/* Skip a comment, which may contain nested comments. */
static bool skip_comment(struct sql_scanner *scanner)
{
	int depth = 1;

	if (skip_two(scanner, "--")) {
		while (scanner->at < scanner->end && *scanner->at != '\n' &&
			*scanner->at != '\r')
			scanner->at++;
		return true;
	}
	if (!skip_two(scanner, "/*"))
		return false;
	while (scanner->at < scanner->end && depth > 0) {
		if (skip_two(scanner, "/*"))
			depth++;
		else if (skip_two(scanner, "*/"))
			depth--;
		else
			scanner->at++;
	}
	return true;
}

void sql_scanner_skip_white(struct sql_scanner *scanner)
{
	do {
		while (scanner->at < scanner->end && *scanner->at &&
			strchr(" \t\n\r\f\v", *scanner->at))
			scanner->at++;
	} while (skip_comment(scanner));
}

bool sql_scanner_ends(struct sql_scanner *scanner)
{
	sql_scanner_skip_white(scanner);
	if (scanner->at < scanner->end && *scanner->at == ';')
		scanner->at++;
	sql_scanner_skip_white(scanner);
	return scanner->at == scanner->end;
}

/* --- words -------------------------------------------------------------------------------- */

static bool begins_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		(unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_in_name(char c)
{
	return begins_name(c) || is_digit(c) || c == '$';
}

/* Returns the character at this distance; NUL behind the end. */
static char peek(const struct sql_scanner *scanner, size_t distance)
{
	return distance < (size_t)(scanner->end - scanner->at) ? scanner->at[distance] : '\0';
}

bool sql_scanner_match(struct sql_scanner *scanner, const char *word)
{
	const size_t length = strlen(word);

	sql_scanner_skip_white(scanner);
	if ((size_t)(scanner->end - scanner->at) < length ||
		strncasecmp(scanner->at, word, length) != 0 ||
		is_in_name(peek(scanner, length)))
		return false;
	scanner->at += length;
	return true;
}

static enum sql_token read_word(struct sql_scanner *scanner, struct buffer *out)
{
	while (is_in_name(peek(scanner, 0))) {
		const char c = *scanner->at++;
		const char small = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;

		buffer_append(out, &small, 1);
	}
	return SQL_WORD;
}

/* --- quotes ------------------------------------------------------------------------------- */

/*
 * Read up to the closing quote; two quotes in a row are one, and so are two backslashes if these
 * escape. Returns `kind`, SQL_ESCAPED if there is another escape, or SQL_UNKNOWN without an end.
 */
static enum sql_token read_quoted(
	struct sql_scanner *scanner, enum sql_token kind, bool escapes, struct buffer *out)
{
	const char quote = *scanner->at++;

	while (scanner->at < scanner->end) {
		const char c = *scanner->at++;
		const bool escape = c == '\\' && escapes;

		if (c == quote && peek(scanner, 0) != quote)
			return kind;
		if (escape && peek(scanner, 0) != '\\')
			kind = SQL_ESCAPED;
		if ((c == quote || escape) && scanner->at < scanner->end)
			scanner->at++;
		buffer_append(out, &c, 1);
	}
	return SQL_UNKNOWN;
}

static enum sql_token read_name(struct sql_scanner *scanner, struct buffer *out)
{
	return read_quoted(scanner, SQL_NAME, false, out);
}

/* Strings that only a new line separates are one: this is left to the server. */
static enum sql_token read_string(struct sql_scanner *scanner, bool escapes, struct buffer *out)
{
	const enum sql_token token = read_quoted(scanner, SQL_STRING, escapes, out);
	struct sql_scanner ahead = *scanner;

	sql_scanner_skip_white(&ahead);
	return peek(&ahead, 0) == '\'' ? SQL_UNKNOWN : token;
}

/* $tag$ text $tag$. The tag is a name without dollars, or empty. */
static enum sql_token read_dollars(struct sql_scanner *scanner, struct buffer *out)
{
	const char *begin = scanner->at, *found;
	size_t size = 1;

	while (is_in_name(peek(scanner, size)) && peek(scanner, size) != '$')
		size++;
	if (peek(scanner, size) != '$')
		return SQL_UNKNOWN;
	size++;
	scanner->at += size;
	found = memmem(scanner->at, (size_t)(scanner->end - scanner->at), begin, size);
	if (!found)
		return SQL_UNKNOWN;
	buffer_append(out, scanner->at, (size_t)(found - scanner->at));
	scanner->at = found + size;
	return SQL_STRING;
}

/* --- numbers ------------------------------------------------------------------------------ */

static void read_digits(struct sql_scanner *scanner, struct buffer *out)
{
	while (is_digit(peek(scanner, 0)))
		buffer_append(out, scanner->at++, 1);
}

static enum sql_token read_parameter(struct sql_scanner *scanner, struct buffer *out)
{
	buffer_append(out, scanner->at++, 1);
	read_digits(scanner, out);
	return is_in_name(peek(scanner, 0)) ? SQL_UNKNOWN : SQL_PARAMETER;
}

/* Versions differ in what may follow the digits of a number (0x1F, 1_000, 10MB). */
static enum sql_token read_number(struct sql_scanner *scanner, struct buffer *out)
{
	read_digits(scanner, out);
	if (peek(scanner, 0) == '.') {
		buffer_append(out, scanner->at++, 1);
		read_digits(scanner, out);
	}
	return is_in_name(peek(scanner, 0)) || peek(scanner, 0) == '.' ? SQL_UNKNOWN
								       : SQL_NUMBER;
}

/* --- tokens ------------------------------------------------------------------------------- */

/* E'...', and other letters before a quote, which are left to the server: B, N, X, U&. */
static bool is_prefixed(const struct sql_scanner *scanner, char letter)
{
	return (peek(scanner, 0) | 0x20) == letter && peek(scanner, 1) == '\'';
}

static bool has_unknown_prefix(const struct sql_scanner *scanner)
{
	return is_prefixed(scanner, 'b') || is_prefixed(scanner, 'n') ||
		is_prefixed(scanner, 'x') ||
		((peek(scanner, 0) | 0x20) == 'u' && peek(scanner, 1) == '&');
}

static enum sql_token read_token(struct sql_scanner *scanner, struct buffer *out)
{
	const char c = peek(scanner, 0);

	if (scanner->at == scanner->end)
		return SQL_END;
	if (has_unknown_prefix(scanner))
		return SQL_UNKNOWN;
	if (is_prefixed(scanner, 'e')) {
		scanner->at++;
		return read_string(scanner, true, out);
	}
	if (begins_name(c))
		return read_word(scanner, out);
	if (c == '"')
		return read_name(scanner, out);
	if (c == '\'')
		return read_string(scanner, scanner->escapes, out);
	if (c == '$' && is_digit(peek(scanner, 1)))
		return read_parameter(scanner, out);
	if (c == '$')
		return read_dollars(scanner, out);
	if (is_digit(c) || (c == '.' && is_digit(peek(scanner, 1))))
		return read_number(scanner, out);
	buffer_append(out, scanner->at++, 1);
	return SQL_SYMBOL;
}

enum sql_token sql_scanner_next(struct sql_scanner *scanner, struct buffer *out)
{
	enum sql_token token;

	buffer_clear(out);
	sql_scanner_skip_white(scanner);
	token = read_token(scanner, out);
	return buffer_append(out, "", 1) && !out->failed ? token : SQL_UNKNOWN;
}
