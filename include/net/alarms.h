/* SPDX-License-Identifier: ISC */
/*
 * Alarms: deadlines that must be kept to a millisecond. Deadlines of the wheel fire up to a
 * tenth of a second late, and cost less.
 *
 * A list in order of time. Setting an alarm is cheap if it is due after most of the others.
 * Alarms are embedded in their owners; the list owns none. The loop has the timer: see
 * loop_set_alarm().
 */
#ifndef PGUSHER_NET_ALARMS_H
#define PGUSHER_NET_ALARMS_H

#include <bsd/sys/queue.h>
#include <stddef.h>

#include "base/clock.h"

struct alarm;

/* Called when an alarm is due and was removed from the list: it may set the alarm again. */
typedef void alarm_function(struct alarm *alarm);

struct alarm {
	TAILQ_ENTRY(alarm) entry;
	usec_t due; /* 0: not set */
	alarm_function *expire;
};

TAILQ_HEAD(alarms, alarm);

/* Set or move an alarm; its `expire` must be set. `due` must not be 0. */
void alarms_set(struct alarms *alarms, struct alarm *alarm, usec_t due);

/* Remove an alarm, if it is set. Required before its memory is freed. */
void alarms_remove(struct alarms *alarms, struct alarm *alarm);

/* Call the functions of all alarms that are due. */
void alarms_run(struct alarms *alarms, usec_t now);

/* Returns when the first alarm is due; 0 if none is set. */
usec_t alarms_next(const struct alarms *alarms);

#endif
