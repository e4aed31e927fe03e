/* SPDX-License-Identifier: ISC */
/*
 * Text helpers: numbers, durations and sizes as written in settings, lists of names, bounded
 * copies.
 *
 * None of these depends on the locale or allocates. Output parameters are set on success only.
 */
#ifndef PGUSHER_BASE_TEXT_H
#define PGUSHER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Parse a text that is one integer in C syntax: sign, 0x for hex, leading 0 for octal. Returns
 * false for anything else, trailing text included.
 */
bool text_to_integer(const char *text, long long *out);

/*
 * Parse a duration: decimal seconds with optional fraction and exponent, or a number with one
 * of the units us, ms, s, min, h, d. Returns false for negative and hexadecimal numbers and
 * anything else. Durations are limited to some 70,000 years, so that they can be added to a
 * time.
 */
bool text_to_duration(const char *text, usec_t *out);

/*
 * Parse a number of bytes: a non-negative integer as in text_to_integer(), with optional unit
 * B, kB, MB or GB.
 */
bool text_to_size(const char *text, unsigned long long *out);

/*
 * Copy and always terminate with a NUL. Returns false if the text was cut. `size` is at least
 * 1.
 */
bool text_copy(char *out, size_t size, const char *in);

/*
 * Copy the next item of a list to `out`. Items are separated by any number of the separator
 * characters. Returns false at the end. `*cursor` starts as the list and moves past the item.
 * An item that does not fit in `out` is cut; `*whole` (which may be NULL) tells whether it was
 * not.
 */
bool text_next_item(
	const char **cursor, const char *separators, char *out, size_t size, bool *whole);

/* Separators of names in settings such as admin_users: commas and white space. */
#define TEXT_LIST_SEPARATORS ", \t\r\n\f\v"

/* Whether one of the items of such a list equals `name` exactly. A NULL list is empty. */
bool text_list_has(const char *list, const char *name);

/*
 * Make bytes from a peer printable: control bytes and bytes that are not UTF-8 become \xNN.
 * Cut at the end of `out`, between characters. `size` is at least 1.
 */
void text_escape(char *out, size_t size, const void *bytes, size_t length);

/* Write bytes as lower-case hex digits; cut at the end of `out`. `size` is at least 1. */
void text_hex(char *out, size_t size, const void *bytes, size_t length);

/*
 * Write a number with commas between groups of three digits: `1,000`. Returns `out`.
 */
enum { TEXT_GROUPED_SIZE = 28 };
const char *text_grouped(uint64_t number, char out[TEXT_GROUPED_SIZE]);

/* Whether all bytes are ASCII, which is the same in every encoding that a server may use. */
bool text_is_ascii(const void *bytes, size_t length);

/*
 * Length in bytes of the UTF-8 character at the front (RFC 3629); 0 if there is none or it is
 * malformed.
 */
size_t text_utf8_length(const void *bytes, size_t length);

/*
 * Returns how many bytes of a text to keep so that at most `limit` remain and no UTF-8
 * character is cut.
 */
size_t text_utf8_cut(const char *text, size_t length, size_t limit);

#endif
