/* SPDX-License-Identifier: ISC */
/* The parts of the TOML reader: toml.c has tables, toml_values.c values, toml_scan.c the rest. */
#ifndef PGUSHER_SETUP_CONVERT_TOML_PARTS_H
#define PGUSHER_SETUP_CONVERT_TOML_PARTS_H

#include <stdarg.h>

#include "setup/convert/source.h"

struct toml {
	struct source *source;
	const char *file;
	const char *text, *at, *end;
	unsigned line; /* of `at` */
	struct problems *problems;
};

/* What may still be added to a table, in `mark`. */
enum toml_mark {
	TOML_OPEN, /* a value, or a table that only headers below it have named */
	TOML_DEFINED, /* has had its header */
	TOML_DOTTED, /* made by dotted keys */
	TOML_CLOSED, /* an inline table or an array of values */
	TOML_TABLES, /* an array of tables */
};

/* Add an error at this byte. Returns false. */
bool toml_refuse(struct toml *toml, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The byte at the front; 0 at the end, which is no byte of the text. */
char toml_peek(const struct toml *toml);

/* Skip tabs and spaces. */
void toml_skip_blanks(struct toml *toml);

/* Skip a line end; false, without an error, if there is none. */
bool toml_skip_line_end(struct toml *toml);

/* Skip a comment, if one is at the front, up to the line end. False: it has a control character. */
bool toml_skip_comment(struct toml *toml);

/* Read a string in any of the four kinds. NULL, with an error, at a mistake. */
const char *toml_read_string(struct toml *toml);

/*
 * Read a number, a boolean or a date. NULL, with an error, at a mistake. The text is as in the
 * tree.
 */
const char *toml_read_word(struct toml *toml);

#endif
