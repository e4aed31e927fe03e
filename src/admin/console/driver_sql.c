/* SPDX-License-Identifier: ISC */
#include "admin/console/driver_sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/show/scan.h"
#include "admin/show/show_fakes.h"

/* --- tokens ------------------------------------------------------------------------------- */

/* Skip a comment; those with asterisks may be nested. Returns false if there is none. */
static bool skip_comment(struct scan *scan)
{
	unsigned depth = 0;

	if (scan_symbol(scan, "--")) {
		scan->at += strcspn(scan->at, "\r\n");
		return true;
	}
	if (!scan_symbol(scan, "/*"))
		return false;
	while (*scan->at && !(depth == 0 && scan_symbol(scan, "*/"))) {
		if (scan_symbol(scan, "/*"))
			depth++;
		else if (scan_symbol(scan, "*/"))
			depth--;
		else
			scan->at++;
	}
	return true;
}

static void skip_blanks(struct scan *scan)
{
	do {
		scan->at += strspn(scan->at, " \t\r\n\f\v");
	} while (skip_comment(scan));
}

static bool take_symbol(struct scan *scan, const char *symbol)
{
	skip_blanks(scan);
	return scan_symbol(scan, symbol);
}

/* Take words that are separated by single blanks in `phrase`. Takes all or nothing. */
static bool take_phrase(struct scan *scan, const char *phrase)
{
	const struct scan start = *scan;
	char word[DRIVER_NAME_SIZE];

	while (*phrase) {
		const size_t length = strcspn(phrase, " ");

		snprintf(word, sizeof(word), "%.*s", (int)length, phrase);
		skip_blanks(scan);
		if (!(scan_keyword(scan, word) ||
			    (word[0] == '*' && scan_symbol(scan, word)))) {
			*scan = start;
			return false;
		}
		phrase += length + (phrase[length] == ' ');
	}
	return true;
}

/* Take an identifier: a word, or any text in double quotes. */
static bool take_name(struct scan *scan, char name[DRIVER_NAME_SIZE])
{
	skip_blanks(scan);
	if (*scan->at >= '0' && *scan->at <= '9')
		return false;
	return scan_word(scan, name, DRIVER_NAME_SIZE);
}

static bool take_text(struct scan *scan, char text[DRIVER_NAME_SIZE])
{
	skip_blanks(scan);
	return scan_quoted(scan, '\'', text, DRIVER_NAME_SIZE);
}

/* Take a parameter's name. Returns NULL if the console does not have it. */
static const struct topic *take_parameter(struct scan *scan)
{
	char name[DRIVER_NAME_SIZE];

	return take_name(scan, name) ? show_fakes_find(name) : NULL;
}

/* --- BEGIN, SET and others ---------------------------------------------------------------- */

static bool take_mode(struct scan *scan)
{
	static const char *const modes[] = {"isolation level serializable",
		"isolation level repeatable read", "isolation level read committed",
		"isolation level read uncommitted", "read only", "read write", "deferrable",
		"not deferrable"};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (take_phrase(scan, modes[i]))
			return true;
	}
	return false;
}

/* Modes of a transaction; commas between them are optional. */
static void take_modes(struct scan *scan)
{
	while (take_mode(scan))
		take_symbol(scan, ",");
}

/* A value of SET; its text does not matter and may have any length. */
static bool take_value(struct scan *scan)
{
	char text[DRIVER_NAME_SIZE];

	skip_blanks(scan);
	if (*scan->at == '-' || *scan->at == '+')
		scan->at++;
	return scan_bare(scan, ".", text, sizeof(text)) ||
		scan_quoted(scan, '\'', text, sizeof(text)) ||
		scan_quoted(scan, '"', text, sizeof(text));
}

static bool take_values(struct scan *scan)
{
	bool is_taken;

	do {
		is_taken = take_value(scan);
	} while (is_taken && take_symbol(scan, ","));
	scan->too_long = false;
	return is_taken;
}

/* The value of SET TIME ZONE, which may be an interval with its fields behind it. */
static bool take_time_zone(struct scan *scan)
{
	if (!take_phrase(scan, "interval"))
		return take_values(scan);
	if (!take_value(scan))
		return false;
	take_phrase(scan, "hour to minute");
	return true;
}

