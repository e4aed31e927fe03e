/* SPDX-License-Identifier: ISC */
#include "wire/pin_causes.h"

#include <string.h>
#include <strings.h>

/* In the order of the topics: where there are several, the first is told. */
static const struct {
	session_topics topic;
	const char *name;
} causes[] = {
	{TOPIC_TEMPORARY, "temporary object"},
	{TOPIC_LOCKS, "advisory lock"},
	{TOPIC_CURSORS, "cursor with hold"},
	{TOPIC_STATEMENTS, "prepared statement"},
	{TOPIC_CHANNELS, "listen"},
	{TOPIC_LIBRARY, "load"},
	{TOPIC_SEQUENCES, "sequence value"},
};

enum { CAUSES = sizeof(causes) / sizeof(causes[0]) };

session_topics pin_causes_first(session_topics topics)
{
	topics &= TOPICS_PINNING;
	return (session_topics)(topics & -topics);
}

const char *pin_causes_name(session_topics topics)
{
	for (size_t i = 0; i < CAUSES; i++) {
		if (topics & causes[i].topic)
			return causes[i].name;
	}
	return "none";
}

static const char blanks[] = " \t\r\n\f\v";

/* Returns the topic of the name between blanks in these bytes; 0: there is none. */
static session_topics read_name(const char *text, size_t length)
{
	while (length > 0 && strchr(blanks, *text)) {
		text++;
		length--;
	}
	while (length > 0 && strchr(blanks, text[length - 1]))
		length--;
	for (size_t i = 0; i < CAUSES; i++) {
		if (length == strlen(causes[i].name) &&
			strncasecmp(text, causes[i].name, length) == 0)
			return causes[i].topic;
	}
	return 0;
}

bool pin_causes_read(const char *list, session_topics *out)
{
	session_topics topics = 0;
	const char *at = list;

	while (list[strspn(list, blanks)] != '\0') {
		const size_t length = strcspn(at, ",");
		const session_topics topic = read_name(at, length);

		if (!topic)
			return false;
		topics |= topic;
		if (at[length] == '\0')
			break;
		at += length + 1;
	}
	*out = topics;
	return true;
}
