/* SPDX-License-Identifier: ISC */
/*
 * Which setting made a slow query wait for a server: what one line of the log can tell of the pool at
 * that moment. SHOW ADVICE looks at more, for longer.
 */
#ifndef PGUSHER_SESSION_SLOW_SLOW_SETTING_H
#define PGUSHER_SESSION_SLOW_SLOW_SETTING_H

#include "model/pool.h"
#include "model/statistics/slow_log.h"

/*
 * Returns the setting to look at for a query of the pool with this cause; NULL if none is: the time
 * went to the statement or the client, or the pool waits for a login. Walks the active servers of the
 * pool if the cause is the queue.
 */
const char *slow_setting(const struct pool *pool, enum slow_cause cause);

#endif
