/* SPDX-License-Identifier: ISC */
/*
 * An online restart as the new process sees it: asks the process that listens on our Unix socket
 * for all it has, and goes on with that once it has let go.
 *
 *   asked > told > (in the background, everything made) > committed
 *
 * Everything up to the commit can fail, and this process with it: the old one then goes on as if
 * nothing had been. An old pgusher is asked for its inventory (session/takeover/inventory); one that does
 * not know what that is, a PgBouncer, for SUSPEND and SHOW FDS. Nothing here is asynchronous,
 * since nothing else is to be done.
 */
#ifndef PGUSHER_DAEMON_TAKEOVER_H
#define PGUSHER_DAEMON_TAKEOVER_H

#include "config/settings.h"
#include "model/registry.h"
#include "net/listener.h"

struct takeover;

/*
 * Have everything told that the process on this Unix socket has. NULL: that failed, and `why` has
 * the fatal text.
 */
struct takeover *takeover_begin(const struct settings *settings, char *why, size_t size);

/* The listening sockets that were told; they are the caller's now. Returns how many. */
unsigned takeover_listeners(struct takeover *takeover, const int **sockets);

/* Rebuild all of it. False: no memory, or what was told makes no sense. */
bool takeover_adopt(struct takeover *takeover, struct registry *registry);

/* Have the old process let go. False, with the fatal text: it has not, and goes on. */
bool takeover_commit(struct takeover *takeover, char *why, size_t size);

/* After the commit: wait until its pidfile is gone. */
void takeover_wait(const struct takeover *takeover, const char *pidfile);

/* Go on with all that was adopted. */
void takeover_resume(struct takeover *takeover);

/* What was not adopted is closed. NULL is allowed. */
void takeover_free(struct takeover *takeover);

#endif
