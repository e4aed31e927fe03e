/* SPDX-License-Identifier: ISC */
#include "daemon/reload.h"

#include <stdio.h>

#include "base/log.h"
#include "daemon/apply.h"
#include "daemon/check.h"
#include "daemon/progress/reload_report.h"
#include "model/host/host_items.h"
#include "session/auth/method.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/link/tls_setup.h"
#include "session/pool/move_clients.h"
#include "session/pool/peer_discovery.h"
#include "session/pool/peering.h"
#include "session/server/host_role.h"
#include "session/serving/control.h"

/* --- databases ---------------------------------------------------------------------------- */

/* Clients that log in are not in a pool yet, but may have a database already. */
static void close_logins(const struct database *database)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, &database->registry->logins, place, next) {
		if (client_of(link)->database == database)
			client_close_for(client_of(link), REASON_DATABASE_REMOVED);
	}
}

static void drop_database(struct registry *registry, struct database *database)
{
	log_write(LEVEL_WARNING,
		"dropping database '%s' as it does not exist anymore or inactive auto-database",
		database->name);
	close_logins(database);
	control_kill(registry, database, false);
	registry_drop_database(database);
}

/*
 * Switch to another configuration of a database. Another user moves the clients to another
 * pool; another target retires the servers.
 */
static void switch_config(struct registry *registry, struct database *database,
	const struct database_config *old, const struct database_config *new)
{
	database->config = new;
	if (!database_config_same_user(old, new))
		move_clients_of_database(database);
	if (!database_config_same_target(old, new)) {
		counters_forget_hosts(database);
		database->wants_primary = false;
		database->system = 0;
		control_retire(registry, database, SERVER_CLOSED_RELOAD);
	}
}

/*
 * Configure an automatic database by the new template. When out of memory it keeps its old
 * configuration, which no other database refers to.
 */
static void reconfigure_automatic(struct registry *registry, struct database *database)
{
	struct database_config *old = database->own_config;
	struct database_config *new = database_config_from_template(
		snapshot_template(registry->process->config), database->name);

	if (!new) {
		log_write(LEVEL_ERROR, "no memory for the new configuration of database '%s'",
			database->name);
		return;
	}
	database->own_config = new;
	switch_config(registry, database, old, new);
	database_config_free(old);
}

/*
 * Update an existing database. The new configuration is in force already, except for
 * database->config. An automatic database may be configured by name now.
 */
static void update_database(struct registry *registry, struct database *database)
{
	const struct database_config *new =
		snapshot_find_database(registry->process->config, database->name);

	if (database->console)
		return;
	if (new) {
		switch_config(registry, database, database->config, new);
	} else if (database->own_config && snapshot_template(registry->process->config)) {
		reconfigure_automatic(registry, database);
	} else {
		drop_database(registry, database);
	}
}

/* --- the new configuration ---------------------------------------------------------------- */

/* Time limits may be shorter now, and pools larger. */
static void refresh_pools(struct registry *registry)
{
	const struct registry *each;
	struct pool_walk walk;
	struct link *link;
	struct pool *pool;

	EACH_REGISTRY (each, registry->process) {
		TAILQ_FOREACH (link, &each->logins, place)
			client_limits_start(client_of(link));
	}
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		pool_reconfigure(pool);
		walk = pool_walk_clients(pool);
		while ((link = pool_walk_next(&walk)) != NULL)
			client_limits_start(client_of(link));
		pool_needs_work(pool);
	}
}

