/* SPDX-License-Identifier: ISC */
#include "net/alarms.h"

void alarms_remove(struct alarms *alarms, struct alarm *alarm)
{
	if (alarm->due == 0)
		return;
	TAILQ_REMOVE(alarms, alarm, entry);
	alarm->due = 0;
}

void alarms_set(struct alarms *alarms, struct alarm *alarm, usec_t due)
{
	struct alarm *before;

	alarms_remove(alarms, alarm);
	before = TAILQ_LAST(alarms, alarms);
	while (before && before->due > due)
		before = TAILQ_PREV(before, alarms, entry);
	alarm->due = due;
	if (before)
		TAILQ_INSERT_AFTER(alarms, before, alarm, entry);
	else
		TAILQ_INSERT_HEAD(alarms, alarm, entry);
}

void alarms_run(struct alarms *alarms, usec_t now)
{
	struct alarm *alarm;

	while ((alarm = TAILQ_FIRST(alarms)) != NULL && alarm->due <= now) {
		alarms_remove(alarms, alarm);
		alarm->expire(alarm);
	}
}

usec_t alarms_next(const struct alarms *alarms)
{
	const struct alarm *alarm = TAILQ_FIRST(alarms);

	return alarm ? alarm->due : 0;
}
