/* SPDX-License-Identifier: ISC */
/*
 * Texts of a console made safe for a terminal: names, addresses and messages may hold any bytes.
 *
 * The result is in the encoding of the locale (LC_CTYPE) and takes a known number of columns.
 * Control characters, characters that change the direction of the text or have no width of their
 * own, and bytes that are not UTF-8 become \xNN or \uNNNN. Characters that the locale does not have
 * become "?". Nothing is allocated.
 */
#ifndef PGUSHER_TOP_PRINTABLE_H
#define PGUSHER_TOP_PRINTABLE_H

#include <stddef.h>

/* Stands at the end of a text that was cut. */
#define PRINTABLE_CUT '~'

/*
 * Write a text of at most `columns` columns to `out`, and always terminate it with a NUL. A text
 * that does not fit, or not into `size` bytes, ends with PRINTABLE_CUT. `size` is at least 2.
 * Returns how many columns it takes.
 */
size_t printable_write(char *out, size_t size, const char *text, size_t columns);

/* Returns how many columns the whole text takes, at most `most`. */
size_t printable_width(const char *text, size_t most);

/*
 * Returns the length in bytes of the part of a text that fits into so many columns, cut behind the
 * last blank of it if the rest does not fit too. 0 only if the text is empty.
 */
size_t printable_fold(const char *text, size_t columns);

#endif
