/* SPDX-License-Identifier: ISC */
/*
 * Random numbers of the simulation: one sequence for each seed, so that a run can be repeated.
 */
#ifndef PGUSHER_TEST_SIM_RANDOM_H
#define PGUSHER_TEST_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t sim_random_state;

static inline uint64_t sim_draw(void)
{
	uint64_t z = sim_random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* A number from 0 to bound - 1; bound is at least 1. */
static inline unsigned sim_below(unsigned bound)
{
	return (unsigned)((sim_draw() >> 32) * bound >> 32);
}

/* True with a probability of this many percent. */
static inline bool sim_chance(unsigned percent)
{
	return sim_below(100) < percent;
}

#endif