static bool parse_set(struct scan *scan, struct driver_statement *out)
{
	const struct topic *parameter;

	out->action = DRIVER_SET;
	out->tag = "SET";
	if (take_phrase(scan, "session characteristics as transaction") ||
		take_phrase(scan, "transaction")) {
		const char *const start = scan->at;

		take_modes(scan);
		return scan->at > start;
	}
	if (take_phrase(scan, "session authorization default") ||
		take_phrase(scan, "role none"))
		return true;
	if (!take_phrase(scan, "session"))
		take_phrase(scan, "local");
	if (take_phrase(scan, "time zone"))
		return take_time_zone(scan);
	if (take_phrase(scan, "names"))
		return take_values(scan);
	parameter = take_parameter(scan);
	return parameter && !show_fakes_is_fixed(parameter) &&
		(take_symbol(scan, "=") || take_phrase(scan, "to")) && take_values(scan);
}

static bool parse_reset(struct scan *scan, struct driver_statement *out)
{
	out->tag = "RESET";
	return take_phrase(scan, "all") || take_phrase(scan, "time zone") ||
		take_phrase(scan, "session authorization") || take_parameter(scan);
}

static bool parse_show(struct scan *scan, struct driver_statement *out)
{
	out->action = DRIVER_SHOW;
	out->tag = NULL;
	if (take_phrase(scan, "transaction isolation level"))
		out->shown = show_fakes_find("transaction_isolation");
	else if (take_phrase(scan, "time zone"))
		out->shown = show_fakes_find("timezone");
	else
		out->shown = take_parameter(scan);
	if (out->shown)
		out->columns[out->column_count++] = out->shown->columns[0];
	return out->shown;
}

static bool parse_begin(struct scan *scan, struct driver_statement *out)
{
	out->action = DRIVER_BEGIN;
	if (!take_phrase(scan, "work"))
		take_phrase(scan, "transaction");
	take_modes(scan);
	return true;
}

static bool parse_start(struct scan *scan, struct driver_statement *out)
{
	out->action = DRIVER_BEGIN;
	take_modes(scan);
	return true;
}

static bool parse_end(struct scan *scan, struct driver_statement *out)
{
	out->action = DRIVER_END;
	if (!take_phrase(scan, "work"))
		take_phrase(scan, "transaction");
	take_phrase(scan, "and no chain");
	return true;
}

static bool parse_deallocate(struct scan *scan, struct driver_statement *out)
{
	take_phrase(scan, "prepare");
	if (take_phrase(scan, "all")) {
		out->action = DRIVER_DEALLOCATE_ALL;
		out->tag = "DEALLOCATE ALL";
		return true;
	}
	out->action = DRIVER_DEALLOCATE;
	return take_name(scan, out->name);
}

static bool parse_discard(struct scan *scan, struct driver_statement *out)
{
	(void)scan;
	out->action = DRIVER_DEALLOCATE_ALL;
	return true;
}

static bool parse_nothing(struct scan *scan, struct driver_statement *out)
{
	(void)scan;
	out->action = DRIVER_NOTHING;
	return true;
}

/* --- SELECT ------------------------------------------------------------------------------- */

enum parentheses { PARENTHESES_NONE, PARENTHESES_EMPTY, PARENTHESES_EITHER };

static const struct function {
	const char *name;
	enum parentheses parentheses;
	enum column_type type;
	enum driver_value value;
	const char *text; /* of DRIVER_VALUE_TEXT */
} functions[] = {
	{"version", PARENTHESES_EMPTY, COLUMN_TEXT, DRIVER_VALUE_VERSION, ""},
	{"current_database", PARENTHESES_EMPTY, COLUMN_NAME, DRIVER_VALUE_DATABASE, ""},
	{"current_catalog", PARENTHESES_NONE, COLUMN_NAME, DRIVER_VALUE_DATABASE, ""},
	{"current_user", PARENTHESES_NONE, COLUMN_NAME, DRIVER_VALUE_USER, ""},
	{"current_role", PARENTHESES_NONE, COLUMN_NAME, DRIVER_VALUE_USER, ""},
	{"session_user", PARENTHESES_NONE, COLUMN_NAME, DRIVER_VALUE_USER, ""},
	{"user", PARENTHESES_NONE, COLUMN_NAME, DRIVER_VALUE_USER, ""},
	{"current_schema", PARENTHESES_EITHER, COLUMN_NAME, DRIVER_VALUE_TEXT, "public"},
	{"pg_is_in_recovery", PARENTHESES_EMPTY, COLUMN_BOOL, DRIVER_VALUE_TEXT, "f"},
	{"pg_advisory_unlock_all", PARENTHESES_EMPTY, COLUMN_VOID, DRIVER_VALUE_TEXT, ""},
};

