/* SPDX-License-Identifier: ISC */
/*
 * What signals ask of the daemon. They are handled by the loop, between other events, as if the
 * console had given the command.
 */
#ifndef PGUSHER_DAEMON_SIGNALS_H
#define PGUSHER_DAEMON_SIGNALS_H

#include <stdbool.h>

enum { SIGNALS_MOST = 8 };

struct daemon;
struct event;

struct signals {
	struct event *events[SIGNALS_MOST]; /* owned */
};

/* Handle signals from now on; those that come before the loop runs wait for it. */
bool signals_start(struct daemon *daemon);

/* Leave them to the system again. */
void signals_end(struct daemon *daemon);

#endif
