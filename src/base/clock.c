/* SPDX-License-Identifier: ISC */
/* The system's clocks, and the hook that replaces one in tests. */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static usec_t (*test_clock)(void);

static usec_t read_clock(clockid_t id)
{
	struct timespec now;

	/* These two clocks exist on every supported system: the call cannot fail. */
	(void)clock_gettime(id, &now);
	return (usec_t)now.tv_sec * USEC_PER_SEC + now.tv_nsec / 1000;
}

usec_t clock_monotonic(void)
{
	return test_clock != NULL ? test_clock() : read_clock(CLOCK_MONOTONIC);
}

usec_t clock_wall(void)
{
	return read_clock(CLOCK_REALTIME);
}

void clock_set_source(usec_t (*monotonic)(void))
{
	test_clock = monotonic;
}
