/* SPDX-License-Identifier: ISC */
/*
 * A meter: how much a counter has grown in the last half minute to minute. All meters of a process are
 * turned together (admin/advice/advisor); what was counted before the first look, perhaps by the process
 * before, does not count. All zeros is a new meter.
 */
#ifndef PGUSHER_MODEL_STATISTICS_METER_H
#define PGUSHER_MODEL_STATISTICS_METER_H

#include <stdbool.h>
#include <stdint.h>

struct meter {
	uint64_t newer, older; /* the counter at the last turn and at the one before */
	bool begun;
};

/* Returns the growth since the turn before the last one, or since the first look. */
static inline uint64_t meter_look(struct meter *meter, uint64_t count)
{
	if (!meter->begun)
		*meter = (struct meter){count, count, true};
	return count - meter->older;
}

static inline void meter_turn(struct meter *meter, uint64_t count)
{
	meter->older = meter->newer;
	meter->newer = count;
}

#endif
