/* SPDX-License-Identifier: ISC */
/*
 * Cancel requests whose key another process has given out (SO_REUSEPORT lets several share a
 * port): they are passed on to it, each over a connection of its own.
 *
 * A key says in its second and third byte who gave it out, and in the last two bits of its eighth
 * how often it may still be passed on.
 */
#ifndef PGUSHER_SESSION_POOL_PEERING_H
#define PGUSHER_SESSION_POOL_PEERING_H

#include "model/peer.h"

/* Does the key belong to another process, as far as it says so itself? */
bool peering_is_foreign(const struct registry *registry, const uint8_t *key, size_t length);

/* Pass the request on, or close the client that brought it. */
void peering_forward(struct client_link *client, const uint8_t *key, size_t length);

/* Regular upkeep: tries that came to nothing are made again. */
void peering_work(struct registry *registry);

/* The configuration has changed: forget peers that are gone, and turn to where others are now. */
void peering_apply(struct registry *registry);

/* Connections to peers, in any state. */
unsigned peering_count_servers(const struct registry *registry);

/* Close all of them, and whoever waits for them. */
void peering_drop_all(struct registry *registry, enum reason reason);

#endif
