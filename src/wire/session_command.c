/* SPDX-License-Identifier: ISC */
#include "wire/session_command.h"

#include <string.h>

#include "base/text.h"
#include "wire/parameters.h"
#include "wire/sql.h"
#include "wire/sql_scanner.h"

/* The reader of one statement: `token` is the next token, with its text. */
struct reading {
	struct sql_scanner scanner;
	enum sql_token token;
	struct buffer text;
	const char *begin; /* of the whole text */
	const char *token_at; /* where `token` begins */
	bool safe_encoding, partial;
};

/* --- tokens ------------------------------------------------------------------------------- */

static const char *text_of(const struct reading *reading)
{
	return (const char *)reading->text.data;
}

static void advance(struct reading *reading)
{
	sql_scanner_skip_white(&reading->scanner);
	reading->token_at = reading->scanner.at;
	reading->token = sql_scanner_next(&reading->scanner, &reading->text);
	if (reading->token != SQL_END && !reading->safe_encoding &&
		!text_is_ascii(reading->text.data, reading->text.length))
		reading->token = SQL_UNKNOWN;
}

static bool is_word(const struct reading *reading, const char *word)
{
	return reading->token == SQL_WORD && strcmp(text_of(reading), word) == 0;
}

static bool is_symbol(const struct reading *reading, char symbol)
{
	return reading->token == SQL_SYMBOL && text_of(reading)[0] == symbol;
}

/* Consume the word if it comes next. */
static bool take_word(struct reading *reading, const char *word)
{
	const bool is = is_word(reading, word);

	if (is)
		advance(reading);
	return is;
}

/* Is this the end of the statement, and of the text? Empty statements do not count. */
static bool is_end(struct reading *reading)
{
	while (is_symbol(reading, ';'))
		advance(reading);
	return reading->token == SQL_END;
}

/* --- names -------------------------------------------------------------------------------- */

/*
 * Append a name, and advance. How the server folds and cuts letters that are not ASCII depends on
 * its encoding and locale.
 */
static bool take_name(struct reading *reading, struct buffer *out)
{
	const size_t length = reading->text.length - 1;

	if ((reading->token != SQL_WORD && reading->token != SQL_NAME) || length == 0 ||
		length >= PARAMETER_NAME_SIZE ||
		(reading->token == SQL_WORD && !text_is_ascii(reading->text.data, length)))
		return false;
	buffer_append(out, reading->text.data, length);
	advance(reading);
	return true;
}

/* A name of a statement or channel. */
static bool take_object(struct reading *reading, struct session_command *command)
{
	return take_name(reading, &command->name) && buffer_append(&command->name, "", 1);
}

/* The name of a parameter, which may have dots; its letter case does not matter. */
static bool take_parameter(struct reading *reading, struct session_command *command)
{
	struct buffer *name = &command->name;

	if (!take_name(reading, name))
		return false;
	while (is_symbol(reading, '.')) {
		buffer_append(name, ".", 1);
		advance(reading);
		if (!take_name(reading, name))
			return false;
	}
	if (!buffer_append(name, "", 1) || name->length > PARAMETER_NAME_SIZE ||
		!parameter_name_is_legal((const char *)name->data))
		return false;
	parameter_name_lower((const char *)name->data, (char *)name->data);
	return true;
}

static bool set_name(struct session_command *command, const char *name)
{
	buffer_clear(&command->name);
	return buffer_append(&command->name, name, strlen(name) + 1);
}

/* --- values ------------------------------------------------------------------------------- */

/* A number as the server prints it again: others have more than one spelling. */
static bool is_plain_number(const char *text)
{
	const size_t length = strlen(text);

	return length <= 9 && strspn(text, "0123456789") == length &&
		(text[0] != '0' || length == 1);
}

