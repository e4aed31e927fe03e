/* SPDX-License-Identifier: ISC */
/*
 * Sets of startup parameters that a server of the pool has accepted, each with the values as
 * the server reports them (it may spell a value differently).
 *
 * Sets are compared by address: equal sets are one object (wire/parameters). When the number of
 * sets or their size reaches its maximum, the oldest is dropped, and is checked on a server
 * again.
 */
#ifndef PGUSHER_MODEL_CHECKED_PARAMETERS_H
#define PGUSHER_MODEL_CHECKED_PARAMETERS_H

#include "wire/parameters.h"

enum {
	CHECKED_PARAMETERS_MAX = 256,
	/* For each pool: clients choose the values, and each may fill a StartupMessage. */
	CHECKED_PARAMETERS_BYTES_MAX = 256 * 1024,
};

struct checked_parameters {
	struct {
		struct parameters *asked, *spelt; /* references: of the client, of the server */
	} * entries; /* owned: a ring; NULL if it was never used */
	unsigned first, count;
	size_t bytes; /* size of the sets of all entries */
};

/*
 * Returns the values as a server reports them, owned by `checked`; NULL when no server has been
 * asked for this set.
 */
struct parameters *checked_parameters_find(
	const struct checked_parameters *checked, const struct parameters *asked);

/*
 * Add a set that a server has accepted, taking references. When out of memory, or if the set is
 * too large, nothing is added, and the set will be checked again.
 */
void checked_parameters_add(
	struct checked_parameters *checked, struct parameters *asked, struct parameters *spelt);

/* Remove all sets and free the memory. */
void checked_parameters_clear(struct checked_parameters *checked);

#endif
