/* SPDX-License-Identifier: ISC */
/*
 * The words of files in the style of pg_hba.conf: lines, and the tokens of a line.
 *
 * Tokens are set apart by blanks; `,` is one of its own; `#` begins a comment. A token in double
 * quotes holds anything, with "" for a quote, and is never a keyword. A bare one ends at a blank,
 * `,`, `#` or a quote. No line is continued on the next one.
 */
#ifndef PGUSHER_CONFIG_TOKENS_H
#define PGUSHER_CONFIG_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum token_kind {
	TOKEN_END, /* of the line, or a comment */
	TOKEN_COMMA,
	TOKEN_BARE,
	TOKEN_QUOTED,
	TOKEN_BROKEN, /* a quote is not closed, or there is a NUL; nothing comes behind it */
};

/* A walk over lines that hold anything, and over the tokens of one. */
struct tokens {
	enum token_kind kind; /* of the present token */
	const char *text; /* what it says, without quotes; good until the next one */
	unsigned line; /* that it stands in, from 1 */
	const char *behind; /* the rest of the line as written, up to `line_end` */
	const char *line_end;
	const char *end; /* of all */
	char *scratch; /* owned: room for any token */
	size_t size;
};

/*
 * Start over a text, which must outlive the walk; a byte order mark in front is passed over.
 * False without memory; tokens_end() is due only after true.
 */
bool tokens_begin(struct tokens *walk, const char *text, size_t length);

/* Go to the first token of the next line that has any; false at the end. */
bool tokens_next_line(struct tokens *walk);

/* Go to the next token of the line. */
void tokens_next(struct tokens *walk);

/* Is the present token this bare word? */
bool tokens_is_word(const struct tokens *walk, const char *word);

/* What is left of the line behind the present token, as written, without blanks around it. */
const char *tokens_rest(const struct tokens *walk, size_t *length);

/* Wipe and free. */
void tokens_end(struct tokens *walk);

#endif
