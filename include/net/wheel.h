/* SPDX-License-Identifier: ISC */
/*
 * The deadlines of a loop: a timer wheel with slots of a tenth of a second.
 *
 * Thousands of clients may each have a deadline that moves with every query. So moving one is
 * usually a store: a deadline that moves into the future stays in its old slot, and is put into
 * the right one when the old slot is due. Deadlines are embedded in their owners; the wheel
 * owns none. A deadline fires up to one slot late, never early; one that is set as exact fires in
 * the turn after it is due. Exact ones are kept in a sorted list, so there should be few.
 */
#ifndef PGUSHER_NET_WHEEL_H
#define PGUSHER_NET_WHEEL_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

enum { WHEEL_SLOTS = 512, WHEEL_EXACT = -1 };

#define WHEEL_TICK (USEC_PER_SEC / 10)

struct deadline;

/*
 * Called when a deadline is due. The deadline is not in the wheel any more: the function may
 * set it again or free it. It may also set and remove other deadlines.
 */
typedef void deadline_function(struct deadline *deadline);

struct deadline {
	TAILQ_ENTRY(deadline) entry;
	usec_t due; /* 0: none */
	int64_t tick; /* the slot that it is in; 0: none; WHEEL_EXACT: the list of exact ones */
	deadline_function *expire;
};

TAILQ_HEAD(deadline_list, deadline);

struct wheel {
	struct deadline_list slots[WHEEL_SLOTS];
	uint64_t used[WHEEL_SLOTS / 64]; /* a bit for each slot that may be non-empty */
	struct deadline_list exact; /* the earliest first */
	int64_t tick; /* all slots up to this one have been run */
};

/* Initialise an empty wheel at this time. */
void wheel_init(struct wheel *wheel, usec_t now);

/* Set or move a deadline; its `expire` must be set. A time of 0 is deadline_cancel(). */
void wheel_set(struct wheel *wheel, struct deadline *deadline, usec_t due);

/*
 * As wheel_set(), but the deadline fires without the delay of up to a slot. It is removed from
 * its slot, and with a time of 0 from the wheel. Unset it with wheel_remove().
 */
void wheel_set_exact(struct wheel *wheel, struct deadline *deadline, usec_t due);

/* Unset the deadline but leave it in its slot, which is cheap. It must not be freed then. */
static inline void deadline_cancel(struct deadline *deadline)
{
	deadline->due = 0;
}

/* Unset the deadline and remove it from the wheel. Required before its memory is freed. */
void wheel_remove(struct wheel *wheel, struct deadline *deadline);

/* Call the functions of all deadlines that are due. */
void wheel_run(struct wheel *wheel, usec_t now);

/* Returns when wheel_run() must be called next; 0 when the wheel is empty. */
usec_t wheel_next(const struct wheel *wheel);

#endif
