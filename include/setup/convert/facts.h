/* SPDX-License-Identifier: ISC */
/*
 * What the keys of another pooler become here: one row of a table for each.
 *
 * What needs more than a row (hosts, users, passwords) is done by the code of that pooler. A key
 * without a row is listed as unknown.
 */
#ifndef PGUSHER_SETUP_CONVERT_FACTS_H
#define PGUSHER_SETUP_CONVERT_FACTS_H

#include "setup/convert/routes.h"

/* How the value of a key becomes ours. */
enum fact_value {
	FACT_PART, /* used by the code of the pooler */
	FACT_NONE, /* no counterpart; the remark has the reason, and what to use instead */
	FACT_ALWAYS, /* pgusher does so always: listed if the value is off, with the remark */
	FACT_NEVER, /* pgusher does so never: listed if the value is not off */
	FACT_TEXT, /* as it is */
	FACT_NUMBER, /* a whole number */
	FACT_FLAG, /* yes, on, true, 1 */
	FACT_SECONDS,
	FACT_MILLISECONDS,
	FACT_TIME, /* seconds, or with a unit: ms, s, m, h, d, w */
};

struct fact {
	unsigned scope; /* the part of the file; numbers are those of the pooler */
	const char *name;
	enum fact_value value;
	struct target target;
	const char *remark; /* what is different here, listed with the key; NULL: nothing */
};

/* Where the value of a row goes: into a setting, or nowhere. */
#define SETTING(name)                                                                          \
	{                                                                                      \
		.setting = (name)                                                              \
	}
#define NOWHERE                                                                                \
	{                                                                                      \
		0                                                                              \
	}

/* A table of facts. */
struct facts {
	const struct fact *rows;
	size_t count;
	const char *pooler; /* its name, for messages */
};

/*
 * Convert the children of a node by the rows of this scope. Settings are set at once; keys of
 * databases and users are added to the route, which may be NULL for scopes without such keys.
 */
void facts_apply(struct conversion *conversion, const struct facts *facts, unsigned scope,
	const struct source_node *parent, struct route *route);

/* Whether the text of a switch means on. */
bool fact_is_on(const char *text);

#endif
