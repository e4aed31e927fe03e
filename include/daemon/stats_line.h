/* SPDX-License-Identifier: ISC */
/*
 * The averages of a stats period in one line, for the log and the service manager.
 */
#ifndef PGUSHER_DAEMON_STATS_LINE_H
#define PGUSHER_DAEMON_STATS_LINE_H

#include "model/registry.h"

/* Write the line of the period that ends now. */
void stats_line_write(const struct registry *registry, usec_t now);

#endif
