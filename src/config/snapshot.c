/* SPDX-License-Identifier: ISC */
#include "config/snapshot.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/snapshot_parts.h"

struct snapshot *snapshot_new(void)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (snapshot)
		snapshot->references = 1;
	return snapshot;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
	reference_take(&snapshot->references);
	return snapshot;
}

void snapshot_unref(struct snapshot *snapshot)
{
	if (!snapshot || !reference_drop(&snapshot->references))
		return;
	settings_free(&snapshot->settings);
	catalog_unref(snapshot->catalog);
	userlist_unref(snapshot->users);
	ident_unref(snapshot->ident);
	hba_unref(snapshot->hba);
	free(snapshot);
}

const struct settings *snapshot_settings(const struct snapshot *snapshot)
{
	return &snapshot->settings;
}

const struct database_config *snapshot_find_database(
	const struct snapshot *snapshot, const char *name)
{
	return named_list_find(&snapshot->catalog->databases, name);
}

const struct user_config *snapshot_find_user(const struct snapshot *snapshot, const char *name)
{
	return named_list_find(&snapshot->catalog->users, name);
}

const struct database_config *snapshot_database(const struct snapshot *snapshot, size_t index)
{
	return named_list_entry(&snapshot->catalog->databases, index);
}

const struct user_config *snapshot_user(const struct snapshot *snapshot, size_t index)
{
	return named_list_entry(&snapshot->catalog->users, index);
}

const struct peer_config *snapshot_peer(const struct snapshot *snapshot, size_t index)
{
	return named_list_entry(&snapshot->catalog->peers, index);
}

const struct database_config *snapshot_template(const struct snapshot *snapshot)
{
	return snapshot->catalog->template;
}

const struct userlist *snapshot_userlist(const struct snapshot *snapshot)
{
	return snapshot->users;
}

struct hba *snapshot_hba(const struct snapshot *snapshot)
{
	return snapshot->hba;
}

/* --- SET ---------------------------------------------------------------------------------- */

static bool change_setting(struct snapshot *changed, const struct snapshot *original,
	const char *name, const char *value, char *why, size_t size)
{
	const struct setting_row *row;

	if (!settings_copy(&changed->settings, &original->settings)) {
		snprintf(why, size, "out of memory");
		return false;
	}
	if (!settings_set(&changed->settings, name, value, why, size))
		return false;
	row = settings_find(name);
	if (!settings_is_changeable(row)) {
		snprintf(why, size, "%s needs a restart", name);
		return settings_copy_one(&changed->settings, &original->settings, row);
	}
	why[0] = '\0';
	return true;
}

struct snapshot *snapshot_with_setting(const struct snapshot *snapshot, const char *name,
	const char *value, char *why, size_t size)
{
	struct snapshot *changed = snapshot_new();

	if (!changed) {
		snprintf(why, size, "out of memory");
		return NULL;
	}
	changed->catalog = catalog_ref(snapshot->catalog);
	changed->users = userlist_ref(snapshot->users);
	changed->ident = ident_ref(snapshot->ident);
	changed->hba = hba_ref(snapshot->hba);
	changed->presets = snapshot->presets;
	if (change_setting(changed, snapshot, name, value, why, size))
		return changed;
	snapshot_unref(changed);
	return NULL;
}
