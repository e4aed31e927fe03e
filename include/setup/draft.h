/* SPDX-License-Identifier: ISC */
/*
 * A configuration under construction: the text of an ini file and of its auth_file, made from
 * something else than an ini file (command line, environment, a file of another pooler).
 *
 * Every value is checked when it is set, with the rules of the ini file, and written with the
 * quotes that the ini file needs, so that the text is read back as what was set. Setting the
 * same key again replaces its value and keeps its place.
 *
 * The draft copies all texts that it is handed. It may hold passwords: its memory is wiped when
 * it is freed. Functions that return false leave the draft unchanged, with the reason in `why`,
 * a text without a line end that never shows a password.
 */
#ifndef PGUSHER_SETUP_DRAFT_H
#define PGUSHER_SETUP_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "config/problems.h"

/* In the order of the file. */
enum draft_section {
	DRAFT_DATABASES,
	DRAFT_USERS,
	DRAFT_PEERS,
	DRAFT_MAIN, /* the settings, [pgbouncer] */
	DRAFT_SECTIONS,
};

enum draft_secrets {
	DRAFT_SHOW_SECRETS, /* a file to run with */
	DRAFT_MASK_SECRETS, /* a text to print: passwords are ******** */
};

struct draft;

/* Returns an empty draft, owned by the caller; NULL when out of memory. */
struct draft *draft_new(void);

/* Wipe and free; NULL is allowed. */
void draft_free(struct draft *draft);

/*
 * Set a setting of the main section. Fails if there is no such setting, or the value is not
 * allowed, or an ini file cannot hold it.
 */
bool draft_set(
	struct draft *draft, const char *name, const char *value, char *why, size_t size);

/* Whether the value of a setting may hold a password, so that no message shows it. */
bool draft_hides(const char *name);

/* The value of a setting, owned by the draft until it is set again; NULL: not set. */
const char *draft_get(const struct draft *draft, const char *name);

/*
 * Set one key of an entry of [databases], [users] or [peers]; the entry is made if it does not
 * exist. An empty value removes the key, since connection strings have no empty values. Set a
 * list of hosts before its list of ports: the entry is checked as a whole.
 */
bool draft_put(struct draft *draft, enum draft_section section, const char *entry,
	const char *key, const char *value, char *why, size_t size);

/* Make an entry without keys if it does not exist. */
bool draft_add_entry(struct draft *draft, enum draft_section section, const char *entry,
	char *why, size_t size);

/* Whether an entry exists. */
bool draft_has_entry(const struct draft *draft, enum draft_section section, const char *entry);

/* The name of an entry, or of a setting, by its place in the section; NULL after the last. */
const char *draft_entry(const struct draft *draft, enum draft_section section, size_t index);

/* The value of a key, owned by the draft until it is put again; NULL: no such entry or key. */
const char *draft_key(const struct draft *draft, enum draft_section section, const char *entry,
	const char *key);

/*
 * Write a comment above an entry or setting, or, without a name, at the begin of a section. Lines
 * of the text become lines of the comment. A remark for an entry that does not exist is kept
 * until the entry is made, and not written before. Returns false when out of memory.
 */
bool draft_remark(
	struct draft *draft, enum draft_section section, const char *name, const char *text);

/* Write a comment at the begin of the file; lines as above. False when out of memory. */
bool draft_title(struct draft *draft, const char *text);

/*
 * Add a user of the auth_file, or replace its secret: a password, an MD5 or a SCRAM secret, as
 * in config/userlist.
 */
bool draft_add_user(
	struct draft *draft, const char *name, const char *secret, char *why, size_t size);

/* The secret of a user, owned by the draft; NULL: no such user. */
const char *draft_user_secret(const struct draft *draft, const char *name);

/* The name of a user, by its place; NULL after the last. Owned by the draft. */
const char *draft_user(const struct draft *draft, size_t index);

/* Number of users added. */
size_t draft_user_count(const struct draft *draft);

/*
 * What could not be taken over, with the file and line it came from: owned by the draft, filled
 * by the caller with problems_add().
 */
struct problems *draft_findings(struct draft *draft);

/*
 * Append the ini file to a buffer, which should be a secret one unless passwords are masked.
 * Returns false when out of memory.
 */
bool draft_write(const struct draft *draft, enum draft_secrets secrets, struct buffer *out);

/* Append the auth_file. Returns false when out of memory. */
bool draft_write_users(
	const struct draft *draft, enum draft_secrets secrets, struct buffer *out);

/*
 * Read the written ini file back as a start would, files that it names included: all mistakes
 * and warnings are added to `problems`, under `name`. Returns whether it can be used.
 */
bool draft_check(const struct draft *draft, const char *name, struct problems *problems);

#endif
