/* SPDX-License-Identifier: ISC */
/*
 * The connections of an adoption: what both kinds have, and how one is found by the handle that the
 * other process had for it. For session/takeover/adoption and its two kinds, nobody else.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_LINKS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_LINKS_H

#include "session/takeover/adoption.h"

struct adoption_statements;

/* A link that was adopted, by the handle that the other process had for it. */
struct adopted_link {
	UT_hash_handle by_handle;
	uint64_t handle, peer;
	struct link *link;
	struct link_record_bytes backlog; /* lent, as the next */
	struct tagged_field operations; /* of a server: prepared statements, in flight */
};

struct adoption {
	struct registry *registry;
	struct adopted_link *entries; /* uthash, in the order in which they came */
	struct adoption_statements *statements; /* until all have been joined */
};

/* What both kinds have. False: no memory, or it is not as it should be. */
bool adoption_links_fill(
	struct registry *registry, struct link *link, const struct link_record *record);

/* Let go of that again, of one that stands in no list yet, and close it. */
void adoption_links_forget(struct link *link);

/* NULL: there is none of this handle. */
struct adopted_link *adoption_links_find(const struct adoption *adoption, uint64_t handle);

/* False: the handle is known already, or no memory. */
bool adoption_links_remember(
	struct adoption *adoption, struct link *link, const struct link_record *record);

#endif
