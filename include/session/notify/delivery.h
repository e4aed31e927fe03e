/* SPDX-License-Identifier: ISC */
/*
 * Brings queued messages to clients: between two answers, and never inside one. What a client cannot
 * take now stays in its queue, which is limited by max_notify_backlog: beyond it the client is closed.
 */
#ifndef PGUSHER_SESSION_NOTIFY_DELIVERY_H
#define PGUSHER_SESSION_NOTIFY_DELIVERY_H

#include "session/notify/channels.h"
#include "session/relay/relay.h"

/*
 * Queue a message for the listener. Nothing is sent and no client is closed before delivery_run() of
 * its hub, which the caller has to see to.
 */
void delivery_offer(struct channel_listener *listener, struct notification *notification);

/* As delivery_offer() to the listener of every subscription of the channel. */
void delivery_offer_all(struct channel *channel, struct notification *notification);

/* Returns a WARNING that notifications may be missing; NULL when out of memory. */
struct notification *delivery_warning(void);

/*
 * Look at all listeners with something new: send them their messages, let those go on that wait for
 * the end of a LISTEN, close those that have too many messages. May close any client and server.
 */
void delivery_run(struct channel_hub *hub);

/*
 * The client is between two answers, as far as the caller knows: send it its messages. A client that
 * is in the middle of an answer nevertheless keeps them. May close the client.
 */
void delivery_to_client(struct client_link *client);

/* As delivery_to_client(), for all clients of the hub that could not take their messages before. */
void delivery_sweep(struct channel_hub *hub);

/*
 * For judges: a server sends a NotificationResponse to the client that it is paired with, also while
 * it runs our SETs, or was paired with until it was asked for its state. Behind what waits for the
 * client the message waits, too.
 */
enum verdict delivery_judge_paired(struct relay_run *run);
enum verdict delivery_judge_syncing(struct relay_run *run);
enum verdict delivery_judge_asked(struct relay_run *run);

#endif
