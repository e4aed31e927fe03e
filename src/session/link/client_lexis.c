/* SPDX-License-Identifier: ISC */
#include "session/link/client_lexis.h"

#include <string.h>
#include <strings.h>

#include "model/registry.h"

static const char *value_of(const struct client_link *client, const char *name)
{
	const int index = parameter_index(link_registry(&client->link)->parameters, name);

	return index >= 0 ? parameters_get(client->link.parameters, (unsigned)index) : NULL;
}

/*
 * In these encodings of clients, which no server has, a byte below 0x80 may be the second one of a
 * character.
 */
static bool is_safe(const char *encoding)
{
	static const char *const unsafe[] = {
		"BIG5", "GB18030", "GBK", "JOHAB", "SJIS", "SHIFT_JIS_2004", "UHC"};

	for (size_t i = 0; encoding && i < sizeof(unsafe) / sizeof(unsafe[0]); i++) {
		if (strcasecmp(encoding, unsafe[i]) == 0)
			return false;
	}
	return encoding != NULL;
}

struct session_lexis client_lexis(const struct client_link *client)
{
	const char *conforming = value_of(client, "standard_conforming_strings");

	return (struct session_lexis){
		.escapes = !conforming || strcmp(conforming, "on") != 0,
		.safe_encoding = is_safe(value_of(client, "client_encoding")),
	};
}
