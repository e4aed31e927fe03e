/* SPDX-License-Identifier: ISC */
/*
 * Tokenizer for files in the style of pg_hba.conf: lines, and the tokens of a line.
 *
 * Tokens are separated by blanks; `,` is a token of its own; `#` starts a comment. A token in
 * double quotes may contain anything, with "" for a quote, and is never a keyword. A bare
 * token ends at a blank, `,`, `#` or a quote. There are no continuation lines.
 */
#ifndef PGUSHER_CONFIG_TOKENS_H
#define PGUSHER_CONFIG_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum token_kind {
	TOKEN_END, /* end of the line, or a comment */
	TOKEN_COMMA,
	TOKEN_BARE,
	TOKEN_QUOTED,
	TOKEN_BROKEN, /* an unclosed quote, or a NUL; the rest of the line is skipped */
};

/* Iterator over non-empty lines and the tokens of a line. */
struct tokens {
	enum token_kind kind; /* of the present token */
	const char *text; /* unquoted; valid until the next token */
	unsigned line; /* of the token, from 1 */
	const char *behind; /* the rest of the line, verbatim, up to `line_end` */
	const char *line_end;
	const char *end; /* of the whole text */
	char *scratch; /* owned: large enough for any token */
	size_t size;
};

/*
 * Start at the beginning of a text, which must outlive the walk; a byte order mark is skipped.
 * Returns false when out of memory; tokens_end() must be called after true only.
 */
bool tokens_begin(struct tokens *walk, const char *text, size_t length);

/* Go to the first token of the next line that has tokens; false at the end. */
bool tokens_next_line(struct tokens *walk);

/* Go to the next token of the line. */
void tokens_next(struct tokens *walk);

/* Whether the present token is this bare word. */
bool tokens_is_word(const struct tokens *walk, const char *word);

/*
 * The rest of the line after the present token, verbatim, without surrounding blanks.
 * `*length` is set to its length in bytes.
 */
const char *tokens_rest(const struct tokens *walk, size_t *length);

/* Wipe and free the walk's memory. */
void tokens_end(struct tokens *walk);

#endif
