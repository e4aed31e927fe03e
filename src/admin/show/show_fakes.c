/* SPDX-License-Identifier: ISC */
/* Parameters that drivers set or ask for when they connect: there in name only. */
#include <strings.h>

#include "admin/console/topics.h"

static const struct {
	struct column column;
	const char *value;
} fakes[] = {
	{{"client_encoding", COLUMN_TEXT}, "UTF-8"},
	{{"default_transaction_isolation", COLUMN_TEXT}, "read committed"},
	{{"standard_conforming_strings", COLUMN_TEXT}, "on"},
	{{"datestyle", COLUMN_TEXT}, "ISO"},
	{{"timezone", COLUMN_TEXT}, "GMT"},
};

static void fill(struct result *result, const struct command_call *call)
{
	result_begin_row(result);
	result_text(result, fakes[call->topic - show_fakes].value);
	result_end_row(result);
}

/* In the order of the rows above. */
const struct topic show_fakes[] = {
	{"client_encoding", &fakes[0].column, 1, fill, RIGHT_STATS, NULL},
	{"default_transaction_isolation", &fakes[1].column, 1, fill, RIGHT_STATS, NULL},
	{"standard_conforming_strings", &fakes[2].column, 1, fill, RIGHT_STATS, NULL},
	{"datestyle", &fakes[3].column, 1, fill, RIGHT_STATS, NULL},
	{"timezone", &fakes[4].column, 1, fill, RIGHT_STATS, NULL},
	{0},
};

bool topics_is_fake(const char *name)
{
	for (const struct topic *fake = show_fakes; fake->name; fake++) {
		if (strcasecmp(fake->name, name) == 0)
			return true;
	}
	return false;
}
