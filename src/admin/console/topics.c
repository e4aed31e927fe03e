/* SPDX-License-Identifier: ISC */
#include "admin/console/topics.h"

#include <strings.h>

#include "admin/show/show_fakes.h"

/* The first group of topics that PgBouncer does not have. */
enum { OUR_TOPICS = 5 };

static const struct {
	const struct topic *topic;
	unsigned group;
	const char *purpose;
} topics[] = {
#define SHOW(variable, group, purpose) {&variable, group, purpose},
#include "admin/show/topics.def"
#undef SHOW
};

enum { TOPICS = sizeof(topics) / sizeof(topics[0]) };

const struct topic *topics_find(const char *name, enum compat_version version)
{
	for (unsigned i = 0; i < TOPICS; i++) {
		const struct topic *topic = topics[i].topic;

		if (strcasecmp(topic->name, name) == 0)
			return version == COMPAT_1_25_2 && topic->in_1_25 ? topic->in_1_25
									  : topic;
	}
	return show_fakes_find(name);
}

bool topics_get(unsigned place, const struct topic **topic, const char **purpose)
{
	if (place >= TOPICS)
		return false;
	*topic = topics[place].topic;
	*purpose = topics[place].purpose;
	return true;
}

void topics_help(struct buffer *out, bool ours)
{
	unsigned group = TOPICS; /* of the topic before: none */

	for (unsigned i = 0; i < TOPICS; i++) {
		if ((topics[i].group >= OUR_TOPICS) != ours)
			continue;
		buffer_printf(out, "%s%s", topics[i].group != group ? "\n\tSHOW " : "|",
			topics[i].topic->name);
		group = topics[i].group;
	}
}
