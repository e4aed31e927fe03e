/* SPDX-License-Identifier: ISC */
#include "session/parameters/question.h"

#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "session/relay/own_query.h"
#include "session/relay/relay.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/sql.h"

/* Memory for the names of one client. */
enum { NAMES_SIZE_MAX = 64 * PARAMETER_NAME_SIZE };

/* --- names of custom settings ------------------------------------------------------------- */

static size_t names_size(const char *names)
{
	size_t size = 0;

	while (names && names[size])
		size += strlen(names + size) + 1;
	return size;
}

static bool has_name(const char *names, const char *name)
{
	for (; names && *names; names += strlen(names) + 1) {
		if (strcmp(names, name) == 0)
			return true;
	}
	return false;
}

bool question_note_name(struct client_link *client, const char *name)
{
	const size_t before = names_size(client->custom_names), size = strlen(name) + 1;
	char *names;

	if (!strchr(name, '.') || has_name(client->custom_names, name))
		return true;
	if (before + size >= NAMES_SIZE_MAX)
		return false;
	names = realloc(client->custom_names, before + size + 1);
	if (!names)
		return false;
	memcpy(names + before, name, size);
	names[before + size] = '\0';
	client->custom_names = names;
	return true;
}

/* --- the query ---------------------------------------------------------------------------- */

/*
 * Settings that were SET in the session; the role and custom settings are not in pg_settings.
 * Time limits of the session do not apply: it is one short query in a transaction of its own.
 */
static void write_query(const struct client_link *client, struct buffer *sql)
{
	static const char settings[] =
		"SELECT pg_catalog.lower(name), setting FROM pg_catalog.pg_settings"
		" WHERE source OPERATOR(pg_catalog.=) 'session'"
		" UNION ALL SELECT 'role', NULLIF(pg_catalog.current_setting('role'),'none')";
	const char *name;

	buffer_append(sql, settings, sizeof(settings) - 1);
	for (name = client->custom_names; name && *name; name += strlen(name) + 1) {
		buffer_printf(sql, " UNION ALL SELECT ");
		sql_append_literal(sql, name);
		buffer_printf(sql, ", pg_catalog.current_setting(");
		sql_append_literal(sql, name);
		buffer_printf(sql, ",true)");
	}
	buffer_append(sql, "", 1);
}

static void wait_for_answer(struct client_link *client, struct server_link *server)
{
	server->asked_for = client;
	client->asking = server;
	client_set_step(client, CLIENT_STEP_ASKED);
}

void question_begin(struct server_link *server, struct client_link *client, bool closing)
{
	struct buffer sql = {0};
	bool sent = false;

	write_query(client, &sql);
	server_enter(server, SERVER_ASKING);
	server->asked_for = NULL;
	server->altered_unknown = server->altered_known = false;
	buffer_free(&server->changes);
	buffer_clear(&server->kept);
	if (!sql.failed)
		sent = own_query_send(server, (const char *)sql.data);
	buffer_free(&sql);
	if (!sent)
		return;
	server_set_task(server, SERVER_TASK_QUESTION);
	if (!closing)
		wait_for_answer(client, server);
}

/* --- what follows from it ----------------------------------------------------------------- */

/* Replace the followed values by those of the answer: all that servers do not report. */
static bool read_answer(const struct server_link *server, struct parameter_values *values)
{
	const struct parameter_table *table = link_registry(&server->link)->parameters;
	const struct buffer *answer = &server->kept;
	const char *at = (const char *)answer->data, *end = at + answer->length;

	values->count = 0;
	while (at < end) {
		const char *name = at, *value = at + strlen(at) + 1;
		const int index = parameter_index(table, name);

		if ((index < 0 || !values->tracked[index]) &&
			!parameter_values_follow(values, name, value))
			return false;
		at = value + strlen(value) + 1;
	}
	return true;
}

/* What the client asked for at its start and has RESET since has that value again. */
static bool add_asked(const struct client_link *client, struct parameter_values *values)
{
	struct parameter_values asked;

	if (!client->asked)
		return true;
	parameter_values_read(client->asked, &asked);
	for (unsigned i = 0; i < asked.count; i++) {
		bool present;

		parameter_values_place(values, asked.followed[i].name, &present);
		if (!present &&
			!parameter_values_follow(
				values, asked.followed[i].name, asked.followed[i].value))
			return false;
	}
	return true;
}

static bool take_answer(struct server_link *server, struct client_link *client)
{
	struct parameter_table *table = link_registry(&server->link)->parameters;
	struct parameter_values values, wanted;

	parameter_values_read(server->link.parameters, &values);
	if (!read_answer(server, &values) ||
		!link_take_parameters(&server->link, parameter_values_intern(table, &values)))
		return false;
	if (!client)
		return true;
	parameter_values_read(client->link.parameters, &wanted);
	memcpy(wanted.followed, values.followed, sizeof(values.followed));
	wanted.count = values.count;
	return add_asked(client, &wanted) &&
		link_take_parameters(&client->link, parameter_values_intern(table, &wanted));
}

static void let_go_on(struct server_link *server)
{
	struct client_link *client = server->asked_for;

	server->asked_for = NULL;
	if (!client)
		return;
	client->asking = NULL;
	client_set_step(client, CLIENT_STEP_NONE);
	relay_client_resume(client);
}

bool question_done(struct server_link *server)
{
	const bool good = server->transaction_status == READY_IDLE && !server->kept.failed &&
		take_answer(server, server->asked_for);

	buffer_free(&server->kept);
	let_go_on(server);
	return good;
}

void question_server_closed(struct server_link *server)
{
	let_go_on(server);
}

void question_client_closed(struct client_link *client)
{
	free(client->custom_names);
	client->custom_names = NULL;
}
