/* SPDX-License-Identifier: ISC */
/* SHOW USERS. */
#include <stdio.h>
#include <string.h>

#include "admin/console/topics.h"

static const struct column columns[] = {
	{"name", COLUMN_TEXT},
	{"pool_size", COLUMN_TEXT},
	{"reserve_pool_size", COLUMN_TEXT},
	{"pool_mode", COLUMN_TEXT},
	{"max_user_connections", COLUMN_INT4},
	{"current_connections", COLUMN_INT4},
	{"max_user_client_connections", COLUMN_INT4},
	{"current_client_connections", COLUMN_INT4},
};

/* Right-aligned if the user has its own, else nothing, but not NULL. */
static void add_size(struct result *result, const struct user_config *config, int size)
{
	char text[16] = "";

	if (config && size >= 0)
		snprintf(text, sizeof(text), "%9d", size);
	result_text(result, text);
}

static void add_user(
	struct result *result, const struct user *user, const struct settings *settings)
{
	const struct user_config *config = user->config;

	result_begin_row(result);
	result_text(result, user->name);
	add_size(result, config, config ? config->pool_size : -1);
	add_size(result, config, config ? config->reserve_pool_size : -1);
	result_text(result,
		config && config->pool_mode != POOL_MODE_INHERIT
			? pool_mode_name(config->pool_mode)
			: NULL);
	result_number(result, user_max_servers(user, settings));
	result_number(result, user->servers);
	result_number(result, user_max_clients(user, settings));
	result_number(result, user->clients);
	result_end_row(result);
}

static bool is_forced(const struct registry *registry, const struct user *user)
{
	const struct database *database, *next;

	/* Once forced it is marked for good, so that few are looked for in all databases. */
	if (!user->forced)
		return false;
	HASH_ITER (by_name, registry->databases, database, next) {
		if (database->config->user && strcmp(database->config->user, user->name) == 0)
			return true;
	}
	return false;
}

/* Users that no configuration names any more are told as long as they are in use. */
static bool is_known(const struct registry *registry, const struct user *user)
{
	return user->config || user->secret || user->clients > 0 ||
		!TAILQ_EMPTY(&user->pools) || is_forced(registry, user);
}

static void tell(struct telling *telling, void *thing, unsigned kind)
{
	const struct registry *registry = telling->registry;
	const struct user *user = thing;

	(void)kind;
	if (is_known(registry, user))
		add_user(&telling->result, user, registry->process->settings);
}

static void note(struct telling *telling)
{
	struct user *user, *next;

	registry_sort(telling->registry);
	HASH_ITER (by_name, telling->registry->users, user, next)
		telling_note(telling, &user->handle, user, 0);
}

static const struct topic_walk walk = {.note = note, .tell = tell};

const struct topic show_users = WALKED_TOPIC("USERS", columns, &walk);
