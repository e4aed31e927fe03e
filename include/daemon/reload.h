/* SPDX-License-Identifier: ISC */
/*
 * Changes the configuration of a running daemon. Everything is read and checked first; then all
 * of it is applied at once, or nothing. Afterwards the daemon is in the state that a start with
 * that file would give, except for settings that need a restart.
 *
 * A database that is no longer configured is removed with its connections. A database with
 * another target has its servers retired, as RECONNECT does. All other connections stay as they
 * are.
 */
#ifndef PGUSHER_DAEMON_RELOAD_H
#define PGUSHER_DAEMON_RELOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/daemon.h"

/*
 * Read the file that the setting conffile names, and apply it. Returns false if it has errors,
 * which were logged. `report` (NULL: not wanted) gets what was done in words if something has
 * changed or it has taken long, else "".
 */
bool reload_run(struct daemon *daemon, char *report, size_t size);

/* Give one setting another value until the next reload; see actions.set. */
bool reload_set(
	struct daemon *daemon, const char *key, const char *value, char *why, size_t size);

#endif
