/* SPDX-License-Identifier: ISC */
/*
 * The listening server of a pool: one connection that listens on all channels of the pool's clients. It
 * is launched for the first of them, beyond the size of the pool and within the limits that pools
 * share, and serves no queries. It goes when no client has listened for server_idle_timeout.
 *
 * If it is lost, each client that listens gets a WARNING, and the next one listens on its channels.
 */
#ifndef PGUSHER_SESSION_NOTIFY_LISTENING_SERVER_H
#define PGUSHER_SESSION_NOTIFY_LISTENING_SERVER_H

#include "base/failure.h"
#include "session/notify/channels.h"
#include "session/notify/notifier.h"

/* Returns whether the pool needs a listening server, and none is there or logging in. */
bool listening_server_is_wanted(const struct pool *pool);

/* The server was launched to listen for its pool, or has logged in: it is LISTENING then. */
void listening_server_launched(struct server_link *server);
void listening_server_begin(struct server_link *server);

/*
 * It cannot be launched for this reason: every client that waits for the end of a LISTEN gets it as an
 * error, in listening_server_work(), which the caller has to see to. Others stay subscribed, and
 * listening_server_upkeep() tries again.
 */
void listening_server_refused(struct pool *pool, const struct failure *why);

/* Send what the server lacks of LISTEN and UNLISTEN, and clients their messages. */
void listening_server_work(struct pool *pool);

/*
 * What it sends. Return false when memory is short, or for a ReadyForQuery that is not owed. Nothing is
 * sent to clients before listening_server_run_ended().
 */
bool listening_server_take_notification(
	const struct relay_run *run, const struct notifier_message *message);
bool listening_server_take_error(struct channel_hub *hub, const void *message, size_t length);
bool listening_server_take_ready(struct channel_hub *hub);

/* A run of the relay over its messages has ended. May close it. */
void listening_server_run_ended(struct server_link *server);

/* To be called regularly for a pool with a hub. May close the server. */
void listening_server_upkeep(struct pool *pool, usec_t now);

/* The server, which was in this state, was closed. */
void listening_server_closed(
	struct server_link *server, enum server_state state, const struct failure *why);

/* No server listens for the clients any more: they get a WARNING, and the next one listens again. */
void listening_server_lost(struct channel_hub *hub);

/*
 * Move a client that has a listener to another pool, as client_move() does: it listens there, and gets
 * a WARNING. Returns false when memory is short: the client must be closed.
 */
bool listening_server_move_client(struct client_link *client, struct pool *pool);

#endif
