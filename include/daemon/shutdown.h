/* SPDX-License-Identifier: ISC */
/*
 * A shutdown that waits for its last server or client, or for the end of its time.
 */
#ifndef PGUSHER_DAEMON_SHUTDOWN_H
#define PGUSHER_DAEMON_SHUTDOWN_H

#include "model/registry.h"

/* Go on with it, if there is one, and stop the loop when nobody is left. It may close clients. */
void shutdown_look_after(struct registry *registry);

#endif
