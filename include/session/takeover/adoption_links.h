/* SPDX-License-Identifier: ISC */
/*
 * The links of an adoption: what clients and servers have in common, and the table that finds
 * them by their handles in the other process. Only takeover/adoption, adoption_clients and
 * adoption_servers use it.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_LINKS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_LINKS_H

#include "session/takeover/adoption.h"

struct adoption_statements;

/* A link that was adopted. */
struct adopted_link {
	UT_hash_handle by_handle;
	uint64_t handle, peer; /* handles of the link and its peer in the other process */
	struct link *link;
	struct tagged_span backlog; /* points into the record, as the next */
	struct tagged_field operations; /* of a server: prepared statements, in flight */
};

struct adoption {
	struct registry
		*registry; /* the first one of the process: each link goes to its home */
	struct adopted_link *entries; /* uthash, in the order in which they came */
	struct adoption_statements *statements; /* until all links have been joined */
};

/*
 * Fill in what clients and servers have in common. Returns false when out of memory, or when
 * the record is invalid.
 */
bool adoption_links_fill(
	struct registry *registry, struct link *link, const struct link_record *record);

/*
 * Undo adoption_links_fill() and close the stream, for a link that is in no list yet. The
 * link's own memory belongs to the caller.
 */
void adoption_links_drop(struct link *link);

/* Return the adopted link with this handle, or NULL. */
struct adopted_link *adoption_links_find(const struct adoption *adoption, uint64_t handle);

/*
 * Add the link to the table. Returns false when its handle is in the table already, or when out
 * of memory.
 */
bool adoption_links_add(
	struct adoption *adoption, struct link *link, const struct link_record *record);

#endif
