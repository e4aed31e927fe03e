/* SPDX-License-Identifier: ISC */
/*
 * Closes the clients one after another during a shutdown that has a time limit, so that they do not
 * all connect elsewhere in the same moment.
 *
 * The turn of each client comes once in that time. A client without a transaction is closed then
 * (REASON_DRAINED), another one as soon as its transaction has ended: never while anything of it is
 * in progress, or has arrived and was not read yet. So no query is executed in part. What a client
 * sends later is ignored: it gets the reason instead of an answer.
 */
#ifndef PGUSHER_SESSION_SERVING_DRAIN_H
#define PGUSHER_SESSION_SERVING_DRAIN_H

#include "model/link_walk.h"

/* All zero at first. Its owner keeps it at its address until drain_end(). */
struct drain {
	struct registry *registry; /* NULL: not begun */
	struct link_walk walk; /* to the client that is next */
	usec_t advanced; /* up to when clients were told */
};

/*
 * Returns how long all goes on first: drain_delay, but at most half of shutdown_timeout, so that
 * some time is left to tell idle clients.
 */
usec_t drain_delay_of(const struct settings *settings);

/* Begin. Nothing happens if it has begun already. */
void drain_begin(struct drain *drain, struct registry *registry);

/*
 * To be called regularly: it is the turn of so many of the clients that at the same rate it will
 * have been the turn of all of them after the time `left`. Closes clients.
 */
void drain_advance(struct drain *drain, usec_t left);

/*
 * End: no more turns come, but a client whose turn has come leaves after its transaction. Does
 * nothing if it has not begun.
 */
void drain_end(struct drain *drain);

/*
 * The event server_answered of the relay in a drain: as return_if_free(), and then the client is
 * closed if it has to leave.
 */
void drain_server_answered(struct server_link *server);

#endif
