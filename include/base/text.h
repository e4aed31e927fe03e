/* SPDX-License-Identifier: ISC */
/*
 * Texts: numbers, durations and sizes as people write them, lists of names, bounded copies.
 *
 * None of these depends on the locale or allocates. What a reader returns is set on success
 * only.
 */
#ifndef PGUSHER_BASE_TEXT_H
#define PGUSHER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/* A whole text that is one integer as C writes it: sign, 0x for hex, leading 0 for octal. */
bool text_to_integer(const char *text, long long *out);

/*
 * A length of time: decimal seconds with optional fraction and exponent, or a number with one
 * of the units us, ms, s, min, h, d. Negative and hexadecimal ones are refused. What is longer
 * than some 70,000 years is taken as that, so that it can be added to a time.
 */
bool text_to_duration(const char *text, usec_t *out);

/* A number of bytes: an integer as in text_to_integer() but never negative; B, kB, MB, GB. */
bool text_to_size(const char *text, unsigned long long *out);

/* Copy with a NUL always; false when the text was cut. The size is at least 1. */
bool text_copy(char *out, size_t size, const char *in);

/*
 * The next item of a list in which items are set apart by any of the separator characters, in
 * any number. False at the end. `*cursor` starts as the list and moves behind the item. An item
 * that does not fit in `out` is cut, and `*whole` (which may be NULL) tells.
 */
bool text_next_item(
	const char **cursor, const char *separators, char *out, size_t size, bool *whole);

/* What sets apart the names in settings such as admin_users: commas and white space. */
#define TEXT_LIST_SEPARATORS ", \t\r\n\f\v"

/* Is `name`, exactly, one of the items of a list as above? NULL is an empty list. */
bool text_list_has(const char *list, const char *name);

/*
 * Bytes from a peer as text for people: control bytes and what is not UTF-8 become \xNN. Cut
 * where `out` ends, between characters. The size is at least 1.
 */
void text_escape(char *out, size_t size, const void *bytes, size_t length);

/* Lower-case hex digits; cut where `out` ends. The size is at least 1. */
void text_hex(char *out, size_t size, const void *bytes, size_t length);

/* Is it ASCII, so that it is the same in every encoding that a server may have? */
bool text_is_ascii(const void *bytes, size_t length);

/* Length of the UTF-8 character at the front (RFC 3629); 0: none, or a malformed one. */
size_t text_utf8_length(const void *bytes, size_t length);

/* How much of a text to keep so that at most `limit` bytes stay and no UTF-8 character is cut.
 */
size_t text_utf8_cut(const char *text, size_t length, size_t limit);

#endif
