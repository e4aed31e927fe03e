/* SPDX-License-Identifier: ISC */
/*
 * Which setting made a slow query wait for a server: what one line of the log can tell of the pool at
 * that moment. SHOW ADVICE looks at more, for longer.
 */
#ifndef PGUSHER_SESSION_SLOW_SLOW_SETTING_H
#define PGUSHER_SESSION_SLOW_SLOW_SETTING_H

#include "model/pool.h"

/*
 * Returns the setting to look at for a query that has waited so long for a server of the pool; NULL if
 * none is: the pool is paused, or waits for a login. Walks the active servers of the pool.
 */
const char *slow_setting(const struct pool *pool, usec_t waited);

#endif
