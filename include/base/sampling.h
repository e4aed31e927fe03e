/* SPDX-License-Identifier: ISC */
/*
 * Takes a regular sample of events that may come at any rate: at most so many in a second, spread
 * over the second. Pure: the caller has the clock.
 */
#ifndef PGUSHER_BASE_SAMPLING_H
#define PGUSHER_BASE_SAMPLING_H

#include <stdbool.h>

#include "base/clock.h"

/* All zeros is a new one. */
struct sampling {
	usec_t began; /* the present second; 0: no event yet */
	unsigned seen, taken; /* events of this second */
	unsigned most; /* of the last call */
	unsigned stride; /* every so many events one is taken: by the rate of the last second */
};

/*
 * An event happens at `now` (monotonic, not 0). Returns whether it is one of the sample, of which
 * `most` are taken in a second; 0: all.
 */
bool sampling_take(struct sampling *sampling, unsigned most, usec_t now);

/*
 * Returns how many events of a second that is over were left out, and forgets them; 0 if the second
 * is not over yet. Call it before sampling_take(), and from time to time.
 */
unsigned sampling_left_out(struct sampling *sampling, usec_t now);

#endif
