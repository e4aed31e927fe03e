/* SPDX-License-Identifier: ISC */
#include "setup/pairs.h"

#include <stdlib.h>
#include <string.h>

static void drop(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static bool reserve(struct pairs *pairs)
{
	const size_t capacity = pairs->capacity ? pairs->capacity * 2 : 8;
	struct pair *at;

	if (pairs->count < pairs->capacity)
		return true;
	at = realloc(pairs->at, capacity * sizeof(*at));
	if (!at)
		return false;
	pairs->at = at;
	pairs->capacity = capacity;
	return true;
}

bool pairs_add(struct pairs *pairs, const char *key, const char *value)
{
	struct pair pair = {strdup(key), strdup(value)};

	if (pair.key && pair.value && reserve(pairs)) {
		pairs->at[pairs->count++] = pair;
		return true;
	}
	drop(pair.key);
	drop(pair.value);
	return false;
}

const char *pairs_find(const struct pairs *pairs, const char *key)
{
	for (size_t i = pairs->count; i-- > 0;) {
		if (strcmp(pairs->at[i].key, key) == 0)
			return pairs->at[i].value;
	}
	return NULL;
}

void pairs_remove(struct pairs *pairs, const char *key)
{
	size_t kept = 0;

	for (size_t i = 0; i < pairs->count; i++) {
		if (strcmp(pairs->at[i].key, key) != 0) {
			pairs->at[kept++] = pairs->at[i];
			continue;
		}
		drop(pairs->at[i].key);
		drop(pairs->at[i].value);
	}
	pairs->count = kept;
}

void pairs_free(struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		drop(pairs->at[i].key);
		drop(pairs->at[i].value);
	}
	free(pairs->at);
	*pairs = (struct pairs){0};
}
