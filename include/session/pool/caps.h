/* SPDX-License-Identifier: ISC */
/*
 * Shares the server connections below a cap (model/cap) among the pools that want them.
 *
 * A place below a full cap is made by closing a free server of another pool: one that has been
 * unused for some milliseconds, or, without that delay, one of a pool that has at least as many
 * servers as the pool in need would have then (both beyond min_pool_size and divided by
 * pool_weight). A pool that finds no such server waits in the queue of the cap. Then the next
 * server that a pool with as many servers returns is closed for it, even if clients of that
 * pool wait, too: so each pool gets its share.
 *
 * Pools that have equally many take turns, however long clients of the one that had its turn
 * have waited. A turn lasts a few times as long as the login of a server, so that most of the
 * time is spent on queries.
 *
 * Two caps seldom have a place for a pool in the same moment. A pool without a server that comes
 * first below both is promised the place that it gets first (cap_promise()), for twice as long as
 * it has waited for that: so the place below the cap that is slower to free one is kept long
 * enough for the faster one to follow, and a place of which there is a next one soon is not kept
 * in vain for long. If the other place does not come meanwhile, the pool waits for that one, and
 * is promised it in turn, for longer. A pool has one such promise, and a cap gives one, and not to
 * a pool that waits for a cap with a promise to another: pools never wait for each other.
 *
 * The same rules hold between pools of different workers: each worker closes servers of its own pools for
 * the first pool that waits at another one (model/shared/tally), and places that become free go to
 * the worker whose pool comes first.
 */
#ifndef PGUSHER_SESSION_POOL_CAPS_H
#define PGUSHER_SESSION_POOL_CAPS_H

#include "model/registry.h"

/* What a server is to be launched for. */
enum caps_purpose {
	CAPS_FOR_CLIENTS, /* free servers are closed; the pool waits in a queue */
	CAPS_FOR_MINIMUM, /* no server is closed, and the pool waits in no queue */
};

/*
 * Returns whether all caps of the pool allow one more server now; closes servers if that makes
 * it so. `since`: its client that has waited longest has waited since then. If so, the caller launches
 * a server and calls caps_end_launch().
 */
bool caps_allow_server(struct pool *pool, enum caps_purpose purpose, usec_t since);

/* The same for a server that watches its host. Another one must still fit in then. */
bool caps_allow_watch(struct pool *pool);

/* To be called after caps_allow_server(): gives the places back if no server has taken them. */
void caps_end_launch(struct pool *pool);

/*
 * A server is free, and its pool has caps. Returns true if it was closed, because another pool
 * is to have its place.
 */
bool caps_take_back(struct server_link *server);

/*
 * Returns the next pool that may get a place below a cap that has changed in this turn, after
 * taking it out of its queue; NULL: none. The caller launches a server for it.
 */
struct pool *caps_next_pool(struct registry *registry);

#endif