static bool take_number(struct reading *reading, struct buffer *out)
{
	const bool negative = is_symbol(reading, '-');

	if (negative)
		advance(reading);
	if (reading->token != SQL_NUMBER || !is_plain_number(text_of(reading)))
		return false;
	if (negative)
		buffer_append(out, "-", 1);
	buffer_append(out, text_of(reading), reading->text.length - 1);
	advance(reading);
	return true;
}

/* One value of a list of names: SQL takes words, names and strings. */
static bool take_element(struct reading *reading, struct buffer *out)
{
	if (reading->token != SQL_WORD && reading->token != SQL_NAME &&
		reading->token != SQL_STRING)
		return false;
	sql_append_name(out, text_of(reading));
	advance(reading);
	return true;
}

static bool take_list(struct reading *reading, struct buffer *out)
{
	if (!take_element(reading, out))
		return false;
	while (is_symbol(reading, ',')) {
		buffer_append(out, ", ", 2);
		advance(reading);
		if (!take_element(reading, out))
			return false;
	}
	return true;
}

static bool take_text(struct reading *reading, struct buffer *out)
{
	if (reading->token != SQL_WORD && reading->token != SQL_NAME &&
		reading->token != SQL_STRING)
		return false;
	if (reading->token == SQL_WORD &&
		!text_is_ascii(reading->text.data, reading->text.length))
		return false;
	buffer_append(out, text_of(reading), reading->text.length - 1);
	advance(reading);
	return true;
}

static bool take_value(struct reading *reading, const char *name, struct buffer *out)
{
	if (parameter_is_name_list(name))
		return take_list(reading, out);
	if (is_symbol(reading, '-') || reading->token == SQL_NUMBER)
		return take_number(reading, out);
	return take_text(reading, out);
}

/* --- SET ---------------------------------------------------------------------------------- */

static const char *name_of(const struct session_command *command)
{
	return (const char *)command->name.data;
}

/* The value of this parameter, or DEFAULT, ends the statement. */
static enum session_verb read_value(struct reading *reading, struct session_command *command)
{
	if (take_word(reading, "default"))
		return is_end(reading) ? SESSION_RESET : SESSION_UNKNOWN;
	if (!take_value(reading, name_of(command), &command->value) ||
		!buffer_append(&command->value, "", 1))
		return SESSION_UNKNOWN;
	return is_end(reading) ? SESSION_SET : SESSION_UNKNOWN;
}

static enum session_verb read_assignment(
	struct reading *reading, struct session_command *command)
{
	if (!take_parameter(reading, command))
		return SESSION_UNKNOWN;
	if (is_symbol(reading, '='))
		advance(reading);
	else if (!take_word(reading, "to"))
		return SESSION_UNKNOWN;
	return read_value(reading, command);
}

/* SET TIME ZONE takes more than other values: an interval, a number of hours, LOCAL. */
static enum session_verb read_time_zone(
	struct reading *reading, struct session_command *command)
{
	if (!take_word(reading, "zone") || !set_name(command, "timezone"))
		return SESSION_UNKNOWN;
	if (take_word(reading, "local"))
		return is_end(reading) ? SESSION_RESET : SESSION_UNKNOWN;
	if (reading->token == SQL_NUMBER || is_symbol(reading, '-') ||
		is_word(reading, "interval"))
		return SESSION_UNKNOWN;
	return read_value(reading, command);
}

static enum session_verb read_as(
	struct reading *reading, struct session_command *command, const char *name)
{
	return set_name(command, name) ? read_value(reading, command) : SESSION_UNKNOWN;
}

/* Returns whether nothing but one statement is left. */
static bool skip_statement(struct reading *reading)
{
	while (reading->token != SQL_END && reading->token != SQL_UNKNOWN &&
		!is_symbol(reading, ';'))
		advance(reading);
	return is_end(reading);
}

