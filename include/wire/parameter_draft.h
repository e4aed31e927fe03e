/* SPDX-License-Identifier: ISC */
/*
 * A set of parameters in the making, from names and values that come one after the other.
 *
 * It copies what it is given, so that a message with thousands of parameters, most of which say
 * the same again, makes one set and not thousands.
 */
#ifndef PGUSHER_WIRE_PARAMETER_DRAFT_H
#define PGUSHER_WIRE_PARAMETER_DRAFT_H

#include "wire/parameter_values.h"

struct parameter_draft {
	struct parameter_table *table;
	struct parameter_values values; /* texts are owned */
};

void parameter_draft_begin(struct parameter_draft *draft, struct parameter_table *table);

/* A tracked parameter, by its place in the table. False: no memory. */
bool parameter_draft_track(struct parameter_draft *draft, unsigned index, const char *value);

enum drafted {
	DRAFTED,
	DRAFTED_NOT, /* no name that a parameter can have, or too many of them */
	DRAFTED_NO_MEMORY,
};

/* One that is followed, in whatever letter case its name is; value NULL: in doubt. */
enum drafted parameter_draft_follow(
	struct parameter_draft *draft, const char *name, const char *value);

/*
 * The set of all that; the draft is over. Counted for the caller. NULL: no memory, or it would be
 * larger than PARAMETERS_SIZE_MAX.
 */
struct parameters *parameter_draft_end(struct parameter_draft *draft);

/* The draft is over, and nothing comes of it. */
void parameter_draft_drop(struct parameter_draft *draft);

#endif