static struct driver_cell *fill_cell(struct driver_statement *out, enum column_type type,
	const char *label, enum driver_value value)
{
	struct driver_cell *cell = &out->cells[out->column_count];

	out->columns[out->column_count].type = type;
	cell->value = value;
	snprintf(cell->label, sizeof(cell->label), "%s", label);
	return cell;
}

static bool take_parentheses(struct scan *scan, enum parentheses wanted)
{
	const bool has_some = wanted != PARENTHESES_NONE && take_symbol(scan, "(");

	return has_some ? take_symbol(scan, ")") : wanted != PARENTHESES_EMPTY;
}

static bool take_function(struct scan *scan, struct driver_statement *out)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		const struct function *function = &functions[i];
		const struct scan start = *scan;
		struct driver_cell *cell;

		if (take_phrase(scan, function->name) &&
			take_parentheses(scan, function->parentheses)) {
			cell = fill_cell(out, function->type, function->name, function->value);
			snprintf(cell->text, sizeof(cell->text), "%s", function->text);
			return true;
		}
		*scan = start;
	}
	return false;
}

/* current_setting(NAME [, missing_ok]): the constant value of the parameter. */
static bool take_current_setting(struct scan *scan, struct driver_statement *out)
{
	const struct topic *parameter;
	struct driver_cell *cell;
	char name[DRIVER_NAME_SIZE];

	if (!take_phrase(scan, "current_setting") || !take_symbol(scan, "(") ||
		!take_text(scan, name))
		return false;
	if (take_symbol(scan, ",") && !take_phrase(scan, "true") && !take_phrase(scan, "false"))
		return false;
	parameter = show_fakes_find(name);
	if (!parameter || !take_symbol(scan, ")"))
		return false;
	cell = fill_cell(out, COLUMN_TEXT, "current_setting", DRIVER_VALUE_PARAMETER);
	cell->parameter = parameter;
	return true;
}

/* set_config(NAME, VALUE, is_local): the value, and no effect, as with SET. */
static bool take_set_config(struct scan *scan, struct driver_statement *out)
{
	const struct topic *parameter;
	struct driver_cell *cell;
	char name[DRIVER_NAME_SIZE];

	if (!take_phrase(scan, "set_config") || !take_symbol(scan, "(") ||
		!take_text(scan, name) || !take_symbol(scan, ","))
		return false;
	parameter = show_fakes_find(name);
	if (!parameter || show_fakes_is_fixed(parameter))
		return false;
	cell = fill_cell(out, COLUMN_TEXT, "set_config", DRIVER_VALUE_TEXT);
	return take_text(scan, cell->text) && take_symbol(scan, ",") &&
		(take_phrase(scan, "true") || take_phrase(scan, "false")) &&
		take_symbol(scan, ")");
}

static bool take_number(struct scan *scan, struct driver_statement *out)
{
	struct driver_cell *cell = fill_cell(out, COLUMN_INT4, "?column?", DRIVER_VALUE_TEXT);
	const size_t length = strspn(scan->at, "0123456789");

	/* Nine digits fit into an int4. */
	if (length == 0 || length > 9)
		return false;
	snprintf(cell->text, sizeof(cell->text), "%d", atoi(scan->at));
	scan->at += length;
	return !scan_is_word_character(*scan->at) && *scan->at != '.';
}

static bool take_literal(struct scan *scan, struct driver_statement *out)
{
	struct driver_cell *cell = fill_cell(out, COLUMN_TEXT, "?column?", DRIVER_VALUE_TEXT);

	return take_text(scan, cell->text);
}

typedef bool take_form(struct scan *scan, struct driver_statement *out);

/* Take the first of these forms that is there. */
static bool take_any(struct scan *scan, struct driver_statement *out, take_form *const *forms,
	unsigned count)
{
	const struct scan start = *scan;

	for (unsigned i = 0; i < count; i++) {
		if (forms[i](scan, out))
			return true;
		*scan = start;
	}
	return false;
}

