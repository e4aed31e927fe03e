/* SPDX-License-Identifier: ISC */
/*
 * The named entries hang off a catalog of their own, which a snapshot made by SET shares with
 * the one before.
 */
#include "config/snapshot.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/ini.h"

/* --- lists of named entries --------------------------------------------------------------- */

struct named {
	const char *name; /* of the entry */
	void *entry;
	size_t order; /* in the file */
};

typedef void entry_free(void *entry);

struct named_list {
	struct named *at; /* sorted by name once reading is done */
	size_t count, capacity;
	entry_free *free;
};

/* Takes the entry over; false, and it is freed, without memory. */
static bool list_add(struct named_list *list, const char *name, void *entry)
{
	if (list->count == list->capacity) {
		const size_t capacity = list->capacity ? list->capacity * 2 : 16;
		struct named *at = realloc(list->at, capacity * sizeof(*at));

		if (!at) {
			list->free(entry);
			return false;
		}
		list->at = at;
		list->capacity = capacity;
	}
	list->at[list->count] = (struct named){name, entry, list->count};
	list->count++;
	return true;
}

static int compare_named(const void *a, const void *b)
{
	const struct named *left = a, *right = b;
	const int order = strcmp(left->name, right->name);

	if (order != 0)
		return order;
	return left->order < right->order ? -1 : left->order > right->order;
}

/* Sort, and keep the last of equal names. */
static void list_sort(struct named_list *list)
{
	size_t kept = 0;

	if (list->count == 0)
		return;
	qsort(list->at, list->count, sizeof(list->at[0]), compare_named);
	for (size_t i = 0; i < list->count; i++) {
		if (kept > 0 && strcmp(list->at[kept - 1].name, list->at[i].name) == 0)
			list->free(list->at[--kept].entry);
		list->at[kept++] = list->at[i];
	}
	list->count = kept;
}

static int compare_name(const void *name, const void *named)
{
	return strcmp(name, ((const struct named *)named)->name);
}

static const void *list_find(const struct named_list *list, const char *name)
{
	const struct named *found = NULL;

	if (list->count > 0)
		found = bsearch(name, list->at, list->count, sizeof(list->at[0]), compare_name);
	return found ? found->entry : NULL;
}

static const void *list_entry(const struct named_list *list, size_t index)
{
	return index < list->count ? list->at[index].entry : NULL;
}

static void list_free(struct named_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		list->free(list->at[i].entry);
	free(list->at);
}

/* --- catalogs ----------------------------------------------------------------------------- */

struct catalog {
	atomic_uint references;
	struct named_list databases, users, peers;
	struct database_config *template;
};

static void free_database(void *entry)
{
	database_config_free(entry);
}

static void free_user(void *entry)
{
	user_config_free(entry);
}

static void free_peer(void *entry)
{
	peer_config_free(entry);
}

static struct catalog *catalog_new(void)
{
	struct catalog *catalog = calloc(1, sizeof(*catalog));

	if (!catalog)
		return NULL;
	catalog->references = 1;
	catalog->databases.free = free_database;
	catalog->users.free = free_user;
	catalog->peers.free = free_peer;
	return catalog;
}

static struct catalog *catalog_ref(struct catalog *catalog)
{
	atomic_fetch_add(&catalog->references, 1);
	return catalog;
}

static void catalog_unref(struct catalog *catalog)
{
	if (!catalog || atomic_fetch_sub(&catalog->references, 1) > 1)
		return;
	list_free(&catalog->databases);
	list_free(&catalog->users);
	list_free(&catalog->peers);
	database_config_free(catalog->template);
	free(catalog);
}

/* --- snapshots ---------------------------------------------------------------------------- */

struct snapshot {
	atomic_uint references;
	struct settings settings;
	struct catalog *catalog; /* counted */
	struct userlist *users; /* counted; NULL: none */
	struct ident *ident; /* counted; NULL: none */
	struct hba *hba; /* counted; NULL: none */
	const char *const *presets; /* of the command line, lent for good; NULL: none */
};

static struct snapshot *snapshot_new(void)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (snapshot)
		snapshot->references = 1;
	return snapshot;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
	atomic_fetch_add(&snapshot->references, 1);
	return snapshot;
}

void snapshot_unref(struct snapshot *snapshot)
{
	if (!snapshot || atomic_fetch_sub(&snapshot->references, 1) > 1)
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
	return list_find(&snapshot->catalog->databases, name);
}

const struct user_config *snapshot_find_user(const struct snapshot *snapshot, const char *name)
{
	return list_find(&snapshot->catalog->users, name);
}

const struct database_config *snapshot_database(const struct snapshot *snapshot, size_t index)
{
	return list_entry(&snapshot->catalog->databases, index);
}

const struct user_config *snapshot_user(const struct snapshot *snapshot, size_t index)
{
	return list_entry(&snapshot->catalog->users, index);
}

