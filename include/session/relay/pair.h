/* SPDX-License-Identifier: ISC */
/*
 * A pair: a client and the server that its messages go to. pair_join() and pair_unpair() are
 * the only functions that set link.peer while the process runs; the takeover sets it when it
 * rebuilds the pairs of the old process.
 */
#ifndef PGUSHER_SESSION_RELAY_PAIR_H
#define PGUSHER_SESSION_RELAY_PAIR_H

#include "session/relay/relay_rules.h"

/*
 * Pair an IDLE or WAITING client with an IDLE server: both are PAIRED then. Counts the
 * assignment, and the wait of a WAITING client.
 */
void pair_join(struct client_link *client, struct server_link *server);

/*
 * Pair a replication client with the server that has logged in for it. They stay a pair until
 * one of them closes.
 */
void pair_bind(struct client_link *client, struct server_link *server);

/*
 * Pair a client again with the server that was ASKING for it: the server has what belongs to the
 * client. No assignment is counted.
 */
void pair_again(struct client_link *client, struct server_link *server);

/*
 * Split the pair that this link, which must have a peer, belongs to. The client is IDLE then.
 * The state of the server does not change; the caller decides what to do with the server.
 */
void pair_unpair(struct link *link);

#endif
