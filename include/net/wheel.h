/* SPDX-License-Identifier: ISC */
/*
 * Deadlines of a loop, in a wheel of slots a tenth of a second wide.
 *
 * Thousands of clients may each have one deadline that moves with every query, so setting one is
 * a store in the common case: a deadline that moves away from now stays in its old slot and is
 * looked at again when that slot comes by. Deadlines are embedded in what they limit; the wheel
 * owns none of them. A deadline may fire up to one slot late, never early.
 */
#ifndef PGUSHER_NET_WHEEL_H
#define PGUSHER_NET_WHEEL_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

enum { WHEEL_SLOTS = 512 };

#define WHEEL_TICK (USEC_PER_SEC / 10)

struct deadline;

/* Called when a deadline is due; it has left the wheel and may be set again or freed. */
typedef void deadline_function(struct deadline *deadline);

struct deadline {
	TAILQ_ENTRY(deadline) entry;
	usec_t due; /* 0: none */
	int64_t tick; /* the slot it stands in; 0: in none */
	deadline_function *expire;
};

TAILQ_HEAD(deadline_list, deadline);

struct wheel {
	struct deadline_list slots[WHEEL_SLOTS];
	uint64_t used[WHEEL_SLOTS / 64]; /* a bit for each slot that may hold something */
	int64_t tick; /* all slots up to this one have been run */
};

/* Start an empty wheel at this time. */
void wheel_init(struct wheel *wheel, usec_t now);

/* Set (or move) a deadline; 0 is the same as deadline_cancel(). */
void wheel_set(struct wheel *wheel, struct deadline *deadline, usec_t due);

/* Forget the deadline without taking it out of its slot: cheap, and all an idle link needs. */
static inline void deadline_cancel(struct deadline *deadline)
{
	deadline->due = 0;
}

/* Take it out of the wheel: before its memory is freed. */
void wheel_remove(struct wheel *wheel, struct deadline *deadline);

/* Fire what is due. */
void wheel_run(struct wheel *wheel, usec_t now);

/* When wheel_run() should be called next; 0 when the wheel is empty. */
usec_t wheel_next(const struct wheel *wheel);

#endif
