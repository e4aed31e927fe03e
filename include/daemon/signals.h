/* SPDX-License-Identifier: ISC */
/*
 * Signals of the daemon. The loop handles them between other events, as it does the commands of
 * the console.
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

/*
 * Handle signals from now on; signals that arrive before the loop runs are handled when it
 * does. Returns false when out of memory.
 */
bool signals_start(struct daemon *daemon);

/* Restore the system's handling of signals. */
void signals_end(struct daemon *daemon);

#endif
