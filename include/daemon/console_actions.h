/* SPDX-License-Identifier: ISC */
/*
 * The functions of the daemon that the console's commands and a suspension call: RELOAD, SET,
 * SHUTDOWN, HANDOVER, and accepting new connections or not.
 */
#ifndef PGUSHER_DAEMON_CONSOLE_ACTIONS_H
#define PGUSHER_DAEMON_CONSOLE_ACTIONS_H

struct daemon;

/* Hand these functions, and those of the console, to the process. Before the registry is made. */
void console_actions_connect(struct daemon *daemon);

#endif
