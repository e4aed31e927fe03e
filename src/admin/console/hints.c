/* SPDX-License-Identifier: ISC */
#include "admin/console/hints.h"

#include <stdio.h>
#include <strings.h>

#include "admin/console/commands.h"
#include "admin/console/topics.h"
#include "base/nearest.h"

static const char *nearest_topic(const char *word)
{
	struct nearest nearest = {.asked = word};
	const struct topic *topic;
	const char *purpose;

	for (unsigned i = 0; topics_get(i, &topic, &purpose); i++)
		nearest_consider(&nearest, topic->name);
	return nearest.found;
}

/* A command that SHOW HELP does not list is for programs. */
static const char *nearest_command(const char *word)
{
	struct nearest nearest = {.asked = word};

	for (const struct command *command = commands; command->word; command++) {
		if (command->help[0].usage)
			nearest_consider(&nearest, command->word);
	}
	return nearest.found;
}

static bool is_show(const char *word)
{
	return strcasecmp(word, "show") == 0 || strcasecmp(word, "select") == 0;
}

static bool suggest(char hint[HINT_SIZE], const char *command, const char *argument)
{
	snprintf(hint, HINT_SIZE, "did you mean %s%s%s?", command, *argument ? " " : "",
		argument);
	return true;
}

bool hints_for_command(const struct command_words *words, char hint[HINT_SIZE])
{
	const char *topic, *mode, *command;

	if (is_show(words->word)) {
		topic = words->has_argument ? nearest_topic(words->argument) : NULL;
		return topic && suggest(hint, "SHOW", topic);
	}
	if (strcasecmp(words->word, "shutdown") == 0) {
		mode = words->has_argument ? commands_nearest_mode(words->argument) : NULL;
		return mode && suggest(hint, "SHUTDOWN", mode);
	}
	command = nearest_command(words->word);
	if (command && strcasecmp(command, words->word) != 0)
		return suggest(hint, command, words->argument);
	topic = command || words->has_argument ? NULL : nearest_topic(words->word);
	return topic && suggest(hint, "SHOW", topic);
}
