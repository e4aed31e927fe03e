/* SPDX-License-Identifier: ISC */
#include "session/slow/secret_words.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* The beginnings of the words. */
static const char *const words[] = {"passw", "secret"};

/* Letters and digits of ASCII, and the underscore: what a name goes on with. */
static bool is_of_word(char byte)
{
	const char letter = (char)(byte | 0x20);

	return (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
}

size_t secret_words_safe_length(const char *text, size_t length)
{
	for (size_t at = 0; at < length; at++) {
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			size_t end = at + strlen(words[i]);

			if (end > length ||
				strncasecmp(text + at, words[i], strlen(words[i])) != 0)
				continue;
			while (end < length && is_of_word(text[end]))
				end++;
			return end;
		}
	}
	return length;
}