static bool take_expression(struct scan *scan, struct driver_statement *out)
{
	static take_form *const literals[] = {take_number, take_literal};
	static take_form *const calls[] = {
		take_function, take_current_setting, take_set_config};

	skip_blanks(scan);
	if (take_any(scan, out, literals, 2))
		return true;
	return (!take_phrase(scan, "pg_catalog") || take_symbol(scan, ".")) &&
		take_any(scan, out, calls, 3);
}

/* Words that go on with the statement: no label without AS. */
static bool has_keyword(const struct scan *scan)
{
	static const char *const words[] = {"from", "where", "limit", "order", "union"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct scan ahead = *scan;

		if (take_phrase(&ahead, words[i]))
			return true;
	}
	return false;
}

static bool take_item(struct scan *scan, struct driver_statement *out)
{
	struct driver_cell *cell = &out->cells[out->column_count];

	if (out->column_count == DRIVER_SELECT_ITEMS || !take_expression(scan, out))
		return false;
	if (take_phrase(scan, "as")) {
		if (!take_name(scan, cell->label))
			return false;
	} else if (!has_keyword(scan)) {
		char label[DRIVER_NAME_SIZE];

		if (take_name(scan, label))
			memcpy(cell->label, label, sizeof(label));
	}
	out->columns[out->column_count++].name = cell->label;
	return true;
}

/*
 * pgAdmin calls set_config() for a row of the parameter, which is there if the server has the
 * parameter.
 */
static bool take_row_of_parameter(struct scan *scan)
{
	char name[DRIVER_NAME_SIZE];

	take_phrase(scan, "pg_catalog");
	take_symbol(scan, ".");
	return (take_phrase(scan, "pg_settings") ||
		       (take_phrase(scan, "pg_show_all_settings") && take_symbol(scan, "(") &&
			       take_symbol(scan, ")"))) &&
		take_phrase(scan, "where name") && take_symbol(scan, "=") &&
		take_text(scan, name) && show_fakes_find(name);
}

static bool parse_select(struct scan *scan, struct driver_statement *out)
{
	out->action = DRIVER_SELECT;
	out->tag = NULL;
	do {
		if (!take_item(scan, out))
			return false;
	} while (take_symbol(scan, ","));
	return !take_phrase(scan, "from") ||
		(strcmp(out->columns[0].name, "set_config") == 0 &&
			take_row_of_parameter(scan));
}

/* --- statements --------------------------------------------------------------------------- */

static const struct {
	const char *phrase;
	const char *tag;
	bool (*parse)(struct scan *scan, struct driver_statement *out);
} forms[] = {
	{"begin", "BEGIN", parse_begin},
	{"start transaction", "START TRANSACTION", parse_start},
	{"commit", "COMMIT", parse_end},
	{"end", "COMMIT", parse_end},
	{"rollback", "ROLLBACK", parse_end},
	{"abort", "ROLLBACK", parse_end},
	{"set", "SET", parse_set},
	{"reset", "RESET", parse_reset},
	{"show", NULL, parse_show},
	{"select", NULL, parse_select},
	{"deallocate", "DEALLOCATE", parse_deallocate},
	{"discard all", "DISCARD ALL", parse_discard},
	{"close all", "CLOSE CURSOR ALL", parse_nothing},
	{"unlisten *", "UNLISTEN", parse_nothing},
};

/* Take the end of a statement. Texts that were cut make it unknown. */
static const char *finish(struct scan *scan)
{
	if (scan->too_long)
		return NULL;
	if (take_symbol(scan, ";"))
		skip_blanks(scan);
	else if (*scan->at != '\0')
		return NULL;
	return scan->at;
}

const char *driver_sql_parse(const char *text, struct driver_statement *out)
{
	struct scan scan = {.at = text};

	memset(out, 0, sizeof(*out));
	skip_blanks(&scan);
	if (*scan.at == '\0' || *scan.at == ';') {
		out->action = DRIVER_EMPTY;
		return finish(&scan);
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (!take_phrase(&scan, forms[i].phrase))
			continue;
		out->tag = forms[i].tag;
		return forms[i].parse(&scan, out) ? finish(&scan) : NULL;
	}
	return NULL;
}

unsigned driver_sql_count(const char *text, struct driver_statement *first)
{
	struct driver_statement next;
	unsigned count = 0;

	if (strlen(text) > DRIVER_TEXT_MAX)
		return 0;
	while (count == 0 || (text && *text != '\0'))
		text = driver_sql_parse(text, count++ == 0 ? first : &next);
	return text ? count : 0;
}
