/* SPDX-License-Identifier: ISC */
/*
 * Settings whose effect is not in the model but in what the process has open: the log, listening
 * sockets, the resolver.
 */
#ifndef PGUSHER_DAEMON_APPLY_H
#define PGUSHER_DAEMON_APPLY_H

#include <stdbool.h>

#include "config/settings.h"
#include "daemon/lifecycle.h"

/*
 * Set up the log as the settings and the command line say; its file is opened anew. False, and
 * the log as it was, when that file cannot be opened, which is logged.
 */
bool apply_log(const struct settings *settings, const struct options *options);

/* The same, if these settings say something else about the log than the old ones. */
void apply_changed_log(const struct settings *settings, const struct settings *old,
	const struct options *options);

/* The settings in force have changed, and were these before: all but the log. */
void apply_settings(struct daemon *daemon, const struct settings *old);

#endif
