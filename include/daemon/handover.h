/* SPDX-License-Identifier: ISC */
/*
 * An online restart as the old process sees it: the command HANDOVER, which a new process gives
 * (daemon/takeover), has everything written down and sent to it.
 *
 *   settling > sending > (committed >) leaving
 *   settling, sending > given up: all goes on as if nothing had happened
 *
 * While settling nobody new is let in, logins and cancel requests come to their end, and all else
 * goes on. While sending nothing at all moves, which takes milliseconds. Whatever becomes of the
 * new process up to HANDOVER COMMIT, its connection ends, or says nothing for long, and that gives
 * it up. What is encrypted cannot go: it stays here until its transaction is over, or
 * shutdown_timeout.
 */
#ifndef PGUSHER_DAEMON_HANDOVER_H
#define PGUSHER_DAEMON_HANDOVER_H

#include <stdbool.h>

struct client_link;
struct daemon;
struct handover;

/* Begin to hand over to this console; NULL, or why not. It is answered when all has been sent. */
const char *handover_begin(struct daemon *daemon, struct client_link *console);

/* The console has everything: let go. NULL, or why not. The console may be closed. */
const char *handover_commit(struct daemon *daemon, struct client_link *console);

/* Give it up, if it is under way. */
void handover_give_up(struct daemon *daemon);

/* Has another process got all that could go? Then what the configuration says is for that one. */
bool handover_has_left(const struct daemon *daemon);

/* The process ends. */
void handover_end(struct daemon *daemon);

#endif