static enum session_verb read_set(struct reading *reading, struct session_command *command)
{
	if (take_word(reading, "session")) {
		if (take_word(reading, "authorization"))
			return read_as(reading, command, "session_authorization");
	} else if (take_word(reading, "local") || is_word(reading, "transaction") ||
		is_word(reading, "constraints")) {
		return skip_statement(reading) ? SESSION_SET_LOCAL : SESSION_UNKNOWN;
	}
	if (take_word(reading, "time"))
		return read_time_zone(reading, command);
	if (take_word(reading, "names")) {
		if (is_end(reading))
			return set_name(command, "client_encoding") ? SESSION_RESET
								    : SESSION_UNKNOWN;
		return read_as(reading, command, "client_encoding");
	}
	if (take_word(reading, "schema"))
		return reading->token == SQL_STRING ? read_as(reading, command, "search_path")
						    : SESSION_UNKNOWN;
	if (take_word(reading, "role")) {
		if (is_symbol(reading, '='))
			advance(reading);
		else
			take_word(reading, "to");
		return read_as(reading, command, "role");
	}
	return read_assignment(reading, command);
}

static enum session_verb read_reset(struct reading *reading, struct session_command *command)
{
	bool named;

	if (take_word(reading, "all"))
		return is_end(reading) ? SESSION_RESET_ALL : SESSION_UNKNOWN;
	if (take_word(reading, "time"))
		named = take_word(reading, "zone") && set_name(command, "timezone");
	else if (take_word(reading, "session"))
		named = take_word(reading, "authorization") &&
			set_name(command, "session_authorization");
	else
		named = take_parameter(reading, command);
	return named && is_end(reading) ? SESSION_RESET : SESSION_UNKNOWN;
}

/* --- other commands ----------------------------------------------------------------------- */

/*
 * The name of a prepared statement, and where it stands. A word that the server does not take as a
 * name is left to the server.
 */
static bool take_statement(struct reading *reading, struct session_command *command)
{
	if (reading->token == SQL_WORD && sql_is_no_name(text_of(reading)))
		return false;
	command->name_begin = (size_t)(reading->token_at - reading->begin);
	command->name_end = (size_t)(reading->scanner.at - reading->begin);
	if (!take_object(reading, command))
		return false;
	command->rest = (size_t)(reading->token_at - reading->begin);
	return true;
}

/* PREPARE TRANSACTION 'id' is another command. */
static enum session_verb read_prepare(struct reading *reading, struct session_command *command)
{
	if (is_word(reading, "transaction") || !take_statement(reading, command) ||
		(!is_symbol(reading, '(') && !is_word(reading, "as")))
		return SESSION_UNKNOWN;
	return skip_statement(reading) ? SESSION_PREPARE : SESSION_UNKNOWN;
}

static enum session_verb read_execute(struct reading *reading, struct session_command *command)
{
	if (!take_statement(reading, command))
		return SESSION_UNKNOWN;
	if (reading->partial && is_symbol(reading, '('))
		return SESSION_EXECUTE;
	return skip_statement(reading) ? SESSION_EXECUTE : SESSION_UNKNOWN;
}

/* Skip what is in parentheses, if they are next. */
static void skip_parentheses(struct reading *reading)
{
	unsigned depth = 0;

	do {
		depth += is_symbol(reading, '(');
		depth -= is_symbol(reading, ')');
		if (depth > 0 || is_symbol(reading, ')'))
			advance(reading);
	} while (depth > 0 && reading->token != SQL_END && reading->token != SQL_UNKNOWN);
}

/* CREATE TABLE ... AS EXECUTE: nothing before AS is a word of that name, outside parentheses. */
static enum session_verb read_create(struct reading *reading, struct session_command *command)
{
	if (take_word(reading, "global") || take_word(reading, "local")) {
		if (!is_word(reading, "temp") && !is_word(reading, "temporary"))
			return SESSION_UNKNOWN;
	}
	if (!take_word(reading, "temp") && !take_word(reading, "temporary"))
		take_word(reading, "unlogged");
	if (!take_word(reading, "table"))
		return SESSION_UNKNOWN;
	while (!is_word(reading, "as")) {
		if (reading->token == SQL_END || reading->token == SQL_UNKNOWN ||
			is_symbol(reading, ';') || is_symbol(reading, ')'))
			return SESSION_UNKNOWN;
		if (is_symbol(reading, '('))
			skip_parentheses(reading);
		else
			advance(reading);
	}
	advance(reading);
	return take_word(reading, "execute") ? read_execute(reading, command) : SESSION_UNKNOWN;
}

