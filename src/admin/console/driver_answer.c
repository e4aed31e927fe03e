/* SPDX-License-Identifier: ISC */
#include "admin/console/driver_answer.h"

#include <stdio.h>

#include "admin/console/console_session.h"
#include "admin/console/reply.h"
#include "admin/show/show_fakes.h"
#include "base/compat.h"
#include "model/registry.h"
#include "wire/writer.h"

/* --- SELECT and SHOW ---------------------------------------------------------------------- */

/*
 * Begin as PostgreSQL's version() does, because drivers look for the name and a number; then say
 * which program it is.
 */
static void add_version(struct result *result, const struct client_link *client)
{
	const struct process *process = link_registry(&client->link)->process;
	char text[256];

	snprintf(text, sizeof(text), "PostgreSQL %s/bouncer on %s",
		compat_text(process->settings->compat_version), process->version);
	result_text(result, text);
}

static void add_cell(
	struct result *result, const struct client_link *client, const struct driver_cell *cell)
{
	switch (cell->value) {
	case DRIVER_VALUE_TEXT:
		result_text(result, cell->text);
		break;
	case DRIVER_VALUE_PARAMETER:
		result_text(result,
			show_fakes_value(cell->parameter,
				link_registry(&client->link)
					->process->settings->compat_version));
		break;
	case DRIVER_VALUE_VERSION:
		add_version(result, client);
		break;
	case DRIVER_VALUE_DATABASE:
		result_text(result, link_database_name(&client->link));
		break;
	case DRIVER_VALUE_USER:
		result_text(result, link_user_name(&client->link));
		break;
	}
}

static void write_selected(const struct client_link *client,
	const struct driver_statement *statement, const struct result_options *options,
	struct buffer *out)
{
	struct result result;

	result_begin(&result, out, statement->columns, statement->column_count, options);
	result_begin_row(&result);
	for (unsigned i = 0; i < statement->column_count; i++)
		add_cell(&result, client, &statement->cells[i]);
	result_end_row(&result);
	result_end(&result);
	writer_command_complete(out, "SELECT 1");
}

static void write_shown(struct client_link *client, const struct topic *shown,
	const struct result_options *options, struct buffer *out)
{
	const struct show_request request = {
		.registry = link_registry(&client->link), .client = client, .topic = shown};
	struct result result;

	result_begin(&result, out, shown->columns, shown->column_count, options);
	shown->fill(&result, &request);
	result_end(&result);
	writer_command_complete(out, "SHOW");
}

/* --- transactions and statements ---------------------------------------------------------- */

static void begin(struct console_session *session, struct buffer *out)
{
	if (session->in_transaction)
		writer_notice(
			out, "WARNING", "25001", "there is already a transaction in progress");
	session->in_transaction = true;
}

static void end(struct console_session *session, struct buffer *out)
{
	if (!session->in_transaction)
		writer_notice(out, "WARNING", "25P01", "there is no transaction in progress");
	session->in_transaction = false;
}

/* Returns false after appending an error. */
static bool deallocate(struct client_link *client, const char *name, struct buffer *out)
{
	struct prepared *prepared = &client->console->extended.prepared;
	struct console_statement *statement = prepared_find_statement(prepared, name);
	char text[DRIVER_NAME_SIZE + 64];

	if (!statement) {
		snprintf(text, sizeof(text), "prepared statement \"%s\" does not exist", name);
		reply_error_as(out, client, "26000", text, NULL);
		return false;
	}
	prepared_drop_statement(prepared, statement);
	return true;
}

/* Returns false after appending an error, behind which no statement is executed. */
static bool write_answer(struct client_link *client, const struct driver_statement *statement,
	const struct result_options *options, struct buffer *out)
{
	struct console_session *session = client->console;

	switch (statement->action) {
	case DRIVER_NOTHING:
	case DRIVER_EMPTY:
		break;
	case DRIVER_BEGIN:
		begin(session, out);
		break;
	case DRIVER_END:
		end(session, out);
		break;
	case DRIVER_SET:
		reply_notice(out, "SET ignored", NULL);
		break;
	case DRIVER_SHOW:
		write_shown(client, statement->shown, options, out);
		break;
	case DRIVER_SELECT:
		write_selected(client, statement, options, out);
		break;
	case DRIVER_DEALLOCATE:
		if (!deallocate(client, statement->name, out))
			return false;
		break;
	case DRIVER_DEALLOCATE_ALL:
		prepared_drop_statements(&session->extended.prepared);
		break;
	}
	if (statement->tag)
		writer_command_complete(out, statement->tag);
	return true;
}

void driver_answer_write(struct client_link *client, const char *text,
	const struct result_options *options, struct buffer *out)
{
	struct driver_statement statement;
	bool is_empty = true, goes_on = true;

	do {
		text = driver_sql_parse(text, &statement);
		if (text && statement.action != DRIVER_EMPTY) {
			is_empty = false;
			goes_on = write_answer(client, &statement, options, out);
		}
	} while (text && *text != '\0' && goes_on);
	if (is_empty)
		writer_message(out, PQ_EMPTY_QUERY_RESPONSE, NULL, 0);
}
