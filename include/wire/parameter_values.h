/* SPDX-License-Identifier: ISC */
/*
 * A parameter set unpacked into arrays, for code that reads all of it or builds another set
 * from it.
 *
 * All texts are borrowed: they point into the set, or to texts that the caller stored there.
 */
#ifndef PGUSHER_WIRE_PARAMETER_VALUES_H
#define PGUSHER_WIRE_PARAMETER_VALUES_H

#include "wire/parameters.h"

struct followed {
	const char *name; /* lower case */
	/* NULL: in doubt, the parameter was set but its present value is not known. */
	const char *value;
};

struct parameter_values {
	const char *tracked[PARAMETERS_MAX]; /* by index of the table; NULL: unknown */
	/*
	 * Sorted by name, each once. There is room for the tracked ones, which may be moved here.
	 */
	struct followed followed[PARAMETERS_FOLLOWED_MAX + PARAMETERS_MAX];
	unsigned count; /* entries of followed */
};

void parameter_values_read(const struct parameters *set, struct parameter_values *out);

/*
 * Returns the unique set with these values, as a reference that the caller owns. NULL when out
 * of memory or if it would be larger than PARAMETERS_SIZE_MAX.
 */
struct parameters *parameter_values_intern(
	struct parameter_table *table, const struct parameter_values *values);

/* Index of a name in followed, or the index where it would be inserted. */
unsigned parameter_values_place(
	const struct parameter_values *values, const char *name, bool *present);

/*
 * Set the value of a followed name, which must be in lower case. Name and value are borrowed.
 * Returns false if there is no room.
 */
bool parameter_values_follow(
	struct parameter_values *values, const char *name, const char *value);

/* The parameters that are the session's identity, in the order of their reset. */
enum { PARAMETER_IDENTITIES = 2 };
extern const char *const parameter_identity[PARAMETER_IDENTITIES];

/*
 * If session_authorization is tracked and known, make it a followed parameter, unless its value
 * is `usual` (NULL: none is): then it becomes unknown.
 */
void parameter_values_follow_user(const struct parameter_table *table,
	struct parameter_values *values, const char *usual);

/*
 * Make session_authorization a followed parameter, and reorder these: identity parameters move to
 * the end, in the order in which they are set.
 */
void parameter_values_put_identity_last(
	const struct parameter_table *table, struct parameter_values *values);

#endif
