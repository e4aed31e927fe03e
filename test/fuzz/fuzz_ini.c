/* SPDX-License-Identifier: ISC */
/*
 * A configuration file, with any content: it becomes a valid configuration or leaves an error,
 * and SET and RELOAD after it are harmless.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_problems(const struct problems *problems)
{
	const struct problem *problem = NULL;

	while ((problem = problems_next(problems, problem)) != NULL)
		require(problem->text && problem->file && problem->log[0]);
}

static void check_database(
	const struct snapshot *snapshot, const struct database_config *config)
{
	struct database_config *made = database_config_from_template(config, "made");

	require(strlen(config->name) <= DATABASE_NAME_LIMIT && config->dbname &&
		config->port > 0);
	require(snapshot_find_database(snapshot, config->name) == config);
	require(!made || database_config_same_target(config, made));
	database_config_free(made);
}

static void check_entries(const struct snapshot *snapshot)
{
	const struct database_config *database;
	const struct user_config *user;
	const struct peer_config *peer;
	size_t i;

	for (i = 0; (database = snapshot_database(snapshot, i)) != NULL; i++)
		check_database(snapshot, database);
	for (i = 0; (user = snapshot_user(snapshot, i)) != NULL; i++)
		require(snapshot_find_user(snapshot, user->name) == user);
	for (i = 0; (peer = snapshot_peer(snapshot, i)) != NULL; i++)
		require(peer->id > 0 && peer->host && peer->port > 0);
}

/*
 * The value that SHOW CONFIG prints for a setting can be SET, and is printed unchanged again.
 */
static void check_setting(const struct snapshot *snapshot, const struct setting_row *row)
{
	char before[32], after[32], why[256];
	const char *value =
		settings_render(row, snapshot_settings(snapshot), before, sizeof(before));
	struct snapshot *changed;

	if (!value)
		return;
	changed = snapshot_with_setting(snapshot, row->name, value, why, sizeof(why));
	if (changed && value != before)
		require(strcmp(value,
				settings_render(row, snapshot_settings(changed), after,
					sizeof(after))) == 0);
	snapshot_unref(changed);
}

static void check_snapshot(const struct snapshot *snapshot)
{
	size_t count;
	const struct setting_row *rows = settings_rows(&count);

	check_entries(snapshot);
	for (size_t i = 0; i < count; i++)
		check_setting(snapshot, &rows[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problems problems = {0};
	struct snapshot *snapshot, *next;

	snapshot = snapshot_parse("fuzz.ini", (const char *)data, size, NULL, &problems);
	require((snapshot == NULL) == (problems_errors(&problems) > 0));
	check_problems(&problems);
	problems_free(&problems);
	if (!snapshot)
		return 0;
	check_snapshot(snapshot);
	next = snapshot_parse("fuzz.ini", (const char *)data, size, snapshot, &problems);
	require(next != NULL);
	snapshot_unref(snapshot);
	check_snapshot(next);
	snapshot_unref(next);
	problems_free(&problems);
	return 0;
}
