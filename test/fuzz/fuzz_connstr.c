/* SPDX-License-Identifier: ISC */
/* Connect strings: the walk ends, stays inside the text, and finds no empty key or value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/connstr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check(const char *part, const char *text, size_t size)
{
	require(part >= text && part < text + size && part[0] != '\0');
	require(part + strlen(part) <= text + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	enum connstr_result result;
	struct connstr walk;
	size_t pairs = 0;

	require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	connstr_init(&walk, text);
	while ((result = connstr_next(&walk)) == CONNSTR_PAIR) {
		check(walk.key, text, size);
		check(walk.value, text, size);
		require(++pairs <= size);
	}
	require(result == CONNSTR_END || result == CONNSTR_MALFORMED);
	free(text);
	return 0;
}
