/* SPDX-License-Identifier: ISC */
/*
 * The ways to end a running daemon: after its clients or servers, at once, or because of an
 * error.
 */
#ifndef PGUSHER_DAEMON_STOP_H
#define PGUSHER_DAEMON_STOP_H

#include "model/registry.h"

struct daemon;

/*
 * Start a shutdown: serves on until the servers or the clients, as the mode says, are closed or
 * shutdown_timeout is over (daemon/shutdown). Closes the TCP listeners, for clients after
 * drain_delay. A suspension ends. Replaces a shutdown in progress that waits for the other.
 */
void stop_gracefully(struct daemon *daemon, enum shutdown_mode mode);

/* Make lifecycle_run() return at the end of this turn of the loop. */
void stop_now(struct daemon *daemon);

/* Like stop_now(), but logs the reason as fatal and makes the process exit with an error. */
void stop_failed(struct daemon *daemon, const char *why);

#endif
