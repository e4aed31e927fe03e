/* SPDX-License-Identifier: ISC */
#include "admin/show/scan.h"

#include <string.h>
#include <strings.h>

/* The output for a word without its quotes. */
struct room {
	char *out;
	size_t size, length;
};

static void put(struct scan *scan, struct room *room, char c)
{
	if (room->length + 1 < room->size)
		room->out[room->length++] = c;
	else
		scan->too_long = true;
}

bool scan_space(struct scan *scan)
{
	const size_t length = strspn(scan->at, " \t\r\n");

	scan->at += length;
	return length > 0;
}

bool scan_is_word_character(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		c == '_';
}

bool scan_keyword(struct scan *scan, const char *keyword)
{
	const size_t length = strlen(keyword);

	if (strncasecmp(scan->at, keyword, length) != 0 ||
		scan_is_word_character(scan->at[length]))
		return false;
	scan->at += length;
	return true;
}

bool scan_symbol(struct scan *scan, const char *symbol)
{
	const size_t length = strlen(symbol);

	if (strncmp(scan->at, symbol, length) != 0)
		return false;
	scan->at += length;
	return true;
}

bool scan_quoted(struct scan *scan, char quote, char *out, size_t size)
{
	struct room room = {.out = out, .size = size};
	const struct scan start = *scan;

	out[0] = '\0';
	if (*scan->at != quote)
		return false;
	for (scan->at++; *scan->at; scan->at++) {
		if (*scan->at == quote && *++scan->at != quote) {
			out[room.length] = '\0';
			return true;
		}
		put(scan, &room, *scan->at);
	}
	*scan = start; /* no closing quote: take nothing */
	out[0] = '\0';
	return false;
}

bool scan_bare(struct scan *scan, const char *more, char *out, size_t size)
{
	struct room room = {.out = out, .size = size};
	const char *const start = scan->at;

	while (*scan->at && (scan_is_word_character(*scan->at) || strchr(more, *scan->at)))
		put(scan, &room, *scan->at++);
	out[room.length] = '\0';
	return scan->at > start;
}

bool scan_word(struct scan *scan, char *out, size_t size)
{
	return scan_bare(scan, "", out, size) || scan_quoted(scan, '"', out, size);
}

bool scan_is_over(struct scan *scan)
{
	scan_space(scan);
	if (*scan->at == ';')
		scan->at++;
	scan_space(scan);
	return *scan->at == '\0';
}
