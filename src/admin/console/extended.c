/* SPDX-License-Identifier: ISC */
#include "admin/console/extended.h"

#include "admin/console/binding.h"
#include "admin/console/console_session.h"
#include "admin/console/dispatch.h"
#include "admin/console/execute.h"
#include "admin/console/extended_call.h"
#include "wire/writer.h"

typedef enum command_end message_handler(struct extended_call *call);

static enum command_end fail_without_statement(struct extended_call *call, const char *name)
{
	if (name[0] == '\0')
		return extended_call_fail(
			call, "26000", "unnamed prepared statement does not exist");
	return extended_call_fail(call, "26000", "prepared statement \"%.*s\" does not exist",
		PREPARED_NAME_SIZE, name);
}

/* --- Parse -------------------------------------------------------------------------------- */

static enum command_end add_statement(
	struct extended_call *call, const char *name, const char *text)
{
	struct prepared *prepared = &call->extended->prepared;
	struct console_statement *present = prepared_find_statement(prepared, name);
	struct answer_shape shape;

	if (present && name[0] != '\0')
		return extended_call_fail(
			call, "42P05", "prepared statement \"%s\" already exists", name);
	prepared_drop_statement(prepared, present);
	if (!dispatch_check(call->client, text, &shape, call->out)) {
		extended_fail(call->extended);
		return COMMAND_DONE;
	}
	if (!prepared_add_statement(prepared, name, text, &shape))
		return extended_call_fail(
			call, "54000", "too many or too long prepared statements");
	extended_call_write(call, PQ_PARSE_COMPLETE);
	return COMMAND_DONE;
}

static enum command_end on_parse(struct extended_call *call)
{
	const char *name = reader_string(&call->reader);
	const char *text = reader_string(&call->reader);
	const uint16_t types = reader_int16(&call->reader);

	reader_bytes(&call->reader, 4 * (size_t)types);
	if (!reader_done(&call->reader))
		return extended_call_fail_as_malformed(call);
	if (types > 0)
		return extended_call_fail(
			call, "0A000", "parameters are not supported by the admin console");
	return add_statement(call, name, text);
}

/* --- Bind --------------------------------------------------------------------------------- */

static enum command_end add_portal(struct extended_call *call, const struct binding *binding,
	struct console_statement *statement)
{
	struct prepared *prepared = &call->extended->prepared;
	struct console_portal *present = prepared_find_portal(prepared, binding->portal);
	struct console_portal *portal;

	if (present && binding->portal[0] != '\0')
		return extended_call_fail(
			call, "42P03", "cursor \"%s\" already exists", binding->portal);
	prepared_drop_portal(prepared, present);
	portal = prepared_add_portal(prepared, binding->portal, statement->query);
	if (!portal)
		return extended_call_fail(
			call, "54000", "too many portals, or too long a name");
	portal->binary = binding_binary_columns(binding, statement->query->shape.column_count);
	extended_call_write(call, PQ_BIND_COMPLETE);
	return COMMAND_DONE;
}

static enum command_end on_bind(struct extended_call *call)
{
	struct console_statement *statement;
	struct binding binding;
	unsigned columns;

	if (!binding_read(&call->reader, &binding))
		return extended_call_fail_as_malformed(call);
	statement = prepared_find_statement(&call->extended->prepared, binding.statement);
	if (!statement)
		return fail_without_statement(call, binding.statement);
	if (binding.values > 0)
		return extended_call_fail(call, "08P01",
			"bind message supplies %u parameters, but prepared statement \"%s\""
			" requires 0",
			binding.values, statement->name);
	if (binding_unknown_format(&binding) != 0)
		return extended_call_fail(call, "22023", "unsupported format code: %u",
			binding_unknown_format(&binding));
	columns = statement->query->shape.column_count;
	if (columns > 0 && binding.formats > 1 && binding.formats != columns)
		return extended_call_fail(call, "08P01",
			"bind message has %u result formats but query has %u columns",
			binding.formats, columns);
	return add_portal(call, &binding, statement);
}

/*
 * --- Describe and Close --------------------------------------------------------------------
 */

/* Read the name and the kind, statement or portal, of a Describe or Close. */
static bool read_name(struct reader *reader, char *kind, const char **name)
{
	*kind = (char)reader_byte(reader);
	*name = reader_string(reader);
	return reader_done(reader);
}

