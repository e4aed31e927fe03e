/* SPDX-License-Identifier: ISC */
/*
 * A parameter set under construction, from names and values added one at a time.
 *
 * It copies what is added, and makes one set at the end, so that a message with thousands of
 * parameters, most of them repeated, does not make thousands of sets.
 */
#ifndef PGUSHER_WIRE_PARAMETER_DRAFT_H
#define PGUSHER_WIRE_PARAMETER_DRAFT_H

#include "wire/parameter_values.h"

struct parameter_draft {
	struct parameter_table *table;
	struct parameter_values values; /* texts are owned by the draft */
};

void parameter_draft_begin(struct parameter_draft *draft, struct parameter_table *table);

/*
 * Set a tracked parameter, by its index in the table. `value` is copied. Returns false when
 * out of memory.
 */
bool parameter_draft_track(struct parameter_draft *draft, unsigned index, const char *value);

enum drafted {
	DRAFTED,
	DRAFTED_NOT, /* not a legal name, or too many names */
	DRAFTED_NO_MEMORY,
};

/*
 * Set a followed parameter. The name may be in any letter case; name and value are copied. A
 * NULL value is in doubt.
 */
enum drafted parameter_draft_follow(
	struct parameter_draft *draft, const char *name, const char *value);

/*
 * Make the set and end the draft, also on failure. Returns a reference that the caller owns;
 * NULL when out of memory or if the set would be larger than PARAMETERS_SIZE_MAX.
 */
struct parameters *parameter_draft_end(struct parameter_draft *draft);

/* End the draft without making a set; frees its memory. */
void parameter_draft_drop(struct parameter_draft *draft);

#endif
