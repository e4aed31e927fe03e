/* SPDX-License-Identifier: ISC */
/*
 * How long ago something was, from the times of SHOW CLIENTS and SHOW SERVERS: local time of the
 * pooler, in whole seconds. Its clock and its time zone may differ from ours, but the newest
 * request_time of its clients is that of our own question.
 */
#ifndef PGUSHER_TOP_AGES_H
#define PGUSHER_TOP_AGES_H

#include "top/table.h"

/* No time, or none that is understood. */
#define AGES_UNKNOWN (-1.0)

/* Returns the time of an answer to SHOW CLIENTS, to compare with ages_time(). */
double ages_now(const struct table *clients);

/* Returns a time, "2026-01-31 23:59:59 UTC", in seconds; AGES_UNKNOWN. NULL is allowed. */
double ages_time(const char *text);

/* Returns how long before `now` the time in a cell was; AGES_UNKNOWN. Never negative else. */
double ages_of(const struct table *table, size_t row, size_t column, double now);

/* Returns a wait in seconds, of the columns `wait` and `wait_us` or the like; 0 if there is none. */
double ages_wait(const struct table *table, size_t row, size_t seconds, size_t microseconds);

#endif
