/* SPDX-License-Identifier: ISC */
/*
 * What --check says beyond the files' own mistakes: what a start would find out next about the
 * machine that it is on, and settings that are right each alone and let nobody in together.
 */
#ifndef PGUSHER_DAEMON_SURROUNDINGS_H
#define PGUSHER_DAEMON_SURROUNDINGS_H

#include "config/snapshot.h"
#include "daemon/options.h"

/*
 * Add what a start would fail of as errors, and as warnings what it would be fine with and people
 * would not. It may wait for the system's resolver.
 */
void surroundings_check(const struct options *options, const struct snapshot *config,
	struct problems *problems);

#endif
