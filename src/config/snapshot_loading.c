/* SPDX-License-Identifier: ISC */
/* Reads, checks and assembles a snapshot. */
#include <stdio.h>
#include <string.h>

#include "config/ini.h"
#include "config/snapshot_parts.h"
#include "net/network.h"

struct loading;

/* Room for a value that has a comment behind it: numbers, keywords, lists of addresses. */
enum { PLAIN_VALUE_SIZE = 1024 };

typedef void pair_reader(struct loading *loading, const struct ini_place *place,
	const char *name, const char *value);

/* A configuration while it is read. */
struct loading {
	struct snapshot *snapshot;
	struct problems *problems;
	bool has_main; /* the main section was found, or the file could not be read */
	bool had_template; /* the previous configuration has a valid template */
	bool no_memory;
};

/* --- reading ------------------------------------------------------------------------------ */

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

/*
 * Set `plain` to the value without the comment behind it, if it is certain to be one; a comment
 * that may be a part of the value gets a warning. Returns the value to use.
 */
static const char *without_comment(struct loading *loading, const struct ini_place *place,
	const struct setting_row *row, const char *value, char plain[PLAIN_VALUE_SIZE])
{
	enum setting_comment kind;
	size_t length = settings_find_comment(row, value, &kind);

	if (value[length] == '\0')
		return value;
	if (kind == SETTING_COMMENT_DOUBTED) {
		problems_add(loading->problems, PROBLEM_WARNING, place->file, place->line,
			"%s: \"%s\" is part of the value: write a comment on a line of its own",
			row->name, value + length);
		return value;
	}
	if (length >= PLAIN_VALUE_SIZE)
		return value;
	while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
		length--;
	memcpy(plain, value, length);
	plain[length] = '\0';
	return plain;
}

static void read_setting(struct loading *loading, const struct ini_place *place,
	const char *name, const char *value)
{
	struct settings *settings = &loading->snapshot->settings;
	const struct setting_row *row = settings_find(name);
	char why[256], plain[PLAIN_VALUE_SIZE];

	if (!row) {
		refuse_unknown_setting(loading, place, name, value);
		return;
	}
	value = without_comment(loading, place, row, value, plain);
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
	/*
	 * As in PgBouncer, a broken template is only a warning at start. At a reload it is an
	 * error if there was a valid one.
	 */
	const bool lenient = is_template && !loading->had_template;
	struct database_config *config =
		database_config_parse(place, name, value, lenient, loading->problems);

	if (is_template) {
		database_config_free(catalog->template);
		catalog->template = config;
	} else if (config && !named_list_add(&catalog->databases, config->name, config)) {
		loading->no_memory = true;
	}
}

static void read_user(struct loading *loading, const struct ini_place *place, const char *name,
	const char *value)
{
	struct named_list *users = &loading->snapshot->catalog->users;
	struct user_config *config = user_config_parse(place, name, value, loading->problems);

	if (config && !named_list_add(users, config->name, config))
		loading->no_memory = true;
}

static void read_peer(struct loading *loading, const struct ini_place *place, const char *name,
	const char *value)
{
	struct named_list *peers = &loading->snapshot->catalog->peers;
	struct peer_config *config = peer_config_parse(place, name, value, loading->problems);

	if (config && !named_list_add(peers, config->name, config))
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

/* Returns the section's row; NULL, and a problem, for an unknown section. */
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

/* Restore the values of another snapshot for the settings that match. */
static bool copy_settings(struct settings *to, const struct settings *from,
	bool (*is_wanted)(const struct setting_row *row))
{
	const struct setting_row *rows;
	size_t count;

	rows = settings_rows(&count);
	for (size_t i = 0; i < count; i++) {
		if (is_wanted(&rows[i]) && !settings_copy_one(to, from, &rows[i]))
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
 * Load the ident maps, then the rules that name them. Both are read at each load, even if
 * unchanged, since files that they include may have changed.
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

/* Apply a `NAME=VALUE` of the command line. */
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

/* Set defaults, presets and values that carry over. Returns false when out of memory. */
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
		return copy_settings(&snapshot->settings, &previous->settings, keeps_value);
	snapshot->settings.verbose = presets->verbose;
	snapshot->settings.conffile = strdup(path);
	return snapshot->settings.conffile != NULL;
}

/* Without proxies no header could come; with all addresses as proxies each client could lie. */
static void check_proxies(const struct loading *loading, const char *path)
{
	const struct settings *settings = &loading->snapshot->settings;
	const char *cursor = settings->proxy_networks;
	struct network network;
	size_t count = 0;
	bool good;

	if (settings->proxy_protocol == PROXY_PROTOCOL_OFF)
		return;
	for (; network_list_next(&cursor, &network, &good); count++) {
		if (network.family != AF_UNIX && network_is_everything(&network))
			problems_add(loading->problems, PROBLEM_WARNING, path, 0,
				"proxy_networks: any client may claim any address, since a "
				"PROXY header is taken from all addresses");
	}
	if (count == 0)
		problems_add(loading->problems, PROBLEM_ERROR, path, 0,
			"proxy_protocol: proxy_networks is empty, so a PROXY header would be "
			"taken from nowhere");
}

/* Checks and lookups that need the whole file. Returns false when out of memory. */
static bool finish_loading(
	struct loading *loading, const struct snapshot *previous, const char *path)
{
	struct snapshot *snapshot = loading->snapshot;

	if (loading->no_memory)
		return false;
	if (!loading->has_main)
		problems_add(loading->problems, PROBLEM_ERROR, path, 0,
			"load_init_file: main section missing from config file");
	named_list_sort(&snapshot->catalog->databases);
	named_list_sort(&snapshot->catalog->users);
	named_list_sort(&snapshot->catalog->peers);
	if (previous && !copy_settings(&snapshot->settings, &previous->settings, needs_restart))
		return false;
	check_proxies(loading, path);
	load_users(loading, previous);
	load_rules(loading, previous);
	return true;
}

/* Read from the text if there is one, else from the file. */
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
