/* SPDX-License-Identifier: ISC */
/*
 * The last hour of a process in points of ten seconds: for all pools together, and for each of
 * at most HISTORY_POOLS pools. Further pools are in the total only.
 *
 * The registry owns the history; it exists while the metrics endpoint listens. Times are those of
 * the loop, so that a wall clock that is set does not disturb. A step in which no sample was taken
 * (the process was stopped, the pool did not exist) is a gap. With HISTORY_POOLS pools the history
 * takes less than 1,000,000 bytes.
 */
#ifndef PGUSHER_MODEL_STATISTICS_HISTORY_H
#define PGUSHER_MODEL_STATISTICS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct pool;
struct registry;

enum { HISTORY_POINTS = 360, HISTORY_POOLS = 100 };

#define HISTORY_STEP (10 * USEC_PER_SEC)

/* One step of one pool, or of all. A figure that does not fit is the largest that does. */
struct history_point {
	uint32_t transactions; /* completed in the step; HISTORY_GAP: the point is a gap */
	uint32_t errors; /* of servers, in the step */
	uint32_t longest_wait; /* milliseconds: the longest that a sample has seen */
	/* Microseconds, of the stats period at the end of the step and the one before. */
	uint32_t query_p99, wait_p99;
	uint16_t waiting; /* clients that waited: the most that a sample has seen */
	uint16_t active; /* servers with a client: likewise */
};

#define HISTORY_GAP UINT32_MAX

/* The points of one pool, or of all; pool.history. Opaque: see history_at(). */
struct history_series;
struct history;

/*
 * Begin with an empty process.history, unless there is one. Its first step begins now. Returns
 * false when out of memory.
 */
bool history_start(struct registry *registry);

/* Free process.history, if there is one; its pools have none from then on. */
void history_stop(struct registry *registry);

/* The pool is freed: so are its points. */
void history_forget_pool(struct pool *pool);

/*
 * Take a sample: call begin, then take for each pool, then end, in one turn of the loop; about once
 * a second. A pool that finds no place or no memory is in the total only. The console's pool is not
 * to be taken.
 */
void history_begin_sample(struct history *history, usec_t now);
void history_take_pool(struct history *history, struct pool *pool);
void history_end_sample(struct history *history);

/* Returns the points of all pools together. */
const struct history_series *history_total(const struct history *history);

/*
 * Returns a point: number 0 is the oldest one, HISTORY_POINTS - 1 that of the last step that is
 * complete. NULL: a gap. Valid until the next sample.
 */
const struct history_point *history_at(
	const struct history *history, const struct history_series *series, unsigned number);

/* Returns the end of the last complete step, as a time of the loop. */
usec_t history_last_end(const struct history *history);

/* Returns the number of bytes that the history has allocated. */
size_t history_size(const struct history *history);

#endif
