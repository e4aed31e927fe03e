/* SPDX-License-Identifier: ISC */
/*
 * Reads the text of a command from the front: spaces, words, quoted texts. Pure; the grammars
 * (admin/console/grammar, admin/show/clauses) decide what the words mean.
 */
#ifndef PGUSHER_ADMIN_SHOW_SCAN_H
#define PGUSHER_ADMIN_SHOW_SCAN_H

#include <stdbool.h>
#include <stddef.h>

struct scan {
	const char *at;
	bool too_long; /* a word was cut */
};

/* Skip white space. Returns whether there was any. */
bool scan_space(struct scan *scan);

/* May this character be in a word without quotes? */
bool scan_is_word_character(char c);

/* Take this word, in any case, unless it is only the beginning of a longer word. */
bool scan_keyword(struct scan *scan, const char *keyword);

/* Take these characters. */
bool scan_symbol(struct scan *scan, const char *symbol);

/*
 * Take a quoted text and write it to `out` without its quotes; a doubled quote inside stands
 * for one. `out` is always terminated; a text that does not fit is cut. Returns false, and
 * takes nothing, if there is no quoted text or its closing quote is missing.
 */
bool scan_quoted(struct scan *scan, char quote, char *out, size_t size);

/* Take word characters and the characters in `more`. Returns false if there are none. */
bool scan_bare(struct scan *scan, const char *more, char *out, size_t size);

/* Take a word, bare or in double quotes. */
bool scan_word(struct scan *scan, char *out, size_t size);

/* Is nothing left but white space and one semicolon? */
bool scan_is_over(struct scan *scan);

#endif
