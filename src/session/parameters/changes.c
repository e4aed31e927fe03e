/* SPDX-License-Identifier: ISC */
#include "session/parameters/changes.h"

#include <string.h>

#include "session/parameters/question.h"
#include "wire/parameter_values.h"
#include "wire/session_command.h"
#include "wire/sql_scanner.h"

/* Memory for the changes of one transaction. */
enum { CHANGES_SIZE_MAX = 64 * 1024 };

/* --- texts that are not one plain SET ----------------------------------------------------- */

/* Note a name that stands behind SET or in set_config(): `name` is its first part. */
static void note_dotted(
	struct client_link *client, struct sql_scanner *scanner, struct buffer *name)
{
	char lower[PARAMETER_NAME_SIZE];
	struct buffer part = {0};

	name->length--; /* the NUL */
	while (scanner->at < scanner->end && *scanner->at == '.') {
		scanner->at++;
		sql_scanner_next(scanner, &part);
		buffer_append(name, ".", 1);
		if (part.length > 0)
			buffer_append(name, part.data, part.length - 1);
	}
	buffer_free(&part);
	if (!buffer_append(name, "", 1) || !parameter_name_is_legal((const char *)name->data))
		return;
	parameter_name_lower((const char *)name->data, lower);
	question_note_name(client, lower);
}

/*
 * The names of custom settings in any text: a server can be asked for them by name only. Names that
 * are no setting's do no harm.
 */
static void note_names(struct client_link *client, const char *text, size_t length)
{
	struct sql_scanner scanner;
	struct buffer token = {0};
	enum sql_token kind;
	bool behind_set = false;

	sql_scanner_init(&scanner, text, length, false);
	while ((kind = sql_scanner_next(&scanner, &token)) != SQL_END) {
		const char *word = (const char *)token.data;

		if (kind == SQL_UNKNOWN && scanner.at < scanner.end)
			scanner.at++;
		else if (kind == SQL_WORD &&
			(strcmp(word, "set") == 0 || strcmp(word, "set_config") == 0))
			behind_set = true;
		else if (behind_set && kind == SQL_WORD &&
			(strcmp(word, "session") == 0 || strcmp(word, "local") == 0))
			continue;
		else if (behind_set && kind == SQL_SYMBOL && word[0] == '(')
			continue;
		else if (behind_set) {
			if (kind == SQL_WORD || kind == SQL_NAME || kind == SQL_STRING)
				note_dotted(client, &scanner, &token);
			behind_set = false;
		}
	}
	buffer_free(&token);
}

/* --- a plain SET -------------------------------------------------------------------------- */

static bool is_reported(const struct server_link *server, const char *name)
{
	const int index = parameter_index(link_registry(&server->link)->parameters, name);

	return index >= 0 && parameters_get(server->link.parameters, (unsigned)index);
}

static bool add(struct server_link *server, const struct session_command *command)
{
	struct buffer *changes = &server->changes;

	if (changes->length + command->name.length + command->value.length > CHANGES_SIZE_MAX)
		return false;
	buffer_append(changes, command->name.data, command->name.length);
	return buffer_append(changes, command->value.data, command->value.length);
}

static bool note_command(struct relay_run *run, const struct session_command *command)
{
	const char *name = (const char *)command->name.data;

	if (command->verb == SESSION_SET_LOCAL)
		return true;
	if (command->verb != SESSION_SET)
		return false;
	question_note_name(run->client, name);
	if (is_reported(run->server, name))
		return true;
	/* The server's spelling of a role is that of its catalog; others it takes as they are. */
	if (!add(run->server, command))
		return false;
	run->server->altered_known = true;
	return true;
}

bool changes_note_text(struct relay_run *run, const char *text, size_t length)
{
	const struct session_lexis lexis = {.safe_encoding = true};
	struct session_command command;
	bool known;

	session_command_init(&command);
	if (session_command_read(text, length, lexis, &command) == SESSION_UNKNOWN)
		note_names(run->client, text, length);
	known = note_command(run, &command);
	session_command_free(&command);
	return known;
}

/* --- the end of a transaction ------------------------------------------------------------- */

void changes_doubt(struct server_link *server)
{
	if (!server->altered_known)
		return;
	server->altered_known = false;
	server->altered_unknown = true;
	buffer_free(&server->changes);
}

static bool follow(struct link *link, const struct buffer *changes)
{
	struct parameter_table *table = link_registry(link)->parameters;
	const char *at = (const char *)changes->data, *end = at + changes->length;
	struct parameter_values values;

	parameter_values_read(link->parameters, &values);
	while (at < end) {
		const char *value = at + strlen(at) + 1;

		if (!parameter_values_follow(&values, at, value))
			return false;
		at = value + strlen(value) + 1;
	}
	return link_take_parameters(link, parameter_values_intern(table, &values));
}

bool changes_take(struct server_link *server, struct client_link *client)
{
	const bool good = !server->changes.failed && follow(&client->link, &server->changes) &&
		follow(&server->link, &server->changes);

	server->altered_known = false;
	buffer_clear(&server->changes);
	return good;
}
