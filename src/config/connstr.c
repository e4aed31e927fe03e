/* SPDX-License-Identifier: ISC */
#include "config/connstr.h"

#include <stddef.h>
#include <string.h>

static char *skip_spaces(char *at)
{
	while (*at == ' ')
		at++;
	return at;
}

/*
 * Terminate the key with a NUL. Returns the start of the value; NULL if the key or `=` is
 * missing.
 */
static char *cut_key(char *at)
{
	char *end = at + strcspn(at, "= ");
	char *equals = skip_spaces(end);

	if (end == at || *equals != '=')
		return NULL;
	*end = '\0';
	return skip_spaces(equals + 1);
}

/* Terminate the bare value with a NUL. Returns the rest. */
static char *cut_bare(char *at)
{
	char *end = at + strcspn(at, " ");

	if (*end == '\0')
		return end;
	*end = '\0';
	return end + 1;
}

/*
 * Unquote, in place, the value after an opening quote. Returns the rest; NULL if the closing
 * quote is missing.
 */
static char *cut_quoted(char *at)
{
	char *out = at;

	for (;; at++) {
		if (*at == '\0')
			return NULL;
		if (*at == '\'' && *++at != '\'')
			break;
		*out++ = *at;
	}
	/* Any character after the closing quote is the separator. */
	if (*at != '\0')
		at++;
	*out = '\0';
	return at;
}

void connstr_init(struct connstr *walk, char *text)
{
	*walk = (struct connstr){.at = text};
}

enum connstr_result connstr_next(struct connstr *walk)
{
	char *key = skip_spaces(walk->at);
	char *value;

	if (*key == '\0' || *key == ';' || *key == '#')
		return CONNSTR_END;
	value = cut_key(key);
	if (!value)
		return CONNSTR_MALFORMED;
	walk->key = key;
	if (*value == '\'') {
		walk->value = ++value;
		walk->at = cut_quoted(value);
	} else {
		walk->value = value;
		walk->at = cut_bare(value);
	}
	return walk->at && walk->value[0] != '\0' ? CONNSTR_PAIR : CONNSTR_MALFORMED;
}
