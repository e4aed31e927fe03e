/* SPDX-License-Identifier: ISC */
/*
 * The life of the daemon, once its options, its configuration and its user are known: makes all
 * of its parts, serves, and takes everything apart again.
 *
 *   started > (shutting down >) stopped
 *
 * It is stopped by the functions of daemon/stop. While it shuts down it goes on serving; the
 * janitor notices when the last connection that it waits for is closed.
 */
#ifndef PGUSHER_DAEMON_LIFECYCLE_H
#define PGUSHER_DAEMON_LIFECYCLE_H

#include "daemon/daemon.h"

/*
 * Make all parts with this configuration, take over its reference, and listen. Returns false
 * on failure, which was logged. Call lifecycle_end() afterwards in either case.
 */
bool lifecycle_start(
	struct daemon *daemon, const struct options *options, struct snapshot *config);

/* Run the loop until the daemon is stopped. Returns false if it stopped because of an error. */
bool lifecycle_run(struct daemon *daemon);

/*
 * Close all connections that are left, without an error to their clients, and free everything.
 */
void lifecycle_end(struct daemon *daemon);

#endif
