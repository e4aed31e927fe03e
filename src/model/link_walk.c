/* SPDX-License-Identifier: ISC */
#include "model/link_walk.h"

void link_walk_enroll(struct registry *registry, struct link *link)
{
	TAILQ_INSERT_TAIL(&registry->links, link, in_registry);
}

void link_walk_strike(struct registry *registry, struct link *link)
{
	struct link_walk *walk;

	if (!link->in_registry.tqe_prev)
		return;
	LIST_FOREACH(walk, &registry->walks, entry)
	{
		if (walk->next == link)
			link_walk_next(walk);
	}
	TAILQ_REMOVE(&registry->links, link, in_registry);
	link->in_registry.tqe_prev = NULL;
}

void link_walk_begin(struct link_walk *walk, struct registry *registry)
{
	walk->next = TAILQ_FIRST(&registry->links);
	LIST_INSERT_HEAD(&registry->walks, walk, entry);
}

void link_walk_end(struct link_walk *walk)
{
	LIST_REMOVE(walk, entry);
}

struct link *link_walk_next(struct link_walk *walk)
{
	struct link *link = walk->next;

	if (link)
		walk->next = TAILQ_NEXT(link, in_registry);
	return link;
}
