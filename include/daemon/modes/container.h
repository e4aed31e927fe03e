/* SPDX-License-Identifier: ISC */
/*
 * The entry point of a container image, --container: makes a configuration of the environment's
 * variables, if there is no file yet, and executes a command in its own place.
 *
 * An existing file is used as it is. A configuration that cannot be written, because the root file
 * system is read-only, is kept in memory. The command is the pooler itself unless one is given.
 */
#ifndef PGUSHER_DAEMON_MODES_CONTAINER_H
#define PGUSHER_DAEMON_MODES_CONTAINER_H

#include "daemon/options.h"

/* Exit status if the command cannot be executed, or found; as of a shell. */
enum { CONTAINER_NOT_EXECUTABLE = 126, CONTAINER_NOT_FOUND = 127 };

/*
 * `action` is what the options ask for: only OPTIONS_RUN writes files.
 *
 * Does not return if all goes well. Otherwise the reason is logged to stderr, and it returns the
 * exit status of the process.
 */
int container_run(const struct options *options, enum options_action action);

#endif