const struct peer_config *snapshot_peer(const struct snapshot *snapshot, size_t index)
{
	return list_entry(&snapshot->catalog->peers, index);
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

/* --- reading ------------------------------------------------------------------------------ */

struct loading;

typedef void pair_reader(struct loading *loading, const struct ini_place *place,
	const char *name, const char *value);

/* A configuration that is being read. */
struct loading {
	struct snapshot *snapshot;
	struct problems *problems;
	bool has_main; /* or there is nothing to look for it in */
	bool had_template; /* before this reload */
	bool no_memory;
};

static void refuse_unknown_setting(struct loading *loading, const struct ini_place *place,
	const char *name, const char *value)
{
	const char *nearest = settings_nearest(name);

	if (nearest)
		problems_add(loading->problems, PROBLEM_ERROR, place->file, place->line,
			"unknown parameter: pgbouncer/%s: did you mean %s?", name, nearest);
	else
		problems_add(loading->problems, PROBLEM_ERROR, place->file, place->line,
			"unknown parameter: pgbouncer/%s: pgusher(5) lists all of them", name);
	problems_log_as(loading->problems, "unknown parameter: pgbouncer/%s", name);
	problems_log_as(loading->problems,
		"invalid value \"%s\" for parameter %s in configuration (%s:%u)", value, name,
		place->file, place->line);
}

static void read_setting(struct loading *loading, const struct ini_place *place,
	const char *name, const char *value)
{
	struct settings *settings = &loading->snapshot->settings;
	const struct setting_row *row = settings_find(name);
	char why[256];

	if (!row) {
		refuse_unknown_setting(loading, place, name, value);
		return;
	}
	if (!settings_set(settings, name, value, why, sizeof(why))) {
		problems_add(loading->problems, PROBLEM_ERROR, place->file, place->line,
			"invalid value \"%s\" for parameter %s: %s", value, name, why);
		problems_log_as(loading->problems,
			"invalid value \"%s\" for parameter %s in configuration (%s:%u): %s",
			value, name, place->file, place->line, why);
	}
}

static void read_database(struct loading *loading, const struct ini_place *place,
	const char *name, const char *value)
{
	struct catalog *catalog = loading->snapshot->catalog;
	const bool is_template = strcmp(name, "*") == 0;
	/* PgBouncer starts with a broken template; one that has worked is not given up for it. */
	const bool lenient = is_template && !loading->had_template;
	struct database_config *config =
		database_config_parse(place, name, value, lenient, loading->problems);

	if (is_template) {
		database_config_free(catalog->template);
		catalog->template = config;
	} else if (config && !list_add(&catalog->databases, config->name, config)) {
		loading->no_memory = true;
	}
}

static void read_user(struct loading *loading, const struct ini_place *place, const char *name,
	const char *value)
{
	struct named_list *users = &loading->snapshot->catalog->users;
	struct user_config *config = user_config_parse(place, name, value, loading->problems);

	if (config && !list_add(users, config->name, config))
		loading->no_memory = true;
}

static void read_peer(struct loading *loading, const struct ini_place *place, const char *name,
	const char *value)
{
	struct named_list *peers = &loading->snapshot->catalog->peers;
	struct peer_config *config = peer_config_parse(place, name, value, loading->problems);

	if (config && !list_add(peers, config->name, config))
		loading->no_memory = true;
}

static const struct section {
	const char *name;
	pair_reader *read;
} sections[] = {
	/* Sorted by name. */
	{"databases", read_database},
	{"peers", read_peer},
	{"pgbouncer", read_setting},
	{"pgusher", read_setting},
	{"users", read_user},
};

/* The row; NULL: an unknown one, of which was spoken. */
static const void *on_section(void *context, const struct ini_place *place, const char *name)
{
	struct loading *loading = context;

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (strcmp(sections[i].name, name) != 0)
			continue;
		if (sections[i].read == read_setting)
			loading->has_main = true;
		return &sections[i];
	}
	problems_add(loading->problems, PROBLEM_ERROR, place->file, place->line,
		"invalid section \"%s\": allowed is databases, peers, pgbouncer, pgusher, "
		"users",
		name);
	problems_log_as(loading->problems, "invalid section \"%s\" in configuration (%s:%u)",
		name, place->file, place->line);
	return NULL;
}

static void on_pair(void *context, const void *section, const struct ini_place *place,
	const char *key, const char *value)
{
	const struct section *row = section;

	if (row)
		row->read(context, place, key, value);
}

static const struct ini_events events = {.section = on_section, .pair = on_pair};

/* --- loading ------------------------------------------------------------------------------ */

static bool keeps_value(const struct setting_row *row)
{
	return !row->default_text;
}

static bool needs_restart(const struct setting_row *row)
{
	return !settings_is_changeable(row);
}

/* Put the values of another snapshot back in for the settings of that kind. */
static bool take_settings(struct settings *to, const struct settings *from,
	bool (*is_wanted)(const struct setting_row *row))
{
	const struct setting_row *rows;
	size_t count;

	rows = settings_rows(&count);
	for (size_t i = 0; i < count; i++) {
		if (is_wanted(&rows[i]) && !settings_take(to, from, &rows[i]))
			return false;
	}
	return true;
}

