/* SPDX-License-Identifier: ISC */
/*
 * Walks over all links of a registry, oldest first, in as many turns as it takes, while they come,
 * go, and move from one list to another: each that is there all the time is met once.
 */
#ifndef PGUSHER_MODEL_LINK_WALK_H
#define PGUSHER_MODEL_LINK_WALK_H

#include "model/registry.h"

struct link_walk {
	LIST_ENTRY(link_walk) entry; /* in registry.walks */
	struct link *next; /* NULL: that was all */
};

/* The link lives from now on, and no longer; the second does nothing if it never did. */
void link_walk_enroll(struct registry *registry, struct link *link);
void link_walk_strike(struct registry *registry, struct link *link);

/* Begin; it must end before it goes. */
void link_walk_begin(struct link_walk *walk, struct registry *registry);
void link_walk_end(struct link_walk *walk);

/* The next link; NULL: there is none. */
struct link *link_walk_next(struct link_walk *walk);

#endif
