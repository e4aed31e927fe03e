/* SPDX-License-Identifier: ISC */
/*
 * One configuration of another pooler on its way to ours: the draft that is filled, and what is
 * found on the way.
 *
 * The functions here put values into the draft, and list what is lost or otherwise here.
 */
#ifndef PGUSHER_SETUP_CONVERT_CONVERSION_H
#define PGUSHER_SETUP_CONVERT_CONVERSION_H

#include "setup/convert/source.h"
#include "setup/draft.h"

struct route;
struct auth_rule;

struct conversion {
	struct source *source; /* of which all memory is taken */
	struct draft *draft;
	const char *file;
	struct route *routes, *last_route;
	unsigned route_count, rule_count;
	struct auth_rule *rules, *last_rule;
	const char *rules_path; /* how the ini file names the HBA file */
	struct buffer hba; /* the text of the HBA file; empty: none is needed */
	struct buffer users_wanted; /* comments for auth_file: users with unknown secrets */
	bool failed; /* out of memory, or beyond a limit */
};

/* Something is lost: list it. `node` is what the source has. */
void conversion_lose(struct conversion *conversion, const struct source_node *node,
	const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Something is kept, and is otherwise here: list it. */
void conversion_note(struct conversion *conversion, const struct source_node *node,
	const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A formatted text that lives as long as the source; an empty one when out of memory. */
const char *conversion_text(struct conversion *conversion, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Set a setting. Returns false if the value is not allowed, or if the setting has another value
 * already, which stays; then the node is listed as lost.
 */
bool conversion_set(struct conversion *conversion, const struct source_node *node,
	const char *name, const char *value);

/* Likewise a key of an entry. */
bool conversion_put(struct conversion *conversion, const struct source_node *node,
	enum draft_section section, const char *entry, const char *key, const char *value);

/* Likewise a user of the auth_file. */
bool conversion_add_user(struct conversion *conversion, const struct source_node *node,
	const char *name, const char *secret);

#endif