/* Put a configuration in force, and take over its reference. */
static void apply_config(struct daemon *daemon, struct snapshot *config)
{
	struct registry *registry = &daemon->registry;
	struct snapshot *old = registry->process->config;
	struct database *database, *next;
	struct registry *each;
	bool complete;

	registry->process->config = config;
	registry->process->settings = snapshot_settings(config);
	HASH_ITER (by_name, registry->process->directory.databases, database, next)
		update_database(registry, database);
	EACH_REGISTRY (each, registry->process) {
		host_items_prune(each);
		host_role_reconfigured(each);
	}
	complete = registry_apply_databases(registry);
	EACH_REGISTRY (each, registry->process)
		complete = registry_apply_users(each) && complete;
	refresh_pools(registry);
	if (!peer_discovery_follow(registry))
		log_write(LEVEL_ERROR, "no memory for peers");
	peering_apply(registry);
	apply_settings(daemon, snapshot_settings(old));
	if (settings_group_differs(snapshot_settings(old), registry->process->settings,
		    SETTING_GROUP_SERVER_TLS))
		control_retire(registry, NULL, SERVER_CLOSED_RELOAD);
	if (complete)
		snapshot_unref(old);
	else
		/* Not freed, since objects may still point into the old configuration. */
		log_write(LEVEL_ERROR, "no memory for all of the new configuration");
}

/* Give the list of the files that were read, or could not be read, to the watch. */
static void watch_files(struct daemon *daemon, struct file_list *files)
{
	tls_setup_note_files(daemon->registry.process->settings, files);
	file_list_tidy(files);
	file_watch_adopt(&daemon->file_watch, files);
}

/* SET may have named other files of TLS. */
static void watch_tls_files(struct daemon *daemon)
{
	struct file_list files = daemon->file_watch.files;

	daemon->file_watch.files = (struct file_list){0};
	watch_files(daemon, &files);
}

static bool load_files(struct daemon *daemon, struct reload_report *report)
{
	struct registry *registry = &daemon->registry;
	struct file_list files = {0};
	struct problems problems = {.files = &files};
	const struct registry *each;
	struct snapshot *config;
	char why[512];

	reload_report_begin(report);
	config = snapshot_load(
		registry->process->settings->conffile, registry->process->config, &problems);
	check_log_problems(&problems);
	problems_free(&problems);
	if (config && !auth_load(config, why, sizeof(why))) {
		log_write(LEVEL_ERROR, "%s", why);
		snapshot_unref(config);
		config = NULL;
	}
	if (!config) {
		log_write(LEVEL_WARNING, "config file loading failed");
		log_reopen(); /* for logrotate, also when the configuration is wrong */
		watch_files(daemon, &files);
		return false;
	}
	file_list_tidy(&files);
	reload_report_read(report, registry, config, &files);
	apply_config(daemon, config);
	watch_files(daemon, &files);
	EACH_REGISTRY (each, registry->process)
		resolver_renew(each->resolver);
	apply_log(registry->process->settings, daemon->options);
	reload_report_end(report, registry);
	if (tls_setup_apply(registry))
		return true;
	log_write(LEVEL_ERROR,
		"TLS configuration could not be reloaded, keeping old configuration");
	return false;
}

bool reload_run(struct daemon *daemon, char *report, size_t size)
{
	struct counters *counters = &daemon->registry.counters;
	struct reload_report made;
	const bool good = load_files(daemon, &made);

	if (report)
		snprintf(report, size, "%s", made.notable ? made.text : "");
	counters->reloads[good ? RELOAD_OK : RELOAD_ERROR]++;
	counters->last_reload_failed = !good;
	if (good)
		counters->last_reload = clock_wall();
	return good;
}

static bool is_about_tls(const char *key)
{
	const enum setting_group group = settings_find(key)->group;

	return group == SETTING_GROUP_TLS || group == SETTING_GROUP_SERVER_TLS;
}

bool reload_set(
	struct daemon *daemon, const char *key, const char *value, char *why, size_t size)
{
	struct snapshot *old = daemon->registry.process->config;
	struct snapshot *config = snapshot_with_setting(old, key, value, why, size);

	if (!config)
		return false;
	if (!auth_load(config, why, size)) {
		snapshot_unref(config);
		return false;
	}
	snapshot_ref(old);
	apply_config(daemon, config);
	apply_changed_log(
		daemon->registry.process->settings, snapshot_settings(old), daemon->options);
	snapshot_unref(old);
	if (!is_about_tls(key))
		return true;
	watch_tls_files(daemon);
	if (!tls_setup_apply(&daemon->registry))
		snprintf(why, size,
			"TLS settings could not be applied, still using old configuration");
	return true;
}
