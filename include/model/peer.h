/* SPDX-License-Identifier: ISC */
/*
 * Other processes of the same service, to whom cancel requests are passed on.
 *
 * A peer has a pool of its own, made when the first request for it comes: it stands in
 * registry.process->peers and in no other list, under the name of no database and of no user, so that
 * PAUSE, statistics and SHOW POOLS know nothing of it.
 */
#ifndef PGUSHER_MODEL_PEER_H
#define PGUSHER_MODEL_PEER_H

#include "model/registry.h"

struct peer {
	TAILQ_ENTRY(peer) entry;
	unsigned id;
	struct pool *pool; /* owned, with its database and user */
};

/*
 * The peer of that id, made if need be. NULL: none is configured, it is ourselves, or there is no
 * memory.
 */
struct peer *peer_open(struct registry *registry, unsigned id);

/* Which peer's pool is it? 0: none's. */
static inline unsigned peer_of_pool(const struct pool *pool)
{
	return pool->database->peer_id;
}

/* Is it still in the configuration in force? Then give it the present entry; false without memory. */
bool peer_is_configured(const struct peer *peer);
bool peer_renew(struct peer *peer);

/* Free it; its pool must hold no link. */
void peer_free(struct registry *registry, struct peer *peer);

#endif