static enum command_end describe_statement(struct extended_call *call, const char *name)
{
	const struct console_statement *statement =
		prepared_find_statement(&call->extended->prepared, name);

	if (!statement)
		return fail_without_statement(call, name);
	writer_message(call->out, PQ_PARAMETER_DESCRIPTION, "\0\0", 2);
	dispatch_describe(call->client, statement->query->text, 0, call->out);
	return COMMAND_DONE;
}

static enum command_end describe_portal(struct extended_call *call, const char *name)
{
	const struct console_portal *portal =
		prepared_find_portal(&call->extended->prepared, name);

	if (!portal)
		return extended_call_fail_without_portal(call, name);
	dispatch_describe(call->client, portal->query->text, portal->binary, call->out);
	return COMMAND_DONE;
}

static enum command_end on_describe(struct extended_call *call)
{
	const char *name;
	char kind;

	if (!read_name(&call->reader, &kind, &name))
		return extended_call_fail_as_malformed(call);
	if (kind == 'S')
		return describe_statement(call, name);
	if (kind == 'P')
		return describe_portal(call, name);
	return extended_call_fail(call, "08P01", "invalid DESCRIBE message subtype %d", kind);
}

static enum command_end on_close(struct extended_call *call)
{
	struct prepared *prepared = &call->extended->prepared;
	const char *name;
	char kind;

	if (!read_name(&call->reader, &kind, &name))
		return extended_call_fail_as_malformed(call);
	if (kind == 'S')
		prepared_drop_statement(prepared, prepared_find_statement(prepared, name));
	else if (kind == 'P')
		prepared_drop_portal(prepared, prepared_find_portal(prepared, name));
	else
		return extended_call_fail(
			call, "08P01", "invalid CLOSE message subtype %d", kind);
	extended_call_write(call, PQ_CLOSE_COMPLETE);
	return COMMAND_DONE;
}

/* --- Sync and Flush ----------------------------------------------------------------------- */

static enum command_end on_sync(struct extended_call *call)
{
	call->extended->is_skipping = false;
	if (!call->client->console->in_transaction)
		prepared_drop_portals(&call->extended->prepared);
	console_session_write_ready(call->client, call->out);
	return COMMAND_DONE;
}

/* Nothing to do: answers are sent at the end of the turn anyway. */
static enum command_end on_flush(struct extended_call *call)
{
	(void)call;
	return COMMAND_DONE;
}

/* --- messages ----------------------------------------------------------------------------- */

static message_handler *handler_of(uint8_t type)
{
	static const struct {
		uint8_t type;
		message_handler *handle;
	} handlers[] = {
		{PQ_PARSE, on_parse},
		{PQ_BIND, on_bind},
		{PQ_DESCRIBE, on_describe},
		{PQ_EXECUTE, execute_message},
		{PQ_CLOSE, on_close},
		{PQ_SYNC, on_sync},
		{PQ_FLUSH, on_flush},
	};

	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		if (handlers[i].type == type)
			return handlers[i].handle;
	}
	return NULL;
}

bool extended_handles(uint8_t type)
{
	return handler_of(type) != NULL;
}

enum command_end extended_take(struct extended *extended, struct client_link *client,
	uint8_t type, const uint8_t *body, size_t length, struct buffer *out)
{
	struct extended_call call = {.extended = extended, .client = client, .out = out};

	if (extended->is_skipping && type != PQ_SYNC)
		return COMMAND_DONE;
	reader_init(&call.reader, body, length);
	return handler_of(type)(&call);
}

enum command_end extended_continue(
	struct extended *extended, struct client_link *client, struct buffer *out)
{
	struct extended_call call = {.extended = extended, .client = client, .out = out};

	return execute_continue(&call);
}

void extended_fail(struct extended *extended)
{
	extended->is_skipping = true;
}

void extended_interrupt(struct extended *extended, bool in_transaction)
{
	struct prepared *prepared = &extended->prepared;

	if (in_transaction)
		prepared_drop_portal(prepared, prepared_find_portal(prepared, ""));
	else
		prepared_drop_portals(prepared);
	prepared_drop_statement(prepared, prepared_find_statement(prepared, ""));
}

void extended_free(struct extended *extended)
{
	prepared_drop_all(&extended->prepared);
}
