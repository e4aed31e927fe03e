/* SPDX-License-Identifier: ISC */
#include "setup/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/connstr.h"
#include "config/database_config.h"
#include "config/entry.h"
#include "setup/url.h"

/* Keys of libpq that are settings of the whole process here. */
static const struct {
	const char *key, *setting;
} settings_of_keys[] = {
	{"connect_timeout", "server_connect_timeout"},
	{"sslcert", "server_tls_cert_file"},
	{"sslcrl", "server_tls_crl_file"},
	{"sslkey", "server_tls_key_file"},
	{"sslmode", "server_tls_sslmode"},
	{"sslnegotiation", "server_tls_negotiation"},
	{"sslrootcert", "server_tls_ca_file"},
};

static bool refuse(char *why, size_t size, const char *what, const char *reason)
{
	snprintf(why, size, "%s%s%s", what, *what ? ": " : "", reason);
	return false;
}

static bool parse_connstr(const char *text, struct pairs *out, char *why, size_t size)
{
	const size_t length = strlen(text);
	enum connstr_result result;
	struct connstr walk;
	char *copy = strdup(text);
	bool done = copy != NULL;

	if (!done)
		return refuse(why, size, "", "out of memory");
	connstr_init(&walk, copy);
	while (done && (result = connstr_next(&walk)) != CONNSTR_END) {
		if (result == CONNSTR_MALFORMED)
			done = refuse(why, size, "",
				"a connection string is key=value key='a value', with '' for a "
				"quote, without empty values");
		else if (!pairs_add(out, walk.key, walk.value))
			done = refuse(why, size, "", "out of memory");
	}
	explicit_bzero(copy, length);
	free(copy);
	return done;
}

bool target_parse(const char *text, struct pairs *out, char *why, size_t size)
{
	if (url_is_one(text) || strstr(text, "://"))
		return url_parse(text, out, why, size);
	return parse_connstr(text, out, why, size);
}

/* --- into the draft ----------------------------------------------------------------------- */

static bool is_entry_key(const char *key)
{
	const struct entry_grammar *grammar = database_config_grammar();

	for (size_t i = 0; i < grammar->key_count; i++) {
		if (strcmp(grammar->keys[i].name, key) == 0)
			return true;
	}
	return false;
}

static const char *setting_of(const char *key)
{
	for (size_t i = 0; i < sizeof(settings_of_keys) / sizeof(settings_of_keys[0]); i++) {
		if (strcmp(settings_of_keys[i].key, key) == 0)
			return settings_of_keys[i].setting;
	}
	return NULL;
}

/* One process has one value for all its servers. */
static bool put_setting(struct draft *draft, const char *key, const char *name,
	const char *value, char *why, size_t size)
{
	const char *former = draft_get(draft, name);
	char reason[200];

	if (former && strcmp(former, value) != 0) {
		snprintf(why, size, "%s=%s: %s is %s already, for all servers", key, value,
			name, former);
		return false;
	}
	return draft_set(draft, name, value, reason, sizeof(reason)) ||
		refuse(why, size, key, reason);
}

static bool put_key(struct draft *draft, const char *entry, const char *key, const char *value,
	char *why, size_t size)
{
	char reason[200];

	return draft_put(draft, DRAFT_DATABASES, entry, key, value, reason, sizeof(reason)) ||
		refuse(why, size, key, reason);
}

static bool put_pair(struct draft *draft, const char *entry, const struct pair *pair,
	const char *origin, char *why, size_t size)
{
	const char *setting = setting_of(pair->key);

	/* libpq: hostaddr is where to connect, host only a name to check then. */
	if (strcmp(pair->key, "hostaddr") == 0)
		return put_key(draft, entry, "host", pair->value, why, size);
	/* What JDBC writes; libpq takes it in URLs. */
	if (strcmp(pair->key, "ssl") == 0 && strcmp(pair->value, "true") == 0)
		return put_setting(draft, "ssl", "server_tls_sslmode", "require", why, size);
	/* libpq: the authorities of the system. */
	if (strcmp(pair->key, "sslrootcert") == 0 && strcmp(pair->value, "system") == 0)
		return put_setting(draft, pair->key, setting, "", why, size);
	if (setting)
		return put_setting(draft, pair->key, setting, pair->value, why, size);
	if (is_entry_key(pair->key))
		return put_key(draft, entry, pair->key, pair->value, why, size);
	problems_add(draft_findings(draft), PROBLEM_WARNING, origin, 0,
		"%s has no counterpart here", pair->key);
	return true;
}

bool target_put(struct draft *draft, const char *entry, const struct pairs *pairs,
	const char *origin, char *why, size_t size)
{
	const char *host = pairs_find(pairs, "host");
	char reason[200];

	if (!draft_add_entry(draft, DRAFT_DATABASES, entry, reason, sizeof(reason)))
		return refuse(why, size, entry, reason);
	/* The list of ports is checked against the list of hosts. */
	if (host && !put_key(draft, entry, "host", host, why, size))
		return false;
	for (size_t i = 0; i < pairs->count; i++) {
		const struct pair *pair = &pairs->at[i];

		if (strcmp(pair->key, "host") == 0 || pair->value[0] == '\0')
			continue;
		if (!put_pair(draft, entry, pair, origin, why, size))
			return false;
	}
	return true;
}
