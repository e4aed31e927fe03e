/* SPDX-License-Identifier: ISC */
#include "session/parameters/application_name.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

bool application_name_is_clean(const char *name)
{
	size_t length = 0;

	while (length <= APPLICATION_NAME_MAX && name[length] != '\0' &&
		is_printable(name[length]))
		length++;
	return length <= APPLICATION_NAME_MAX && name[length] == '\0';
}

/* Returns the length of a character with this first byte; its other bytes are not checked. */
static size_t utf8_length(uint8_t front)
{
	if (front < 0xc0 || front >= 0xf8)
		return 1;
	if (front < 0xe0)
		return 2;
	return front < 0xf0 ? 3 : 4;
}

/*
 * Returns the number of bytes that are kept: whole characters according to their first bytes.
 */
static size_t kept_length(const char *name, bool is_utf8)
{
	const size_t length = strlen(name);
	size_t kept = 0, next = 0;

	if (length <= APPLICATION_NAME_MAX)
		return length;
	while (next <= APPLICATION_NAME_MAX) {
		kept = next;
		next += is_utf8 ? utf8_length((uint8_t)name[kept]) : 1;
	}
	return kept;
}

void application_name_clean(const char *name, const char *version, const char *encoding,
	char out[APPLICATION_NAME_CLEAN_SIZE])
{
	enum { FIRST_WITH_NUMBERS = 16 };
	const bool numbers = version && strtol(version, NULL, 10) >= FIRST_WITH_NUMBERS;
	const size_t kept = kept_length(name, encoding && strcmp(encoding, "UTF8") == 0);

	size_t length = 0;

	/* The result is sent in a SET, and the server truncates it a second time then. */
	for (size_t i = 0; i < kept; i++) {
		char text[8] = {is_printable(name[i]) ? name[i] : '?'};

		if (numbers && !is_printable(name[i]))
			snprintf(text, sizeof(text), "\\x%02x", (uint8_t)name[i]);
		if (length + strlen(text) > APPLICATION_NAME_MAX)
			break;
		memcpy(out + length, text, strlen(text));
		length += strlen(text);
	}
	out[length] = '\0';
}
