/* SPDX-License-Identifier: ISC */
#include "wire/sequence_words.h"

#include <string.h>
#include <strings.h>

#include "wire/suspicion.h"

static bool is_in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_one(const char *word, size_t length)
{
	static const char *const words[] = {
		"nextval", "currval", "lastval", "setval", "insert", "copy"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (length == strlen(words[i]) && strncasecmp(word, words[i], length) == 0)
			return true;
	}
	return false;
}

bool sequence_words_in(const char *text, size_t length)
{
	const char *at = text, *end;

	if (length > SUSPICION_TEXT_MAX)
		return true;
	end = text + strnlen(text, length);
	while (at < end) {
		const char *word = at;

		while (at < end && is_in_word(*at))
			at++;
		if (is_one(word, (size_t)(at - word)))
			return true;
		/* U&"next\0076al" */
		if (at - word == 1 && (*word | 0x20) == 'u' && end - at >= 2 && at[0] == '&' &&
			at[1] == '"')
			return true;
		at++;
	}
	return false;
}
