/* SPDX-License-Identifier: ISC */
/* SASLprep by libidn, with PostgreSQL's fallback for passwords that it refuses. */
#include "crypt/saslprep.h"

#include <idn-free.h>
#include <stdbool.h>
#include <string.h>
#include <stringprep.h>

#include "base/text.h"

static bool is_ascii(const char *text)
{
	for (; *text != '\0'; text++) {
		if (((unsigned char)*text & 0x80) != 0)
			return false;
	}
	return true;
}

static bool is_utf8(const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		size_t character = text_utf8_length(text, left);

		if (character == 0)
			return false;
		text += character;
		left -= character;
	}
	return true;
}

char *saslprep(const char *password)
{
	char *prepared = NULL;
	char *copy;

	/*
	 * RFC 4013 does not change ASCII; a password with forbidden ASCII is returned
	 * unchanged anyway.
	 */
	if (is_ascii(password) || !is_utf8(password))
		return strdup(password);
	if (stringprep_profile(password, &prepared, "SASLprep", STRINGPREP_NO_UNASSIGNED) !=
		STRINGPREP_OK)
		return strdup(password);
	copy = strdup(prepared[0] != '\0' ? prepared : password);
	explicit_bzero(prepared, strlen(prepared));
	idn_free(prepared);
	return copy;
}
