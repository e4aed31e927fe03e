/* SPDX-License-Identifier: ISC */
#include "session/parameters/way_out.h"

#include <string.h>

#include "model/client_statements.h"
#include "model/registry.h"
#include "session/link/client_lexis.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/reader.h"
#include "wire/session_command.h"

/* --- the statement in the messages -------------------------------------------------------- */

/* The messages that are still to be read, and the last one. */
struct messages {
	const uint8_t *at, *end;
	struct frame frame;
	struct reader body;
};

/* Returns whether the next message is whole and of this type. */
static bool take(struct messages *messages, uint8_t type)
{
	const size_t length = (size_t)(messages->end - messages->at);

	if (frame_peek(messages->at, length, UINT32_MAX, &messages->frame) != FRAME_WHOLE ||
		messages->frame.type != type)
		return false;
	reader_init(
		&messages->body, frame_body(messages->at), frame_body_size(&messages->frame));
	messages->at += messages->frame.total;
	return true;
}

static const char *text_of_name(const struct client_link *client, const char *name)
{
	const struct statement *statement = client->unnamed;

	if (name[0] != '\0') {
		const struct client_statement *entry = client->statements
			? client_statements_find(client->statements, name, strlen(name) + 1)
			: NULL;

		statement = entry ? entry->statement : NULL;
	}
	return statement ? (const char *)statement->content : NULL;
}

/* A statement that is not executed in these messages changes nothing yet. */
static bool is_executed(struct messages *messages)
{
	while (take(messages, PQ_DESCRIBE))
		;
	return take(messages, PQ_EXECUTE);
}

/* Returns the text, which is in the messages or kept with the client; NULL: there is none. */
static const char *find_text(const struct client_link *client, struct messages *messages)
{
	const char *name = NULL, *bound, *text = NULL;

	if (take(messages, PQ_QUERY))
		return reader_string(&messages->body);
	if (take(messages, PQ_PARSE)) {
		name = reader_string(&messages->body);
		text = reader_string(&messages->body);
		while (take(messages, PQ_DESCRIBE))
			;
		if (!text)
			return NULL;
	}
	if (!take(messages, PQ_BIND))
		return NULL;
	reader_string(&messages->body);
	bound = reader_string(&messages->body);
	if (!bound || (name && strcmp(name, bound) != 0) || !is_executed(messages))
		return NULL;
	return text ? text : text_of_name(client, bound);
}

/* --- what it does to the parameters ------------------------------------------------------- */

struct change {
	const struct parameter_table *table;
	struct parameter_values values; /* of the client: changed in place */
	struct parameter_values asked; /* at its start */
};

static void put(struct change *change, const char *name, const char *value, bool *good)
{
	const int index = parameter_index(change->table, name);

	if (index >= 0 && change->values.tracked[index])
		change->values.tracked[index] = value;
	else
		*good = parameter_values_follow(&change->values, name, value) && *good;
}

static void remove_followed(struct parameter_values *values, const char *name)
{
	bool present;
	const unsigned place = parameter_values_place(values, name, &present);

	if (!present)
		return;
	values->count--;
	memmove(&values->followed[place], &values->followed[place + 1],
		(values->count - place) * sizeof(values->followed[0]));
}

/* Back to the value of the client's start, or to the usual one of the server. */
static void put_back(struct change *change, const char *name, bool *good)
{
	const int index = parameter_index(change->table, name);
	bool present;
	unsigned place;

	if (index >= 0 && change->values.tracked[index]) {
		change->values.tracked[index] = change->asked.tracked[index];
		return;
	}
	place = parameter_values_place(&change->asked, name, &present);
	if (present)
		*good = parameter_values_follow(
				&change->values, name, change->asked.followed[place].value) &&
			*good;
	else
		remove_followed(&change->values, name);
}

/* RESET ALL leaves the identity of the session; DISCARD ALL does not. */
static void put_all_back(struct change *change, bool identity_too, bool *good)
{
	const struct parameter_values before = change->values;

	change->values = change->asked;
	for (unsigned i = 0; i < PARAMETER_IDENTITIES && !identity_too; i++) {
		const char *name = parameter_identity[i];
		const int index = parameter_index(change->table, name);
		bool present;
		const unsigned place = parameter_values_place(&before, name, &present);

		if (index >= 0)
			change->values.tracked[index] = before.tracked[index];
		remove_followed(&change->values, name);
		if (present)
			*good = parameter_values_follow(
					&change->values, name, before.followed[place].value) &&
				*good;
	}
}

/* Returns whether the command is one that replaces settings. */
static bool apply(struct change *change, const struct session_command *command)
{
	const char *name = (const char *)command->name.data;
	bool good = true;

	if (command->verb == SESSION_RESET_ALL || command->verb == SESSION_DISCARD_ALL) {
		put_all_back(change, command->verb == SESSION_DISCARD_ALL, &good);
		return good;
	}
	if (command->verb == SESSION_SET)
		put(change, name, (const char *)command->value.data, &good);
	else if (command->verb == SESSION_RESET)
		put_back(change, name, &good);
	else
		return false;
	/* Another session authorization has no role. */
	if (strcmp(name, "session_authorization") == 0)
		remove_followed(&change->values, "role");
	return good;
}

struct parameters *way_out_of(const struct client_link *client)
{
	struct parameter_table *table = link_registry(&client->link)->parameters;
	struct messages messages = {
		client->link.held, client->link.held + client->link.held_length, .frame = {0}};
	struct parameters *none = parameters_empty(table), *set = NULL;
	struct change change = {.table = table};
	struct session_command command;
	const char *text = client->link.held_length > 0 ? find_text(client, &messages) : NULL;

	session_command_init(&command);
	if (text) {
		session_command_read(text, strlen(text), client_lexis(client), &command);
		parameter_values_read(client->link.parameters, &change.values);
		parameter_values_read(client->asked ? client->asked : none, &change.asked);
		if (apply(&change, &command))
			set = parameter_values_intern(table, &change.values);
	}
	session_command_free(&command);
	parameters_unref(none);
	return set;
}
