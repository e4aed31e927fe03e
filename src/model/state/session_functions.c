/* SPDX-License-Identifier: ISC */
#include "model/state/session_functions.h"

#include <string.h>

#include "model/registry.h"
#include "wire/parameters.h"
#include "wire/suspicion.h"

/* Memory for the names of custom settings. */
enum { SETTINGS_SIZE_MAX = 16 * 1024 };

session_topics session_functions_in(
	const struct session_functions *functions, const char *text, size_t length)
{
	if (!functions->known || functions->doubted || functions->everything ||
		length > SUSPICION_TEXT_MAX)
		return TOPICS_ALL;
	return watched_names_find(&functions->names, text, length);
}

bool session_functions_add_setting(
	struct session_functions *functions, const char *name, size_t length)
{
	char bare[PARAMETER_NAME_SIZE];
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		if (name[i] == '"')
			continue;
		if (used == sizeof(bare) - 1)
			return false;
		bare[used++] = name[i];
	}
	bare[used] = '\0';
	if (functions->settings.length + used >= SETTINGS_SIZE_MAX)
		return false;
	/* Else it is no setting, but a text that looks like one. */
	return !strchr(bare, '.') || !parameter_name_is_legal(bare) ||
		buffer_append(&functions->settings, bare, used + 1);
}

void session_functions_clear(struct session_functions *functions)
{
	watched_names_free(&functions->names);
	buffer_free(&functions->settings);
	functions->print[0] = '\0';
	functions->everything = false;
}

void session_functions_apply(struct database *database)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &database->pools, in_database) {
		database->functions.version =
			directory_next_functions(&pool->registry->process->directory);
		pool_choose_rules(pool);
	}
}

/* The clients that have servers now go on by the rules that they began with. */
static void suspect_servers(struct pool *pool)
{
	struct link *link;

	if (!pool_watches_functions(pool))
		return;
	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		if (link->state == SERVER_PAIRED && !server_of(link)->replication)
			server_of(link)->suspected |= TOPICS_ALL;
	}
}

void session_functions_doubt(struct database *database)
{
	struct session_functions *functions = &database->functions;
	struct pool *pool;

	functions->doubts++;
	functions->doubted = true;
	TAILQ_FOREACH (pool, &database->pools, in_database)
		suspect_servers(pool);
	session_functions_apply(database);
}

void session_functions_forget(struct database *database)
{
	struct session_functions *functions = &database->functions;

	session_functions_clear(functions);
	functions->known = false;
	functions->read_at = 0;
	functions->doubts++;
	session_functions_apply(database);
}
