/* SPDX-License-Identifier: ISC */
#include "config/peer_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"

#define FIELD(name) offsetof(struct peer_config, name)

static const struct entry_key keys[] = {
	/* Sorted by name. */
	{"host", ENTRY_HOST, FIELD(host),
		"Address of the peer, as in [databases]. It is required."},
	{"pool_size", ENTRY_SIZE, FIELD(pool_size),
		"Cancel requests that are forwarded at the same time; default_pool_size "
		"by default."},
	{"port", ENTRY_PORT, FIELD(port), "6432 by default."},
};

static const struct entry_grammar grammar = {
	.keys = keys,
	.key_count = sizeof(keys) / sizeof(keys[0]),
	.size = sizeof(struct peer_config),
	.malformed = "syntax error in connection string",
	.unknown = "unrecognized connection parameter",
};

const struct entry_grammar *peer_config_grammar(void)
{
	return &grammar;
}

/* Parse a decimal number within range; 0 if it is not one. */
static uint16_t read_id(const char *text)
{
	unsigned long number;

	if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0')
		return 0;
	number = strtoul(text, NULL, 10);
	return number <= UINT16_MAX ? (uint16_t)number : 0;
}

struct peer_config *peer_config_parse(const struct ini_place *place, const char *id,
	const char *text, struct problems *problems)
{
	struct peer_config config = {.port = PEER_DEFAULT_PORT, .pool_size = -1};
	struct peer_config *made = NULL;
	struct entry entry;
	char name[8];

	if (entry_begin(&entry, &grammar, place, id, text, PROBLEM_ERROR, problems)) {
		config.id = read_id(id);
		snprintf(name, sizeof(name), "%u", (unsigned)config.id);
		config.name = name;
		if (config.id == 0)
			entry_refuse(&entry,
				"ids of peers must be a number larger than 0 and at most "
				"65536");
		entry_read(&entry, &config);
		if (!config.host && !entry.wrong)
			entry_refuse(&entry, "host was not provided for peer %s", id);
		made = entry_finish(&entry, &config);
	}
	entry_end(&entry);
	return made;
}

void peer_config_free(struct peer_config *config)
{
	free(config);
}
