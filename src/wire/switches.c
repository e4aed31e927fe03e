/* SPDX-License-Identifier: ISC */
#include "wire/switches.h"

#include <stdlib.h>
#include <string.h>

/* --- words -------------------------------------------------------------------------------- */

/* White space, independent of the locale. */
static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

const char *switches_skip_blanks(const char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

const char *switches_copy_word(struct buffer *text, const char *at)
{
	buffer_clear(text);
	while (*at != '\0' && !is_blank(*at)) {
		if (*at == '\\')
			at++;
		/* A backslash at the end of the text is dropped. */
		if (*at == '\0')
			break;
		buffer_append(text, at, 1);
		at++;
	}
	buffer_append(text, "", 1);
	return at;
}

void switches_walk_begin(struct switches_walk *walk, const char *options)
{
	*walk = (struct switches_walk){.at = options};
	buffer_init(&walk->word);
}

void switches_walk_end(struct switches_walk *walk)
{
	buffer_free(&walk->word);
}

/* Read the next word. Returns false at the end. */
static bool next_word(struct switches_walk *walk)
{
	walk->at = switches_skip_blanks(walk->at);
	if (*walk->at == '\0')
		return false;
	walk->at = switches_copy_word(&walk->word, walk->at);
	return true;
}

/* The rest of the present word, or else the next word; NULL at the end. */
static char *next_argument(struct switches_walk *walk)
{
	const size_t rest = walk->next;

	walk->next = 0;
	if (rest < walk->word.length && walk->word.data[rest] != '\0')
		return (char *)walk->word.data + rest;
	return next_word(walk) && !walk->word.failed ? (char *)walk->word.data : NULL;
}

/* --- switches ----------------------------------------------------------------------------- */

enum kind {
	NO_SWITCH,
	NOTHING, /* has an effect only in single-user mode */
	NOTHING_WITH_ARGUMENT,
	NAMES_SETTING, /* name=value */
	HAS_VALUE, /* the argument is the setting's value */
	HAS_WORD, /* the argument starts with one of `words`, each of which names a setting */
	IS_SETTING, /* sets the setting to this value */
	IS_DEBUG_LEVEL,
};

struct word {
	const char *front, *name;
};

static const struct word plan_words[] = {
	{"s", "enable_seqscan"},
	{"i", "enable_indexscan"},
	{"o", "enable_indexonlyscan"},
	{"b", "enable_bitmapscan"},
	{"t", "enable_tidscan"},
	{"n", "enable_nestloop"},
	{"m", "enable_mergejoin"},
	{"h", "enable_hashjoin"},
	{NULL, NULL},
};

static const struct word statistics_words[] = {
	{"pa", "log_parser_stats"},
	{"pl", "log_planner_stats"},
	{"e", "log_executor_stats"},
	{NULL, NULL},
};

/* A switch and the setting that it sets. */
struct meaning {
	enum kind kind;
	const char *name, *value;
	const struct word *words;
};

static const struct meaning meanings[128] = {
	['-'] = {.kind = NAMES_SETTING},
	['B'] = {HAS_VALUE, "shared_buffers", NULL, NULL},
	['C'] = {.kind = NOTHING_WITH_ARGUMENT},
	['D'] = {.kind = NOTHING_WITH_ARGUMENT},
	['E'] = {.kind = NOTHING},
	['F'] = {IS_SETTING, "fsync", "off", NULL},
	['N'] = {HAS_VALUE, "max_connections", NULL, NULL},
	['O'] = {IS_SETTING, "allow_system_table_mods", "on", NULL},
	['P'] = {IS_SETTING, "ignore_system_indexes", "on", NULL},
	['S'] = {HAS_VALUE, "work_mem", NULL, NULL},
	['T'] = {.kind = NOTHING},
	['W'] = {HAS_VALUE, "post_auth_delay", NULL, NULL},
	['b'] = {.kind = NOTHING},
	['c'] = {.kind = NAMES_SETTING},
	['d'] = {.kind = IS_DEBUG_LEVEL},
	['e'] = {IS_SETTING, "datestyle", "euro", NULL},
	['f'] = {HAS_WORD, NULL, "off", plan_words},
	['h'] = {HAS_VALUE, "listen_addresses", NULL, NULL},
	['i'] = {IS_SETTING, "listen_addresses", "*", NULL},
	['j'] = {.kind = NOTHING},
	['k'] = {HAS_VALUE, "unix_socket_directories", NULL, NULL},
	['l'] = {IS_SETTING, "ssl", "on", NULL},
	['n'] = {.kind = NOTHING},
	['p'] = {HAS_VALUE, "port", NULL, NULL},
	['r'] = {.kind = NOTHING_WITH_ARGUMENT},
	['s'] = {IS_SETTING, "log_statement_stats", "on", NULL},
	['t'] = {HAS_WORD, NULL, "on", statistics_words},
	['v'] = {.kind = NOTHING_WITH_ARGUMENT},
};

static const struct meaning *meaning_of(char letter)
{
	return &meanings[(uint8_t)letter < 128 ? (uint8_t)letter : 0];
}

/* Hyphens in a name stand for underscores. */
static enum startup_step split_setting(char *text, const char **name, const char **value)
{
	char *equals = strchr(text, '=');

	if (equals == NULL || equals == text)
		return STARTUP_BROKEN;
	*equals = '\0';
	for (char *c = text; *c != '\0'; c++) {
		if (*c == '-')
			*c = '_';
	}
	*name = text;
	*value = equals + 1;
	return STARTUP_PARAMETER;
}

static enum startup_step find_word(
	const struct word *words, const char *argument, const char **name)
{
	for (; words->front != NULL; words++) {
		if (strncmp(argument, words->front, strlen(words->front)) == 0) {
			*name = words->name;
			return STARTUP_PARAMETER;
		}
	}
	return STARTUP_BROKEN;
}

/* Settings that a debug level implies besides log_min_messages. */
static const struct {
	int least;
	const char *name, *value;
} debug_settings[] = {
	{5, "debug_print_rewritten", "on"},
	{4, "debug_print_plan", "on"},
	{3, "debug_print_parse", "on"},
	{2, "log_statement", "all"},
};

/* Returns false after the last one. */
static bool next_debug_setting(
	struct switches_walk *walk, const char **name, const char **value)
{
	for (size_t i = 0; i < sizeof(debug_settings) / sizeof(*debug_settings); i++) {
		if (walk->debug_level < debug_settings[i].least)
			continue;
		*name = debug_settings[i].name;
		*value = debug_settings[i].value;
		walk->debug_level = debug_settings[i].least - 1;
		return true;
	}
	return false;
}

static enum startup_step begin_debug(
	struct switches_walk *walk, const char *argument, const char **name, const char **value)
{
	static const char *const levels[] = {
		"notice", "debug1", "debug2", "debug3", "debug4", "debug5"};
	const int most = sizeof(levels) / sizeof(*levels) - 1;
	const long level = strtol(argument, NULL, 10);

	walk->debug_level = level < 0 ? 0 : level > most ? most : (int)level;
	*name = "log_min_messages";
	*value = levels[walk->debug_level];
	return STARTUP_PARAMETER;
}

/* Returns STARTUP_END if the switch has no effect here. */
static enum startup_step read_switch(
	struct switches_walk *walk, char letter, const char **name, const char **value)
{
	const struct meaning *meaning = meaning_of(letter);
	char *argument = "";

	if (meaning->kind != NO_SWITCH && meaning->kind != NOTHING &&
		meaning->kind != IS_SETTING) {
		argument = next_argument(walk);
		if (argument == NULL)
			return STARTUP_BROKEN;
	}
	*name = meaning->name;
	*value = meaning->value;
	switch (meaning->kind) {
	case NAMES_SETTING:
		return split_setting(argument, name, value);
	case HAS_VALUE:
		*value = argument;
		return STARTUP_PARAMETER;
	case HAS_WORD:
		return find_word(meaning->words, argument, name);
	case IS_SETTING:
		return STARTUP_PARAMETER;
	case IS_DEBUG_LEVEL:
		return begin_debug(walk, argument, name, value);
	case NOTHING:
	case NOTHING_WITH_ARGUMENT:
		return STARTUP_END;
	case NO_SWITCH:
		break;
	}
	return STARTUP_BROKEN;
}

/* --- the walk ----------------------------------------------------------------------------- */

/* Get the next letter, in this word or the next. */
static enum startup_step next_letter(struct switches_walk *walk, char *letter)
{
	const char *word;

	if (walk->next == 0 || walk->word.data[walk->next] == '\0') {
		if (!next_word(walk))
			return STARTUP_END;
		if (walk->word.failed)
			return STARTUP_NO_MEMORY;
		word = (const char *)walk->word.data;
		if (walk->ended || word[0] != '-' || word[1] == '\0')
			return STARTUP_BROKEN;
		walk->next = 1;
		if (strcmp(word, "--") == 0) {
			walk->ended = true;
			walk->next = 0;
			return next_letter(walk, letter);
		}
	}
	*letter = (char)walk->word.data[walk->next++];
	return STARTUP_PARAMETER;
}

enum startup_step switches_walk_next(
	struct switches_walk *walk, const char **name, const char **value)
{
	enum startup_step step;
	char letter;

	if (next_debug_setting(walk, name, value))
		return STARTUP_PARAMETER;
	do {
		step = next_letter(walk, &letter);
		if (step != STARTUP_PARAMETER)
			return step;
		step = read_switch(walk, letter, name, value);
		if (walk->word.failed)
			return STARTUP_NO_MEMORY;
	} while (step == STARTUP_END);
	return step;
}
