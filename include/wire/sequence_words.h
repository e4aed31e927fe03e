/* SPDX-License-Identifier: ISC */
/*
 * Which texts may draw values from sequences, or ask for the last one: for currval() and lastval()
 * these are those of the session. No tag tells of it, and no question finds it.
 */
#ifndef PGUSHER_WIRE_SEQUENCE_WORDS_H
#define PGUSHER_WIRE_SEQUENCE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns whether the text, which ends at `length` bytes or at its first NUL, has one of the words
 * nextval, currval, lastval, setval, insert and copy: the last two may use the default of a column
 * that calls nextval(). True for a text that is too long to be read, or has names in escapes.
 */
bool sequence_words_in(const char *text, size_t length);

#endif
