/* SPDX-License-Identifier: ISC */
#include "base/sampling.h"

bool sampling_take(struct sampling *sampling, unsigned most, usec_t now)
{
	if (sampling->began == 0)
		sampling->began = now;
	sampling->most = most;
	if (most > 0 &&
		(sampling->taken >= most ||
			(sampling->stride > 1 && sampling->seen % sampling->stride != 0))) {
		sampling->seen++;
		return false;
	}
	sampling->seen++;
	sampling->taken++;
	return true;
}

/* The next second takes as many as it may, spread over it, if it brings as many events. */
static unsigned next_stride(const struct sampling *sampling, usec_t passed)
{
	if (sampling->most == 0 || passed >= 2 * USEC_PER_SEC)
		return 1;
	return (sampling->seen + sampling->most - 1) / sampling->most;
}

unsigned sampling_left_out(struct sampling *sampling, usec_t now)
{
	const usec_t passed = now - sampling->began;
	unsigned left_out;

	if (sampling->began == 0 || passed < USEC_PER_SEC)
		return 0;
	left_out = sampling->seen - sampling->taken;
	sampling->stride = next_stride(sampling, passed);
	sampling->began = 0;
	sampling->seen = sampling->taken = 0;
	return left_out;
}
