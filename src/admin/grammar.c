/* SPDX-License-Identifier: ISC */
#include "admin/grammar.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

struct scan {
	const char *at;
	bool too_long; /* some word was cut */
};

/* Where a word without its quotes goes. */
struct room {
	char *out;
	size_t size, length;
};

static void put(struct scan *scan, struct room *room, char c)
{
	if (room->length + 1 < room->size)
		room->out[room->length++] = c;
	else
		scan->too_long = true;
}

/* Skip white space; was there any? */
static bool skip_space(struct scan *scan)
{
	const size_t length = strspn(scan->at, " \t\r\n");

	scan->at += length;
	return length > 0;
}

static bool is_word_character(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		c == '_';
}

static bool take_bare(struct scan *scan, struct room *room)
{
	if (!is_word_character(*scan->at))
		return false;
	while (is_word_character(*scan->at))
		put(scan, room, *scan->at++);
	return true;
}

static bool take_quoted(struct scan *scan, struct room *room, char quote)
{
	const char *const start = scan->at;

	if (*scan->at != quote)
		return false;
	for (scan->at++; *scan->at; scan->at++) {
		if (*scan->at == quote && *++scan->at != quote)
			return true;
		put(scan, room, *scan->at);
	}
	scan->at = start; /* no end: nothing was taken */
	return false;
}

static bool take_word(struct scan *scan, char *out, size_t size, bool is_value)
{
	struct room room = {.out = out, .size = size};
	const bool taken = take_bare(scan, &room) || take_quoted(scan, &room, '"') ||
		(is_value && take_quoted(scan, &room, '\''));

	out[room.length] = '\0';
	return taken;
}

/* Only white space and one semicolon may be left. */
static bool is_over(struct scan *scan)
{
	skip_space(scan);
	if (*scan->at == ';')
		scan->at++;
	skip_space(scan);
	return *scan->at == '\0';
}

static bool parse_command(struct scan *scan, struct command_words *out)
{
	skip_space(scan);
	if (!take_word(scan, out->word, sizeof(out->word), false))
		return false;
	out->has_argument = skip_space(scan) &&
		take_word(scan, out->argument, sizeof(out->argument), false);
	return is_over(scan);
}

static bool take_assignment(struct scan *scan)
{
	skip_space(scan);
	if (*scan->at == '=')
		scan->at++;
	else if (strncasecmp(scan->at, "to", 2) == 0)
		scan->at += 2;
	else
		return false;
	skip_space(scan);
	return true;
}

static bool parse_set(struct scan *scan, struct command_words *out)
{
	skip_space(scan);
	if (strncasecmp(scan->at, "set", 3) != 0)
		return false;
	scan->at += 3;
	strcpy(out->word, "set");
	out->has_argument = true;
	return skip_space(scan) &&
		take_word(scan, out->argument, sizeof(out->argument), false) &&
		take_assignment(scan) &&
		take_word(scan, out->value, sizeof(out->value), true) && is_over(scan);
}

enum grammar grammar_parse(const char *text, struct command_words *out)
{
	struct scan command = {.at = text}, set = {.at = text};

	*out = (struct command_words){0};
	if (parse_command(&command, out))
		return command.too_long ? GRAMMAR_TOO_LONG : GRAMMAR_COMMAND;
	*out = (struct command_words){0};
	if (parse_set(&set, out))
		return set.too_long ? GRAMMAR_TOO_LONG : GRAMMAR_SET;
	return GRAMMAR_INVALID;
}
