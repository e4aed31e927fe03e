/* SPDX-License-Identifier: ISC */
/*
 * A whole configuration: settings, databases, users, peers, the user list and the HBA rules, read
 * and checked together, then never changed. A reload makes a new one beside the old.
 *
 * Counted: whoever keeps one takes a reference and gives it back; the last one frees it and wipes
 * its passwords. Everything that is looked up here is lent for as long as the reference is held.
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
 * Read a configuration from a file. NULL if there is any error; all problems are collected. With
 * `previous`, the one in force, it is a reload: settings that need a restart keep their values,
 * so do those that have no default and are not in the file, and the user list is only read if
 * its file has changed. Files that are named in it are opened now, from the working directory.
 */
struct snapshot *snapshot_load(
	const char *path, const struct snapshot *previous, struct problems *problems);

/* What the command line has to say: it counts unless the file says otherwise, at reloads too. */
struct presets {
	int verbose;
	const char *const *settings; /* `NAME=VALUE`, ends with NULL; NULL: none. Must stay. */
};

/* At start: the same without a previous one. */
struct snapshot *snapshot_start(
	const char *path, const struct presets *presets, struct problems *problems);

/* As snapshot_load(), from a text, here called `name`. */
struct snapshot *snapshot_parse(const char *name, const char *text, size_t length,
	const struct snapshot *previous, struct problems *problems);

/*
 * For SET: the same configuration with one setting changed; the rest is shared. NULL: no such
 * setting, value not allowed, or no memory, and `why` says which. A setting that needs a restart
 * is checked but keeps its value. On success `why` is empty, or says why the new value has no
 * effect.
 */
struct snapshot *snapshot_with_setting(const struct snapshot *snapshot, const char *name,
	const char *value, char *why, size_t size);

/* One more holder. */
struct snapshot *snapshot_ref(struct snapshot *snapshot);

/* One holder less; NULL is fine. */
void snapshot_unref(struct snapshot *snapshot);

const struct settings *snapshot_settings(const struct snapshot *snapshot);

/* By exact name; NULL: not in the configuration. */
const struct database_config *snapshot_find_database(
	const struct snapshot *snapshot, const char *name);
const struct user_config *snapshot_find_user(const struct snapshot *snapshot, const char *name);

/* By index, in byte order of names (peers: of their numbers as texts); NULL behind the last. */
const struct database_config *snapshot_database(const struct snapshot *snapshot, size_t index);
const struct user_config *snapshot_user(const struct snapshot *snapshot, size_t index);
const struct peer_config *snapshot_peer(const struct snapshot *snapshot, size_t index);

/* The `*` entry, for database_config_from_template(); NULL: none, or one with mistakes. */
const struct database_config *snapshot_template(const struct snapshot *snapshot);

/* The auth_file's users; NULL: none. */
const struct userlist *snapshot_userlist(const struct snapshot *snapshot);

/*
 * The auth_hba_file's rules; NULL: none. Read at a load with auth_type hba, never by SET. A login
 * that has to wait takes a reference of its own.
 */
struct hba *snapshot_hba(const struct snapshot *snapshot);

#endif
