/* SPDX-License-Identifier: ISC */
/*
 * The new process's side of an online restart: connects to the process that listens on the
 * configured Unix socket, receives all that it has, and goes on with that after the commit.
 *
 *   connected > received > (in the background, all parts made) > committed
 *
 * Up to the commit every step may fail, and this process with it: the old process then goes on
 * as if nothing had happened. An old pgusher is asked for its inventory
 * (session/takeover/inventory). A process that does not know that command, a PgBouncer, is
 * asked for SUSPEND and SHOW FDS. All calls block, since the new process has nothing else to
 * do.
 */
#ifndef PGUSHER_DAEMON_TAKEOVER_TAKEOVER_H
#define PGUSHER_DAEMON_TAKEOVER_TAKEOVER_H

#include "config/settings.h"
#include "model/registry.h"
#include "net/listener.h"

struct takeover;

/*
 * Receive everything from the process on the Unix socket of these settings. Returns NULL on
 * failure, with the text of a fatal error in `why`. Free the result with takeover_free().
 */
struct takeover *takeover_begin(const struct settings *settings, char *why, size_t size);

/*
 * Set `sockets` to the received listening sockets, which the caller owns from now on; the array
 * stays the takeover's. Returns their number. `metrics` gets the socket for metrics, if the old
 * process has one from its service manager, and is left alone otherwise.
 */
unsigned takeover_listeners(
	struct takeover *takeover, const struct listen_socket **sockets, int *metrics);

/*
 * Rebuild databases, pools and connections in the registry. Returns false when out of memory,
 * or if the received records make no sense.
 */
bool takeover_adopt(struct takeover *takeover, struct registry *registry);

/*
 * Make the old process close everything that was sent. Returns false with the text of a fatal
 * error in `why` if it did not; it then goes on.
 */
bool takeover_commit(struct takeover *takeover, char *why, size_t size);

/*
 * After the commit, without any wait: start reading and writing on all adopted connections.
 */
void takeover_resume(struct takeover *takeover, const struct registry *registry);

/* Also closes descriptors that were not adopted. NULL is allowed. */
void takeover_free(struct takeover *takeover);

#endif
