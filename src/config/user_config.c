/* SPDX-License-Identifier: ISC */
#include "config/user_config.h"

#include <stdlib.h>
#include <string.h>

#include "config/entry.h"

#define FIELD(name) offsetof(struct user_config, name)

static const struct entry_key keys[] = {
	/* Sorted by name. */
	{"client_idle_timeout", ENTRY_TIME, FIELD(client_idle_timeout),
		"For clients that log in under this name, in place of the setting; 0: use the "
		"setting."},
	{"idle_transaction_timeout", ENTRY_TIME, FIELD(idle_transaction_timeout),
		"For clients of pools with this server user, in place of the setting; "
		"0: use the setting."},
	{"max_pool_waiters", ENTRY_SIZE, FIELD(max_pool_waiters),
		"Clients that may wait in each pool with this server user, in place of the "
		"database's and the setting; 0: no limit; -1: use them."},
	{"max_user_client_connections", ENTRY_LIMIT, FIELD(max_user_client_connections),
		"Client connections that log in under this name, in place of the setting; "
		"0: use the setting."},
	{"max_user_connections", ENTRY_LIMIT, FIELD(max_user_connections),
		"Server connections as this user, of all databases, in place of the "
		"setting; 0: use the setting."},
	{"pool_mode", ENTRY_POOL_MODE, FIELD(pool_mode),
		"Mode of pools with this server user, in place of the database's and the "
		"setting."},
	{"pool_size", ENTRY_POOL_SIZE, FIELD(pool_size),
		"Server connections of each such pool, in place of the database's and the "
		"setting; 0: no limit; auto: computed, as for default_pool_size; -1: use them."},
	{"pool_weight", ENTRY_LIMIT, FIELD(pool_weight),
		"Share of such pools below limits of server connections that pools share, "
		"in place of the database's; 0: use it."},
	{"query_timeout", ENTRY_TIME, FIELD(query_timeout),
		"For clients of such pools, in place of the setting; 0: use the setting."},
	{"query_wait_timeout", ENTRY_WAIT, FIELD(query_wait_timeout),
		"For clients that log in under this name, in place of the database's and "
		"the setting; 0: no limit; -1: use them."},
	{"query_wait_timeout_action", ENTRY_WAIT_ACTION, FIELD(query_wait_timeout_action),
		"For clients that log in under this name, in place of the database's and the "
		"setting."},
	{"reserve_pool_size", ENTRY_SIZE, FIELD(reserve_pool_size),
		"Reserve size of such pools, in place of the database's and the setting; 0: "
		"none; -1: use them."},
	{"session_state", ENTRY_SESSION_STATE, FIELD(session_state),
		"For clients of such pools, in place of the database's and the setting."},
	{"transaction_timeout", ENTRY_TIME, FIELD(transaction_timeout),
		"For clients of such pools, in place of the setting; 0: use the setting."},
};

static const struct entry_grammar grammar = {
	.keys = keys,
	.key_count = sizeof(keys) / sizeof(keys[0]),
	.size = sizeof(struct user_config),
	.malformed = "syntax error in user settings",
	.unknown = "unrecognized user parameter",
};

const struct entry_grammar *user_config_grammar(void)
{
	return &grammar;
}

struct user_config *user_config_parse(const struct ini_place *place, const char *name,
	const char *text, struct problems *problems)
{
	struct user_config config = {
		.name = name,
		.pool_size = -1,
		.reserve_pool_size = -1,
		.query_wait_timeout = -1,
		.max_pool_waiters = -1,
	};
	struct user_config *made = NULL;
	const size_t length = strlen(name);
	struct entry entry;

	if (entry_begin(&entry, &grammar, place, name, text, PROBLEM_ERROR, problems)) {
		if (length == 0 || length > USER_NAME_LIMIT)
			entry_refuse(&entry, "a user name has 1 to %d bytes", USER_NAME_LIMIT);
		entry_read(&entry, &config);
		made = entry_finish(&entry, &config);
	}
	entry_end(&entry);
	return made;
}

void user_config_free(struct user_config *config)
{
	free(config);
}
