/* SPDX-License-Identifier: ISC */
#include "admin/advice/advisor.h"

#include <stdlib.h>

#include "model/statistics/history.h"

struct advisor {
	usec_t looked_at; /* when the last sample was taken */
};

bool advisor_start(struct registry *registry)
{
	registry->advisor = calloc(1, sizeof(*registry->advisor));
	return registry->advisor != NULL;
}

void advisor_stop(struct registry *registry)
{
	free(registry->advisor);
	registry->advisor = NULL;
}

static void take_sample(struct registry *registry, usec_t now)
{
	struct history *history = registry->history;
	struct pool *pool;

	if (history)
		history_begin_sample(history, now);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (history && !pool->database->console)
			history_take_pool(history, pool);
	}
	if (history)
		history_end_sample(history);
}

void advisor_look(struct registry *registry, usec_t now)
{
	struct advisor *advisor = registry->advisor;

	if (!advisor || now - advisor->looked_at < USEC_PER_SEC)
		return;
	advisor->looked_at = now;
	take_sample(registry, now);
}
