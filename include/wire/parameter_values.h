/* SPDX-License-Identifier: ISC */
/*
 * A set of parameters taken apart: for those who look at all of it, or make another one of it.
 *
 * Everything in it is lent: it points into the set, or to what the caller put there.
 */
#ifndef PGUSHER_WIRE_PARAMETER_VALUES_H
#define PGUSHER_WIRE_PARAMETER_VALUES_H

#include "wire/parameters.h"

struct followed {
	const char *name; /* in lower case */
	const char *value; /* NULL: it was set, and nobody knows what it is now */
};

struct parameter_values {
	const char *tracked[PARAMETERS_MAX]; /* in the order of the table; NULL: unknown */
	struct followed followed[PARAMETERS_FOLLOWED_MAX]; /* by name, each once */
	unsigned count; /* of followed */
};

void parameter_values_read(const struct parameters *set, struct parameter_values *out);

/*
 * The one set with these values. Counted for the caller. NULL: no memory, or it would be larger
 * than PARAMETERS_SIZE_MAX.
 */
struct parameters *parameter_values_intern(
	struct parameter_table *table, const struct parameter_values *values);

/* The place of this name among the followed, or the one where it belongs. */
unsigned parameter_values_place(
	const struct parameter_values *values, const char *name, bool *present);

/*
 * Follow this name, which must be in lower case, with this value. False: there are
 * PARAMETERS_FOLLOWED_MAX others.
 */
bool parameter_values_follow(
	struct parameter_values *values, const char *name, const char *value);

/* As whom a session acts, in the order in which it is taken back. */
enum { PARAMETER_IDENTITIES = 2 };
extern const char *const parameter_identity[PARAMETER_IDENTITIES];

/* Reorder what is followed: as whom the session acts comes last, in the order of setting it. */
void parameter_values_put_identity_last(struct parameter_values *values);

#endif
