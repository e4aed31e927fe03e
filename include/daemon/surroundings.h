/* SPDX-License-Identifier: ISC */
/*
 * Checks of --check beyond the syntax of the files: problems that a start would meet on this
 * machine, and settings that are valid one by one but together allow no login.
 */
#ifndef PGUSHER_DAEMON_SURROUNDINGS_H
#define PGUSHER_DAEMON_SURROUNDINGS_H

#include "config/snapshot.h"
#include "daemon/options.h"

/*
 * Add to the problems: as errors what would make a start fail, as warnings what a start accepts
 * but the operator hardly wants. May block on the system's resolver.
 */
void surroundings_check(const struct options *options, const struct snapshot *config,
	struct problems *problems);

#endif
