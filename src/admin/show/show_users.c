/* SPDX-License-Identifier: ISC */
/* SHOW USERS. */
#include <stdio.h>
#include <string.h>

#include "admin/show/show_stream.h"
#include "model/shared/all_users.h"

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

/* The size, right-aligned; an empty text, not NULL, if the user has no size of its own. */
static void add_size(struct result *result, const struct user_config *config, int size)
{
	char text[16] = "";

	if (config && size == POOL_SIZE_AUTO)
		snprintf(text, sizeof(text), "%9s", "auto");
	else if (config && size >= 0)
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
	result_number(result, user_servers(user));
	result_number(result, user_max_clients(user, settings));
	result_number(result, user_clients(user));
	result_end_row(result);
}

static bool is_forced(
	const struct registry *registry, const struct user *user, const struct user_sums *sums)
{
	const struct database *database, *next;

	/* The mark is never taken back: it only saves the walk for most users. */
	if (!sums->forced)
		return false;
	HASH_ITER (by_name, registry->process->directory.databases, database, next) {
		if (database->config->user && strcmp(database->config->user, user->name) == 0)
			return true;
	}
	return false;
}

/* A user that the configuration no longer names is shown as long as it is in use. */
static bool is_known(
	const struct registry *registry, const struct user *user, const struct user_sums *sums)
{
	return user->config || user->secret || user_clients(user) > 0 || sums->has_pools ||
		is_forced(registry, user, sums);
}

static void add_rows(struct show_stream *show, void *object, unsigned kind)
{
	const struct registry *registry = show->registry;
	const struct user *user = object;
	const struct user_sums sums = all_users_sum(registry->process, user);

	(void)kind;
	if (is_known(registry, user, &sums))
		add_user(&show->result, user, registry->process->settings);
}

static void list(struct show_stream *show)
{
	struct user_walk users = user_walk_begin(show->registry->process);
	struct user *user;

	while ((user = user_walk_next(&users)) != NULL)
		show_stream_add_object(show, &user->handle, user, 0);
}

static const struct topic_walk walk = {.list = list, .add_rows = add_rows};

const struct topic show_users = WALKED_TOPIC("USERS", columns, &walk);
