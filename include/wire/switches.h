/* SPDX-License-Identifier: ISC */
/*
 * Parses the text of an `options` parameter as PostgreSQL does: command-line switches, each of
 * which sets a parameter or has no effect.
 *
 * Protocol: "Message Formats", StartupMessage; PostgreSQL: "postgres", Options. White space
 * separates words, a backslash escapes the next character. Letters without an argument may
 * share a word; an argument is the rest of its word, or the next word.
 */
#ifndef PGUSHER_WIRE_SWITCHES_H
#define PGUSHER_WIRE_SWITCHES_H

#include "wire/startup.h"

struct switches_walk {
	const char *at; /* the text after the present word */
	struct buffer word; /* unescaped */
	size_t next; /* index of the next letter in the word; 0: the word is finished */
	int debug_level; /* of a -d that still has settings to return */
	bool ended; /* by `--` */
};

void switches_walk_begin(struct switches_walk *walk, const char *options);

/*
 * Get the next setting; name and value are valid until the next call. STARTUP_BROKEN for an
 * unknown switch.
 */
enum startup_step switches_walk_next(
	struct switches_walk *walk, const char **name, const char **value);

/* Free the iterator's memory; allowed after any step. */
void switches_walk_end(struct switches_walk *walk);

/*
 * For parsers with the same words: copy a word, up to white space, unescaped and with a NUL,
 * and return what follows it; skip white space.
 */
const char *switches_copy_word(struct buffer *text, const char *at);
const char *switches_skip_blanks(const char *at);

#endif
