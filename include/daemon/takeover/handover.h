/* SPDX-License-Identifier: ISC */
/*
 * The old process's side of an online restart. The command HANDOVER, which the new process
 * sends (daemon/takeover/takeover), makes this process send its inventory and its descriptors.
 *
 *   settling > sending > sent > committed
 *   settling, sending, sent > given up: this process goes on as if nothing had happened
 *
 * Settling: no new connections are accepted, logins and cancel requests run to their end, all
 * else goes on. Sending and sent: all links are out of the loop, for milliseconds. The handover
 * is given up if the connection to the new process closes, or no HANDOVER COMMIT arrives for a
 * long time. Encrypted connections cannot be sent: they stay in this process until their
 * transaction ends, or shutdown_timeout is over.
 */
#ifndef PGUSHER_DAEMON_TAKEOVER_HANDOVER_H
#define PGUSHER_DAEMON_TAKEOVER_HANDOVER_H

#include <stdbool.h>

struct client_link;
struct daemon;
struct handover;

/*
 * Begin a handover to the new process on this console. Returns NULL, or the text of the error.
 * The answer to the command follows the inventory, when all of it has been sent.
 */
const char *handover_begin(struct daemon *daemon, struct client_link *console);

/*
 * The new process has received everything: close all that was sent, and start a shutdown.
 * Returns NULL, or the text of the error; on NULL the console is closed.
 */
const char *handover_commit(struct daemon *daemon, struct client_link *console);

/*
 * Give up a handover that is not committed. Does nothing if there is none. Closes its console.
 */
void handover_give_up(struct daemon *daemon);

/* Free the handover when the process ends. */
void handover_end(struct daemon *daemon);

#endif
