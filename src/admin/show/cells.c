/* SPDX-License-Identifier: ISC */
#include "admin/show/cells.h"

#include <string.h>

/* --- numbers ------------------------------------------------------------------------------ */

static size_t count_digits(const char *text, const char *end)
{
	const char *at = text;

	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return (size_t)(at - text);
}

/* Drop leading and trailing zeros; zero has no sign. */
static void trim(struct decimal *number)
{
	while (number->whole_length > 0 && *number->whole == '0') {
		number->whole++;
		number->whole_length--;
	}
	while (number->fraction_length > 0 &&
		number->fraction[number->fraction_length - 1] == '0')
		number->fraction_length--;
	if (number->whole_length == 0 && number->fraction_length == 0)
		number->negative = false;
}

bool cells_read_decimal(const char *text, size_t length, struct decimal *out)
{
	const char *const end = text + length;
	struct decimal number = {0};

	while (text < end && *text == ' ')
		text++;
	if (text < end && (*text == '-' || *text == '+'))
		number.negative = *text++ == '-';
	number.whole = text;
	number.whole_length = count_digits(text, end);
	text += number.whole_length;
	number.fraction = text;
	if (text < end && *text == '.') {
		number.fraction = ++text;
		number.fraction_length = count_digits(text, end);
		text += number.fraction_length;
	}
	if (text != end || number.whole_length + number.fraction_length == 0)
		return false;
	trim(&number);
	*out = number;
	return true;
}

static int compare_magnitudes(const struct decimal *a, const struct decimal *b)
{
	int order;

	if (a->whole_length != b->whole_length)
		return a->whole_length < b->whole_length ? -1 : 1;
	order = memcmp(a->whole, b->whole, a->whole_length);
	if (order != 0)
		return order;
	return cells_compare_texts(
		a->fraction, a->fraction_length, b->fraction, b->fraction_length);
}

int cells_compare_decimals(const struct decimal *a, const struct decimal *b)
{
	if (a->negative != b->negative)
		return a->negative ? -1 : 1;
	return a->negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

/* --- texts -------------------------------------------------------------------------------- */

int cells_compare_texts(const char *a, size_t a_length, const char *b, size_t b_length)
{
	const size_t common = a_length < b_length ? a_length : b_length;
	const int order = common > 0 ? memcmp(a, b, common) : 0;

	if (order != 0 || a_length == b_length)
		return order;
	return a_length < b_length ? -1 : 1;
}

/* Does the pattern's next character, which is not `%`, match this one? Then moves behind it. */
static bool take_one(const char **pattern, char c)
{
	const char *at = *pattern;

	if (*at == '\0')
		return false;
	if (*at == '\\' && at[1] != '\0')
		at++;
	else if (*at == '_')
		c = '_';
	if (*at != c)
		return false;
	*pattern = at + 1;
	return true;
}

bool cells_are_alike(const char *text, size_t length, const char *pattern)
{
	const char *const end = text + length;
	const char *last_percent = NULL, *taken_by_it = text;

	/*
	 * After a mismatch only the last `%` has to match more: earlier ones need not be tried
	 * again.
	 */
	while (text < end) {
		if (*pattern == '%') {
			last_percent = ++pattern;
			taken_by_it = text;
		} else if (take_one(&pattern, *text)) {
			text++;
		} else if (last_percent) {
			pattern = last_percent;
			text = ++taken_by_it;
		} else {
			return false;
		}
	}
	while (*pattern == '%')
		pattern++;
	return *pattern == '\0';
}