static bool needs_users(enum auth_type type)
{
	return type != AUTH_TYPE_ANY && type != AUTH_TYPE_PAM;
}

static void load_users(struct loading *loading, const struct snapshot *previous)
{
	struct snapshot *snapshot = loading->snapshot;
	const char *path = snapshot->settings.auth_file;
	struct userlist *old = previous ? previous->users : NULL;

	if (!needs_users(snapshot->settings.auth_type))
		snapshot->users = userlist_ref(old);
	else if (path && *path)
		snapshot->users = userlist_load(path, old, loading->problems);
}

/*
 * The rules, and before them the maps that they name. Both are read each time, changed or not,
 * since files that they include may have.
 */
static void load_rules(struct loading *loading, const struct snapshot *previous)
{
	struct snapshot *snapshot = loading->snapshot;
	const struct settings *settings = &snapshot->settings;
	const char *maps = settings->auth_ident_file;

	if (settings->auth_type == AUTH_TYPE_HBA && maps && *maps)
		snapshot->ident = ident_load(maps, loading->problems);
	else
		snapshot->ident = ident_ref(previous ? previous->ident : NULL);
	if (settings->auth_type == AUTH_TYPE_HBA)
		snapshot->hba =
			hba_load(settings->auth_hba_file, snapshot->ident, loading->problems);
}

/* `NAME=VALUE`, given on the command line. */
static void preset(struct loading *loading, const char *assignment)
{
	const char *equals = strchr(assignment, '=');
	char name[64], why[256] = "a preset is NAME=VALUE";

	snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - assignment) : 0,
		assignment);
	if (equals &&
		settings_set(&loading->snapshot->settings, name, equals + 1, why, sizeof(why)))
		return;
	problems_add(
		loading->problems, PROBLEM_ERROR, "--preset", 0, "%s: %s", assignment, why);
}

/* Put in what the file need not say. False without memory. */
static bool begin_loading(struct loading *loading, const struct snapshot *previous,
	const char *path, const struct presets *presets)
{
	struct snapshot *snapshot = loading->snapshot = snapshot_new();
	const char *const *assignments = previous ? previous->presets : presets->settings;

	if (!snapshot || !settings_defaults(&snapshot->settings))
		return false;
	snapshot->presets = assignments;
	for (; assignments && *assignments; assignments++)
		preset(loading, *assignments);
	snapshot->catalog = catalog_new();
	if (!snapshot->catalog)
		return false;
	if (previous)
		return take_settings(&snapshot->settings, &previous->settings, keeps_value);
	snapshot->settings.verbose = presets->verbose;
	snapshot->settings.conffile = strdup(path);
	return snapshot->settings.conffile != NULL;
}

/* What can be judged and settled when everything was read. False without memory. */
static bool finish_loading(
	struct loading *loading, const struct snapshot *previous, const char *path)
{
	struct snapshot *snapshot = loading->snapshot;

	if (loading->no_memory)
		return false;
	if (!loading->has_main)
		problems_add(loading->problems, PROBLEM_ERROR, path, 0,
			"load_init_file: main section missing from config file");
	list_sort(&snapshot->catalog->databases);
	list_sort(&snapshot->catalog->users);
	list_sort(&snapshot->catalog->peers);
	if (previous && !take_settings(&snapshot->settings, &previous->settings, needs_restart))
		return false;
	load_users(loading, previous);
	load_rules(loading, previous);
	return true;
}

/* Read from a file, or from the text if there is one. */
static struct snapshot *load(const char *path, const char *text, size_t length,
	const struct snapshot *previous, const struct presets *presets,
	struct problems *problems)
{
	const size_t errors = problems_errors(problems);
	struct loading loading = {
		.problems = problems,
		.had_template = previous && previous->catalog->template,
	};
	bool done = begin_loading(&loading, previous, path, presets);

	if (done) {
		if (text)
			ini_read_text(path, text, length, &events, &loading, problems);
		else if (!ini_read(path, &events, &loading, problems))
			loading.has_main = true;
		done = finish_loading(&loading, previous, path);
	}
	if (!done)
		problems_add(problems, PROBLEM_ERROR, path, 0, "out of memory");
	if (problems_errors(problems) == errors)
		return loading.snapshot;
	snapshot_unref(loading.snapshot);
	return NULL;
}

static const struct presets none;

struct snapshot *snapshot_load(
	const char *path, const struct snapshot *previous, struct problems *problems)
{
	return load(path, NULL, 0, previous, &none, problems);
}

struct snapshot *snapshot_start(
	const char *path, const struct presets *presets, struct problems *problems)
{
	return load(path, NULL, 0, NULL, presets, problems);
}

struct snapshot *snapshot_parse(const char *name, const char *text, size_t length,
	const struct snapshot *previous, struct problems *problems)
{
	return load(name, text, length, previous, &none, problems);
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
	if (needs_restart(row)) {
		snprintf(why, size, "%s needs a restart", name);
		return settings_take(&changed->settings, &original->settings, row);
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
