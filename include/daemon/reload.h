/* SPDX-License-Identifier: ISC */
/*
 * Changing the configuration of a running daemon: everything is read and checked first, then all
 * of it is taken over at once, or nothing. Afterwards the daemon is what a start with that file
 * would have made it, but for what needs a restart.
 *
 * A database that is no longer there goes with its connections; one that leads elsewhere now has
 * its servers retired, as RECONNECT does; all else notices nothing.
 */
#ifndef PGUSHER_DAEMON_RELOAD_H
#define PGUSHER_DAEMON_RELOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/lifecycle.h"

/* Read the file of the setting conffile. False: it has mistakes, which were logged. */
bool reload_run(struct daemon *daemon);

/* Give one setting another value until the next reload; see actions.set. */
bool reload_set(
	struct daemon *daemon, const char *key, const char *value, char *why, size_t size);

#endif
