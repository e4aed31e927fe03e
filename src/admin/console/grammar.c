/* SPDX-License-Identifier: ISC */
#include "admin/console/grammar.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "admin/show/scan.h"

static bool take_argument(struct scan *scan, struct command_words *out)
{
	out->has_argument =
		scan_space(scan) && scan_word(scan, out->argument, sizeof(out->argument));
	return out->has_argument;
}

static bool parse_command(struct scan *scan, struct command_words *out)
{
	scan_space(scan);
	if (!scan_word(scan, out->word, sizeof(out->word)))
		return false;
	take_argument(scan, out);
	return scan_is_over(scan);
}

static bool take_assignment(struct scan *scan)
{
	scan_space(scan);
	if (*scan->at == '=')
		scan->at++;
	else if (strncasecmp(scan->at, "to", 2) == 0)
		scan->at += 2;
	else
		return false;
	scan_space(scan);
	return true;
}

static bool parse_set(struct scan *scan, struct command_words *out)
{
	scan_space(scan);
	if (strncasecmp(scan->at, "set", 3) != 0)
		return false;
	scan->at += 3;
	strcpy(out->word, "set");
	return take_argument(scan, out) && take_assignment(scan) &&
		(scan_word(scan, out->value, sizeof(out->value)) ||
			scan_quoted(scan, '\'', out->value, sizeof(out->value))) &&
		scan_is_over(scan);
}

static bool parse_show(struct scan *scan, struct command_words *out)
{
	struct scan ahead;

	scan_space(scan);
	if (!scan_word(scan, out->word, sizeof(out->word)) ||
		(strcasecmp(out->word, "show") != 0 && strcasecmp(out->word, "select") != 0) ||
		!take_argument(scan, out) || !scan_space(scan))
		return false;
	out->clauses = scan->at;
	ahead = *scan;
	return scan_keyword(&ahead, "where") || scan_keyword(&ahead, "order") ||
		scan_keyword(&ahead, "limit");
}

enum grammar grammar_parse(const char *text, struct command_words *out)
{
	static const struct {
		bool (*parse)(struct scan *scan, struct command_words *out);
		enum grammar answer;
	} forms[] = {
		{parse_command, GRAMMAR_COMMAND},
		{parse_set, GRAMMAR_SET},
		{parse_show, GRAMMAR_SHOW},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct scan scan = {.at = text};

		*out = (struct command_words){0};
		if (forms[i].parse(&scan, out))
			return scan.too_long ? GRAMMAR_TOO_LONG : forms[i].answer;
	}
	return GRAMMAR_INVALID;
}
