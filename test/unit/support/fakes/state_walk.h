/* SPDX-License-Identifier: ISC */
/*
 * Ways through a table of states, given as the function that tells which step is allowed: so that
 * tests need no copy of the table.
 */
#ifndef PGUSHER_TEST_STATE_WALK_H
#define PGUSHER_TEST_STATE_WALK_H

#include <stdbool.h>

/* Is a step from one state to the other allowed? */
typedef bool state_may(unsigned from, unsigned to);

enum { STATE_WALK_MAX = 32 };

/*
 * The first step of a shortest way from one state to another, through tables of up to
 * STATE_WALK_MAX states. Returns `count` when there is no way; `to` itself when both are the same.
 */
static inline unsigned state_step_toward(
	state_may *may, unsigned count, unsigned from, unsigned to)
{
	unsigned distance[STATE_WALK_MAX], step[STATE_WALK_MAX];

	for (unsigned i = 0; i < count; i++) {
		distance[i] = i == to ? 0 : count;
		step[i] = i == to ? to : count;
	}
	for (unsigned round = 0; round < count; round++) {
		for (unsigned i = 0; i < count; i++) {
			for (unsigned j = 0; j < count; j++) {
				if (may(i, j) && distance[j] + 1 < distance[i]) {
					distance[i] = distance[j] + 1;
					step[i] = j;
				}
			}
		}
	}
	return step[from];
}

/* Does any way lead from one state to the other? Each state leads to itself. */
static inline bool state_leads_to(state_may *may, unsigned count, unsigned from, unsigned to)
{
	return state_step_toward(may, count, from, to) < count;
}

#endif
