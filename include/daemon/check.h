/* SPDX-License-Identifier: ISC */
/*
 * --check: reads the configuration as a start does, and prints all problems that it finds.
 */
#ifndef PGUSHER_DAEMON_CHECK_H
#define PGUSHER_DAEMON_CHECK_H

#include <stdbool.h>

#include "config/snapshot.h"
#include "daemon/options.h"

/*
 * Write each problem to stdout as `FILE:LINE: TEXT`, warnings as `FILE:LINE: warning: TEXT`.
 * Returns true if there are neither errors nor lines that a start would leave out, so that a
 * start would succeed as far as the files can tell.
 */
bool check_configuration(const struct options *options);

/* Write all problems to the log, in the wording that the log has for them. */
void check_log_problems(const struct problems *problems);

#endif
