/* SPDX-License-Identifier: ISC */
/*
 * A shutdown that waits until the last server or client is closed, or shutdown_timeout is over.
 *
 * One that waits for clients drains them, in two stages (process.drain). For drain_delay all goes
 * on, so that load balancers can notice that /readyz says no. Then clients can no longer log in,
 * unless drain_accept is set; and if there is a shutdown_timeout idle clients are closed one after
 * another (session/serving/drain). The settings may change meanwhile.
 */
#ifndef PGUSHER_DAEMON_SHUTDOWN_H
#define PGUSHER_DAEMON_SHUTDOWN_H

#include "model/registry.h"

struct daemon;

/*
 * A shutdown that waits for clients begins, with process.shutdown_at set: drain them. Closes the
 * TCP listeners if there is no drain_delay.
 */
void shutdown_begin_drain(struct daemon *daemon);

/*
 * Advance the shutdown, if one is in progress, and stop the loop when nothing is left to wait
 * for. May close clients. During a drain the registry must be that of a daemon.
 */
void shutdown_advance(struct registry *registry);

#endif
