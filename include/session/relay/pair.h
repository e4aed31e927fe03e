/* SPDX-License-Identifier: ISC */
/*
 * A pair: a client and the server that its messages go to. pair_join() and pair_unpair() are the
 * only functions that set link.peer while the process runs; the takeover sets it when it rebuilds
 * the pairs of the old process.
 */
#ifndef PGUSHER_SESSION_RELAY_PAIR_H
#define PGUSHER_SESSION_RELAY_PAIR_H

#include "session/relay/relay_rules.h"

/* Pair an IDLE or WAITING client with an IDLE server: both are PAIRED now, and it is counted. */
void pair_join(struct client_link *client, struct server_link *server);

/* Pair a client of replication with the server that has logged in for it, until either closes. */
void pair_bind(struct client_link *client, struct server_link *server);

/*
 * Split the pair that this link, which must have a peer, belongs to. The client is IDLE then; the
 * caller decides what becomes of the server, whose state does not change.
 */
void pair_unpair(struct link *link);

#endif
