/* SPDX-License-Identifier: ISC */
/*
 * Compares cells of a result set as DataRow has them: text without a NUL at its end. Pure.
 */
#ifndef PGUSHER_ADMIN_SHOW_CELLS_H
#define PGUSHER_ADMIN_SHOW_CELLS_H

#include <stdbool.h>
#include <stddef.h>

/* A decimal number of any length, exact. The pointers are into the text that was read. */
struct decimal {
	const char *whole, *fraction; /* without leading and trailing zeros */
	size_t whole_length, fraction_length;
	bool negative;
};

/*
 * Read a number like `-12.50`, which blanks may precede. Returns false if the text is no
 * number.
 */
bool cells_read_decimal(const char *text, size_t length, struct decimal *out);

/* Less than, equal to, or more than 0, as a is to b. */
int cells_compare_decimals(const struct decimal *a, const struct decimal *b);

/* The same for texts, byte by byte. */
int cells_compare_texts(const char *a, size_t a_length, const char *b, size_t b_length);

/*
 * SQL's LIKE: `%` matches any text, `_` any one byte, a backslash makes the next character
 * match itself only.
 */
bool cells_are_alike(const char *text, size_t length, const char *pattern);

#endif
