/* SPDX-License-Identifier: ISC */
#include "admin/show/show_fakes.h"

#include <strings.h>

struct fake {
	struct topic topic; /* first: fill() finds the fake from its topic */
	const char *value;
};

static void fill(struct result *result, const struct show_request *request)
{
	result_begin_row(result);
	result_text(result, ((const struct fake *)request->topic)->value);
	result_end_row(result);
}

/* One column, named as the topic is. */
#define FAKE(name, value)                                                                      \
	{                                                                                      \
		{name, &(const struct column){name, COLUMN_TEXT}, 1, fill, RIGHT_STATS, NULL}, \
			value                                                                  \
	}

static const struct fake fakes[] = {
	FAKE("client_encoding", "UTF-8"),
	FAKE("default_transaction_isolation", "read committed"),
	FAKE("standard_conforming_strings", "on"),
	FAKE("datestyle", "ISO"),
	FAKE("timezone", "GMT"),
};

const struct topic *show_fakes_find(const char *name)
{
	for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++) {
		if (strcasecmp(fakes[i].topic.name, name) == 0)
			return &fakes[i].topic;
	}
	return NULL;
}
