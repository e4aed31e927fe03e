/* SPDX-License-Identifier: ISC */
/* What draft.c, which fills a draft, and draft_text.c, which writes it, share. */
#ifndef PGUSHER_SETUP_DRAFT_PARTS_H
#define PGUSHER_SETUP_DRAFT_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "config/problems.h"
#include "config/settings.h"
#include "setup/draft.h"

struct draft_items {
	struct draft_item *at; /* in the order in which they were made */
	size_t count, capacity;
};

/* A setting, an entry, a key of an entry, or a user of the auth_file. */
struct draft_item {
	char *name;
	char *value; /* NULL: an entry, or a remark whose item does not exist yet */
	char *remark; /* lines of the comment above it; NULL: none */
	struct draft_items keys; /* of an entry */
	bool made; /* false: only a remark */
};

struct draft {
	struct draft_items sections[DRAFT_SECTIONS];
	char *section_remarks[DRAFT_SECTIONS];
	char *title;
	struct draft_items users;
	struct settings settings; /* the values so far, with defaults: checks new ones */
	struct problems findings;
};

/* Append the connection string of an entry. Returns false when out of memory. */
bool draft_write_keys(
	const struct draft_item *entry, enum draft_secrets secrets, struct buffer *out);

#endif
