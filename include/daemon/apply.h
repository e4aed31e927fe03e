/* SPDX-License-Identifier: ISC */
/*
 * Applies settings to what the process has open: the log, listening sockets, the resolver,
 * metrics. All other settings are read from the configuration in force wherever they are
 * needed.
 */
#ifndef PGUSHER_DAEMON_APPLY_H
#define PGUSHER_DAEMON_APPLY_H

#include <stdbool.h>

#include "config/settings.h"
#include "daemon/daemon.h"

/*
 * Set up the log from the settings and the command line, and open its file anew. If the file
 * cannot be opened, logs that, leaves the log unchanged and returns false.
 */
bool apply_log(const struct settings *settings, const struct options *options);

/* Call apply_log() if these settings differ from the old ones in a setting of the log. */
void apply_changed_log(const struct settings *settings, const struct settings *old,
	const struct options *options);

/* Limit what new streams receive at once to tcp_socket_buffer. Before streams are opened. */
void apply_receive_limit(struct daemon *daemon);

/* Apply the settings in force, which replace `old`: all but those of the log. */
void apply_settings(struct daemon *daemon, const struct settings *old);

#endif
