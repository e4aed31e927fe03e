/* SPDX-License-Identifier: ISC */
/*
 * How many servers may listen below a limit that pools share (model/cap): at most half of its places,
 * since these servers run no queries, and those that do must not starve because of them.
 */
#ifndef PGUSHER_SESSION_NOTIFY_LISTENING_LIMITS_H
#define PGUSHER_SESSION_NOTIFY_LISTENING_LIMITS_H

#include "model/registry.h"

/*
 * Returns whether the pool may have a listening server, or has one. Free places are not considered:
 * the pool gets one in its turn.
 */
bool listening_limits_allow(const struct pool *pool);

/*
 * Returns whether too many servers listen below a limit of the pool, since the operator has lowered
 * it: the pool's listening server must be closed.
 */
bool listening_limits_exceeded(const struct pool *pool);

#endif
