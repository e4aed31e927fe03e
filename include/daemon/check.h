/* SPDX-License-Identifier: ISC */
/*
 * --check: reads the configuration as a start would, and tells all that is wrong with it.
 */
#ifndef PGUSHER_DAEMON_CHECK_H
#define PGUSHER_DAEMON_CHECK_H

#include <stdbool.h>

#include "config/snapshot.h"
#include "daemon/options.h"

/*
 * Write each problem to stdout as `FILE:LINE: TEXT`, warnings as `FILE:LINE: warning: TEXT`. True
 * if there is no error, and no line that would be left out, so that a start would go well as far
 * as files can tell.
 */
bool check_configuration(const struct options *options);

/* Write all problems to the log, in its words for them. */
void check_log_problems(const struct problems *problems);

#endif
