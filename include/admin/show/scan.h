/* SPDX-License-Identifier: ISC */
/*
 * Reads a command's text from the front: spaces, words, quoted texts. Pure; what the words mean
 * is for the grammars on top of it.
 */
#ifndef PGUSHER_ADMIN_SHOW_SCAN_H
#define PGUSHER_ADMIN_SHOW_SCAN_H

#include <stdbool.h>
#include <stddef.h>

struct scan {
	const char *at;
	bool too_long; /* some word was cut */
};

/* Skip white space; was there any? */
bool scan_space(struct scan *scan);

/* Is this a character of a word without quotes? */
bool scan_is_word_character(char c);

/* Take this word, whatever its case, unless it is only the beginning of a longer one. */
bool scan_keyword(struct scan *scan, const char *keyword);

/* Take these characters. */
bool scan_symbol(struct scan *scan, const char *symbol);

/*
 * Take a text without its quotes into `out`, which is always terminated; what does not fit is
 * cut. A quote is doubled inside. False, and nothing is taken: there is none, or it has no end.
 */
bool scan_quoted(struct scan *scan, char quote, char *out, size_t size);

/* Take word characters and, if `more` is not "", those in it. */
bool scan_bare(struct scan *scan, const char *more, char *out, size_t size);

/* A word, bare or in double quotes. */
bool scan_word(struct scan *scan, char *out, size_t size);

/* Is nothing left but white space and one semicolon? */
bool scan_is_over(struct scan *scan);

#endif
