/* SPDX-License-Identifier: ISC */
/*
 * Reads the tokens of SQL text as PostgreSQL does ("Lexical Structure"), as far as that is needed
 * to understand statements that a client sends by themselves. What it does not read with
 * certainty is SQL_UNKNOWN.
 */
#ifndef PGUSHER_WIRE_SQL_SCANNER_H
#define PGUSHER_WIRE_SQL_SCANNER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum sql_token {
	SQL_END, /* the text ends here */
	SQL_WORD, /* a key word or a name without quotes */
	SQL_NAME, /* a name in double quotes */
	SQL_STRING, /* a constant in quotes or dollars */
	SQL_ESCAPED, /* the same with escapes, which are not read: its text is not its value */
	SQL_NUMBER, /* digits, with a point or an exponent or not */
	SQL_PARAMETER, /* $1 */
	SQL_SYMBOL, /* any other character */
	SQL_UNKNOWN,
};

struct sql_scanner {
	const char *at, *end;
	/* A backslash in '...' escapes the next character: standard_conforming_strings is off. */
	bool escapes;
};

/* The text ends at `length` bytes, or before at its first NUL. It must outlive the scanner. */
void sql_scanner_init(
	struct sql_scanner *scanner, const char *text, size_t length, bool escapes);

/* Skip white space and comments, which nest. */
void sql_scanner_skip_white(struct sql_scanner *scanner);

/*
 * Read the next token. `out` gets its text with a NUL: a word in lower case (ASCII only), a name
 * or a string without its quotes, a symbol as one character. Returns SQL_UNKNOWN also when out of
 * memory.
 */
enum sql_token sql_scanner_next(struct sql_scanner *scanner, struct buffer *out);

/* Consume the next word if it is this one, which is in lower case. */
bool sql_scanner_match(struct sql_scanner *scanner, const char *word);

/* Consume white space, a final semicolon and what is white behind it; true at the end of text. */
bool sql_scanner_ends(struct sql_scanner *scanner);

#endif
