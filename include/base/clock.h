/* SPDX-License-Identifier: ISC */
/*
 * Time in microseconds: a monotonic clock for deadlines, a wall clock for display.
 *
 * Nothing here is cached: the event loop reads the monotonic clock once per turn and passes
 * the value on.
 */
#ifndef PGUSHER_BASE_CLOCK_H
#define PGUSHER_BASE_CLOCK_H

#include <stdint.h>

/* A point in time or a length of time, in microseconds. */
typedef int64_t usec_t;

#define USEC_PER_MSEC 1000LL
#define USEC_PER_SEC 1000000LL

/* Time since an unspecified start; never steps back. For deadlines, ages and durations. */
usec_t clock_monotonic(void);

/*
 * Time since 1970-01-01 UTC, which an operator may set back or forth. For log lines and SHOW
 * only.
 */
usec_t clock_wall(void);

/* Replace the monotonic clock, so that tests control time; NULL restores the real one. */
void clock_set_source(usec_t (*monotonic)(void));

#endif
