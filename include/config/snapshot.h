/* SPDX-License-Identifier: ISC */
/*
 * A whole configuration: settings, databases, users, peers, the user list and the HBA rules,
 * read and checked together, immutable afterwards. A reload makes a new one.
 *
 * Reference-counted; the last release frees it and wipes its passwords. Everything returned by
 * lookups is valid as long as the reference is held.
 */
#ifndef PGUSHER_CONFIG_SNAPSHOT_H
#define PGUSHER_CONFIG_SNAPSHOT_H

#include <stddef.h>

#include "config/database_config.h"
#include "config/hba.h"
#include "config/peer_config.h"
#include "config/problems.h"
#include "config/settings.h"
#include "config/user_config.h"
#include "config/userlist.h"

struct snapshot;

/*
 * Read a configuration from a file. Returns a reference owned by the caller, or NULL if there
 * is any error; all problems are collected. `previous` is the present configuration at a
 * reload, else NULL: settings that need a restart keep their values, and so do those without a
 * default that are not in the file; the user list is read only if its file has changed. Files
 * named in the configuration are opened now, relative to the working directory.
 */
struct snapshot *snapshot_load(
	const char *path, const struct snapshot *previous, struct problems *problems);

/* Values from the command line: they apply unless the file sets the same, at reloads too. */
struct presets {
	int verbose;
	/* `NAME=VALUE`, ended by NULL; NULL: none. Borrowed for the lifetime of the process. */
	const char *const *settings;
};

/* Like snapshot_load() without a previous one, at start. */
struct snapshot *snapshot_start(
	const char *path, const struct presets *presets, struct problems *problems);

/* Like snapshot_load(), for a text in memory; `name` is used in problems. */
struct snapshot *snapshot_parse(const char *name, const char *text, size_t length,
	const struct snapshot *previous, struct problems *problems);

/*
 * For SET: returns the same configuration with one setting changed; the rest is shared.
 * Returns NULL, with the reason in `why`, if the setting does not exist, the value is not
 * allowed, or when out of memory. A setting that needs a restart is checked but keeps its
 * value. On success `why` is empty, or has the reason why the new value has no effect.
 */
struct snapshot *snapshot_with_setting(const struct snapshot *snapshot, const char *name,
	const char *value, char *why, size_t size);

/* Add a reference. */
struct snapshot *snapshot_ref(struct snapshot *snapshot);

/* Release a reference; NULL is allowed. */
void snapshot_unref(struct snapshot *snapshot);

const struct settings *snapshot_settings(const struct snapshot *snapshot);

/* Lookup by exact name; NULL: not in the configuration. */
const struct database_config *snapshot_find_database(
	const struct snapshot *snapshot, const char *name);
const struct user_config *snapshot_find_user(const struct snapshot *snapshot, const char *name);

/*
 * Lookup by index, in byte order of names (peers: of their numbers as texts); NULL after the
 * last.
 */
const struct database_config *snapshot_database(const struct snapshot *snapshot, size_t index);
const struct user_config *snapshot_user(const struct snapshot *snapshot, size_t index);
const struct peer_config *snapshot_peer(const struct snapshot *snapshot, size_t index);

/*
 * The `*` entry, for database_config_from_template(); NULL if there is none or it has
 * mistakes.
 */
const struct database_config *snapshot_template(const struct snapshot *snapshot);

/* The users of auth_file; NULL: none. */
const struct userlist *snapshot_userlist(const struct snapshot *snapshot);

/*
 * The rules of auth_hba_file; NULL: none. Read at each load with auth_type hba, never by SET.
 * A login that has to wait takes its own reference.
 */
struct hba *snapshot_hba(const struct snapshot *snapshot);

#endif
