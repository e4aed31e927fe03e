/* SPDX-License-Identifier: ISC */
/*
 * Walks over all links of the process, those of each registry oldest first, over any number of turns,
 * in which no other worker may run. Between them links
 * may be opened, closed and moved between lists: a link that is open all the time is visited
 * exactly once.
 */
#ifndef PGUSHER_MODEL_LINK_WALK_H
#define PGUSHER_MODEL_LINK_WALK_H

#include "model/registry.h"

struct link_walk {
	LIST_ENTRY(link_walk) entry; /* in registry.walks */
	struct registry *registry; /* whose links come now */
	struct link *next; /* of these; NULL: no more */
};

/* Add a link that was opened to registry.links. */
void link_walk_enroll(struct registry *registry, struct link *link);

/* Remove a link that is closed; does nothing if it was never added. */
void link_walk_strike(struct registry *registry, struct link *link);

/* Begin a walk. It must be ended before its memory is freed. */
void link_walk_begin(struct link_walk *walk, struct process *process);
void link_walk_end(struct link_walk *walk);

/* Returns the next link; NULL after the last one. */
struct link *link_walk_next(struct link_walk *walk);

#endif
