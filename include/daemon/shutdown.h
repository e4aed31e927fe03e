/* SPDX-License-Identifier: ISC */
/*
 * A shutdown that waits until the last server or client is closed, or shutdown_timeout is over.
 */
#ifndef PGUSHER_DAEMON_SHUTDOWN_H
#define PGUSHER_DAEMON_SHUTDOWN_H

#include "model/registry.h"

/*
 * Advance the shutdown, if one is in progress, and stop the loop when nothing is left to wait
 * for. May close clients.
 */
void shutdown_advance(struct registry *registry);

#endif
