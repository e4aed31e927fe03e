/* SPDX-License-Identifier: ISC */
/*
 * The text of an `options` parameter as PostgreSQL reads it: switches of its command line, each of
 * which stands for a setting, or for nothing.
 *
 * Protocol: "Message Formats", StartupMessage; PostgreSQL: "postgres", Options. White space sets
 * words apart, a backslash takes the next character as it is. Letters without an argument may
 * share a word; an argument is the rest of its word, or the next one.
 */
#ifndef PGUSHER_WIRE_SWITCHES_H
#define PGUSHER_WIRE_SWITCHES_H

#include "wire/startup.h"

struct switches_walk {
	const char *at; /* what follows the present word */
	struct buffer word; /* without its backslashes */
	size_t next; /* the letter in it that comes next; 0: the word is done */
	int debug_level; /* of a -d whose other settings are still to come */
	bool ended; /* by -- */
};

void switches_walk_begin(struct switches_walk *walk, const char *options);

/* The next setting; name and value are good until the next call. Broken: no such switch. */
enum startup_step switches_walk_next(
	struct switches_walk *walk, const char **name, const char **value);

/* Let the memory go, after any step. */
void switches_walk_end(struct switches_walk *walk);

/*
 * For those who read words in the same way: copy one, up to white space, without backslashes and
 * with a NUL; returns what follows it. And step over white space.
 */
const char *switches_copy_word(struct buffer *text, const char *at);
const char *switches_skip_blanks(const char *at);

#endif
