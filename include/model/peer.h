/* SPDX-License-Identifier: ISC */
/*
 * Peers: other pgusher processes of the same service, to which cancel requests are forwarded.
 *
 * A peer has a pool with a database and a user of its own, made with the first request for it.
 * They are in process.peers only, not in the lists of the registry, so that PAUSE, statistics
 * and SHOW POOLS do not include them.
 */
#ifndef PGUSHER_MODEL_PEER_H
#define PGUSHER_MODEL_PEER_H

#include "model/registry.h"

/* Peers that were found by their name, not configured. */
struct found_peer {
	struct address address; /* with the port */
	char name[8], host[ADDRESS_TEXT_SIZE]; /* texts of the configuration */
	struct peer_config config;
};

enum { FOUND_PEERS_MOST = RESOLVER_ADDRESSES_MAX };

struct found_peers {
	struct found_peer list[FOUND_PEERS_MOST];
	unsigned count;
};

/* Add a peer with this id and address, if there is room and no other one has the id. */
void found_peers_add(struct found_peers *peers, unsigned id, const struct address *address);

/* Returns whether both have the same ids at the same addresses, in the same order. */
bool found_peers_equal(const struct found_peers *a, const struct found_peers *b);

/*
 * Returns the peer with the lowest id above this one, configured or found; NULL: none. A configured
 * one counts before one that was found. It is valid until either of them changes.
 */
const struct peer_config *peer_config_next(const struct registry *registry, unsigned after);

/* Returns how many cancel requests may be forwarded to it at the same time; 0: no limit. */
int peer_pool_size(const struct peer_config *peer, const struct settings *settings);

/* Returns how many processes there are by the configuration and by what was found, this one included. */
unsigned peer_processes(const struct registry *registry);

struct peer {
	TAILQ_ENTRY(peer) entry;
	unsigned id;
	struct pool *pool; /* owned, with its database and user */
};

/*
 * Find or make the peer with this id, owned by the process. Returns NULL when no such peer is
 * configured or found, when it is this process, or when out of memory.
 */
struct peer *peer_open(struct registry *registry, unsigned id);

/* Returns the id of the peer that the pool belongs to; 0 for the pool of a database. */
static inline unsigned peer_of_pool(const struct pool *pool)
{
	return pool->database->peer_id;
}

/* Returns whether the current configuration has the peer, or it is one of those found. */
bool peer_is_configured(const struct peer *peer);

/* Apply the current configuration of a configured peer. Returns false when out of memory. */
bool peer_renew(struct peer *peer);

/* Free the peer with its pool, which must have no links. */
void peer_free(struct registry *registry, struct peer *peer);

#endif
