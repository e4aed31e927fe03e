/* SPDX-License-Identifier: ISC */
#include "model/state/custom_names.h"

#include <stdlib.h>
#include <string.h>

#include "model/client_link.h"
#include "wire/parameters.h"

size_t custom_names_size(const char *names)
{
	size_t size = 0;

	while (names && names[size])
		size += strlen(names + size) + 1;
	return size;
}

static bool has_name(const char *names, const char *name, unsigned *count)
{
	*count = 0;
	for (; names && *names; names += strlen(names) + 1) {
		if (strcmp(names, name) == 0)
			return true;
		++*count;
	}
	return false;
}

static bool add_name(struct client_link *client, const char *name)
{
	const size_t size = strlen(name) + 1;
	unsigned count;
	size_t before;
	char *names;

	if (has_name(client->custom_names, name, &count))
		return true;
	/* A client that has set all of these has set too many. */
	if (count > PARAMETERS_FOLLOWED_MAX + PARAMETERS_MAX)
		return false;
	before = custom_names_size(client->custom_names);
	names = realloc(client->custom_names, before + size + 1);
	if (!names)
		return false;
	memcpy(names + before, name, size);
	names[before + size] = '\0';
	client->custom_names = names;
	return true;
}

static bool is_in_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || c == '.' || (unsigned char)c >= 0x80;
}

bool custom_names_note(struct client_link *client, const char *text, size_t length)
{
	char name[PARAMETER_NAME_SIZE], lower[PARAMETER_NAME_SIZE];
	size_t used = 0;

	while (length > 0 && strchr(" \t\n\r\f\v\"'", *text) && *text)
		text++, length--;
	/* Quotes inside are of a name in two parts: "app"."tenant". */
	for (; length > 0 && (is_in_name(*text) || *text == '"'); text++, length--) {
		if (*text == '"')
			continue;
		if (used == sizeof(name) - 1)
			return false; /* too long for a set of parameters */
		name[used++] = *text;
	}
	name[used] = '\0';
	if (!strchr(name, '.') || !parameter_name_is_legal(name))
		return true;
	parameter_name_lower(name, lower);
	return add_name(client, lower);
}

static bool note(void *client, const char *text, size_t length)
{
	return custom_names_note(client, text, length);
}

struct suspicion_names custom_names_of(struct client_link *client)
{
	return (struct suspicion_names){note, client};
}

void custom_names_free(struct client_link *client)
{
	free(client->custom_names);
	client->custom_names = NULL;
}
