/* SPDX-License-Identifier: ISC */
/*
 * Finds the peers of this process by one name (the setting peers): looks its addresses up every
 * dns_max_ttl and asks each of them for its peer_id (wire/peer_question).
 *
 * An address is forgotten when the name no longer has it. If the name cannot be resolved, or an
 * address does not answer, what is known is kept. Without a configured peer_id the process draws
 * one, and draws anew if a peer has the same. Cancel requests with keys of before still find their
 * clients here, but peers no longer forward them to this process.
 *
 * What other processes say is believed as far as cancel requests go: they are sent to the address
 * that has answered with the id, which must be one of the name's.
 */
#ifndef PGUSHER_SESSION_POOL_PEER_DISCOVERY_H
#define PGUSHER_SESSION_POOL_PEER_DISCOVERY_H

#include "model/registry.h"

/*
 * Follow the settings peers and peer_id: begin, begin anew with another name, or end; sets our
 * peer_id. Needs the resolver. Returns false when out of memory.
 */
bool peer_discovery_follow(struct registry *registry);

/* Use the peer_id that the old process of a takeover has drawn, if this one would draw one. */
void peer_discovery_keep_id(struct registry *registry, uint64_t id);

/*
 * A client (GREETING) has sent a whole question: answer it with our peer_id, and close the client.
 * Returns false, and does nothing, if no peers are to be found by name, or the question is
 * malformed.
 */
bool peer_discovery_answer(struct client_link *client, const uint8_t *message, size_t total);

/* End: forget all that was found. To be called before the resolver is freed. */
void peer_discovery_end(struct registry *registry);

#endif
