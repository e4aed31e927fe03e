/* SPDX-License-Identifier: ISC */
#include "model/link_walk.h"

void link_walk_enroll(struct registry *registry, struct link *link)
{
	TAILQ_INSERT_TAIL(&registry->links, link, in_registry);
}

static void step(struct link_walk *walk)
{
	if (walk->next)
		walk->next = TAILQ_NEXT(walk->next, in_registry);
}

void link_walk_strike(struct registry *registry, struct link *link)
{
	struct link_walk *walk;

	if (!link->in_registry.tqe_prev)
		return;
	LIST_FOREACH(walk, &registry->walks, entry)
	{
		if (walk->next == link)
			step(walk);
	}
	TAILQ_REMOVE(&registry->links, link, in_registry);
	link->in_registry.tqe_prev = NULL;
}

static void enter(struct link_walk *walk, struct registry *registry)
{
	walk->registry = registry;
	walk->next = TAILQ_FIRST(&registry->links);
	LIST_INSERT_HEAD(&registry->walks, walk, entry);
}

void link_walk_begin(struct link_walk *walk, struct process *process)
{
	enter(walk, process->registries[0]);
}

void link_walk_end(struct link_walk *walk)
{
	LIST_REMOVE(walk, entry);
}

struct link *link_walk_next(struct link_walk *walk)
{
	const struct process *process = walk->registry->process;
	struct link *link;

	while (!walk->next && walk->registry->number + 1 < process->workers) {
		LIST_REMOVE(walk, entry);
		enter(walk, process->registries[walk->registry->number + 1]);
	}
	link = walk->next;
	step(walk);
	return link;
}