static enum session_verb read_explain(struct reading *reading, struct session_command *command)
{
	if (is_symbol(reading, '('))
		skip_parentheses(reading);
	else {
		if (!take_word(reading, "analyze"))
			take_word(reading, "analyse");
		take_word(reading, "verbose");
	}
	if (take_word(reading, "execute"))
		return read_execute(reading, command);
	return take_word(reading, "create") ? read_create(reading, command) : SESSION_UNKNOWN;
}

static enum session_verb read_deallocate(
	struct reading *reading, struct session_command *command)
{
	const bool prepare = take_word(reading, "prepare");

	if (take_word(reading, "all"))
		return is_end(reading) ? SESSION_DEALLOCATE_ALL : SESSION_UNKNOWN;
	/* PREPARE may be the statement's name. */
	if (!(prepare && reading->token == SQL_END ? set_name(command, "prepare")
						   : take_object(reading, command)))
		return SESSION_UNKNOWN;
	return is_end(reading) ? SESSION_DEALLOCATE : SESSION_UNKNOWN;
}

static enum session_verb read_channel(
	struct reading *reading, struct session_command *command, enum session_verb verb)
{
	return take_object(reading, command) && is_end(reading) ? verb : SESSION_UNKNOWN;
}

static enum session_verb read_unlisten(struct reading *reading, struct session_command *command)
{
	if (!is_symbol(reading, '*'))
		return read_channel(reading, command, SESSION_UNLISTEN);
	advance(reading);
	return is_end(reading) ? SESSION_UNLISTEN_ALL : SESSION_UNKNOWN;
}

static enum session_verb read_command(struct reading *reading, struct session_command *command)
{
	if (take_word(reading, "set"))
		return read_set(reading, command);
	if (take_word(reading, "reset"))
		return read_reset(reading, command);
	if (take_word(reading, "prepare"))
		return read_prepare(reading, command);
	if (take_word(reading, "execute"))
		return read_execute(reading, command);
	if (take_word(reading, "explain"))
		return read_explain(reading, command);
	if (take_word(reading, "create"))
		return read_create(reading, command);
	if (take_word(reading, "deallocate"))
		return read_deallocate(reading, command);
	if (take_word(reading, "listen"))
		return read_channel(reading, command, SESSION_LISTEN);
	if (take_word(reading, "unlisten"))
		return read_unlisten(reading, command);
	return take_word(reading, "discard") && take_word(reading, "all") && is_end(reading)
		? SESSION_DISCARD_ALL
		: SESSION_UNKNOWN;
}

/* --- the command -------------------------------------------------------------------------- */

void session_command_init(struct session_command *command)
{
	*command = (struct session_command){0};
}

void session_command_free(struct session_command *command)
{
	buffer_free(&command->name);
	buffer_free(&command->value);
	command->verb = SESSION_UNKNOWN;
	command->name_begin = command->name_end = command->rest = 0;
}

enum session_verb session_command_read(const char *text, size_t length,
	struct session_lexis lexis, struct session_command *command)
{
	struct reading reading = {
		.begin = text,
		.safe_encoding = lexis.safe_encoding,
		.partial = lexis.partial,
	};

	buffer_clear(&command->name);
	buffer_clear(&command->value);
	command->name_begin = command->name_end = command->rest = 0;
	sql_scanner_init(&reading.scanner, text, length, lexis.escapes);
	advance(&reading);
	command->verb = read_command(&reading, command);
	if (command->name.failed || command->value.failed)
		command->verb = SESSION_UNKNOWN;
	buffer_free(&reading.text);
	return command->verb;
}
