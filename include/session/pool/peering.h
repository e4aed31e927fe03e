/* SPDX-License-Identifier: ISC */
/*
 * Forwards cancel requests with a key that another process has issued (with SO_REUSEPORT
 * several processes share a port), each over a connection of its own.
 *
 * The second and third byte of a key are the peer_id of the process that issued it; the last
 * two bits of its eighth byte count how often the request may be forwarded.
 */
#ifndef PGUSHER_SESSION_POOL_PEERING_H
#define PGUSHER_SESSION_POOL_PEERING_H

#include "model/peer.h"

/* Returns true if the key has the peer_id of another process. Keys are not authenticated. */
bool peering_is_foreign(const struct registry *registry, const uint8_t *key, size_t length);

/*
 * Queue the cancel request of this client for the peer that issued the key. The client is
 * closed if that peer is not configured, has too many requests, or the key must not be
 * forwarded again.
 */
void peering_forward(struct client_link *client, const uint8_t *key, size_t length);

/* Regular upkeep: try again to connect to peers for which requests wait. */
void peering_work(struct registry *registry);

/*
 * The configuration, or what was found by name, has changed: free peers that were removed, and use
 * the new addresses.
 */
void peering_apply(struct registry *registry);

/* Returns the number of connections to peers, in any state. */
unsigned peering_count_servers(const struct registry *registry);

/* Close all connections to peers, and the clients with requests that wait for one. */
void peering_drop_all(struct registry *registry, enum reason reason);

#endif
