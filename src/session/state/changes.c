/* SPDX-License-Identifier: ISC */
#include "session/state/changes.h"

#include <string.h>

#include "session/link/client_lexis.h"
#include "wire/parameter_values.h"
#include "wire/session_command.h"

/* Memory for the changes of one transaction: more than a set can have does not count. */
enum { CHANGES_SIZE_MAX = PARAMETERS_SIZE_MAX };

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
	if (command->verb == SESSION_RESET)
		run->server->has_reset = true;
	/* SET SESSION AUTHORIZATION changes the role too. */
	if (command->verb != SESSION_SET || strcmp(name, "session_authorization") == 0)
		return false;
	if (is_reported(run->server, name) || !parameter_may_follow(name))
		return true;
	/* The server's spelling of a role is that of its catalog; others it takes as they are. */
	if (!add(run->server, command))
		return false;
	run->server->changes_known = true;
	return true;
}

bool changes_note_text(struct relay_run *run, const char *text, size_t length)
{
	const struct session_lexis lexis = client_lexis(run->client);
	struct session_command command;
	bool known;

	session_command_init(&command);
	session_command_read(text, length, lexis, &command);
	known = note_command(run, &command);
	session_command_free(&command);
	return known;
}

/* --- the end of a transaction ------------------------------------------------------------- */

void changes_doubt(struct server_link *server)
{
	if (!server->changes_known)
		return;
	server->changes_known = false;
	server->suspected |= TOPIC_SETTINGS;
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

	/* Time limits too: if it has any, they are among its parameters. */
	if (good)
		server->altered = false;
	server->changes_known = false;
	buffer_clear(&server->changes);
	return good;
}
