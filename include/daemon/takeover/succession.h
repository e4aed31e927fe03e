/* SPDX-License-Identifier: ISC */
/*
 * What a new process still has to get from the old one after the commit of a takeover: the path
 * of the pidfile, and the address of the metrics page. Both are free when the old process has
 * removed the one and closed the other, which may take long or never happen: the clients do not
 * wait for it.
 */
#ifndef PGUSHER_DAEMON_TAKEOVER_SUCCESSION_H
#define PGUSHER_DAEMON_TAKEOVER_SUCCESSION_H

#include <stdbool.h>

#include "net/wheel.h"

struct daemon;

/* All zero: nothing is waited for. */
struct succession {
	struct deadline retry;
	unsigned tries;
	bool wants_pidfile, wants_metrics;
};

/*
 * Write the pidfile and serve the metrics page, now or as soon as the old process lets go of
 * them. After some time without success this logs an error and the process does without.
 */
void succession_begin(struct daemon *daemon);

/* Wait no longer. Allowed when nothing is waited for. */
void succession_end(struct daemon *daemon);

#endif
