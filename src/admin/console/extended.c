/* SPDX-License-Identifier: ISC */
#include "admin/console/extended.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "admin/console/binding.h"
#include "admin/console/dispatch.h"
#include "admin/console/reply.h"
#include "admin/console/topics.h"
#include "wire/frame.h"
#include "wire/reader.h"
#include "wire/writer.h"

/* Most bytes of rows that portals keep for later Executes. */
enum { PORTALS_HELD_MAX = 16 * 1024 * 1024 };

/* One message being handled. */
struct extended_call {
	struct extended *extended;
	struct client_link *client;
	struct reader reader;
	struct buffer *out;
};

typedef enum command_end message_handler(struct extended_call *call);

/* --- errors; SQLSTATEs and texts are PostgreSQL's ----------------------------------------- */

__attribute__((format(printf, 3, 4))) static enum command_end fail(
	struct extended_call *call, const char *sqlstate, const char *format, ...)
{
	char text[PREPARED_NAME_SIZE + 128];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	reply_error_as(call->out, call->client, sqlstate, text);
	call->extended->is_skipping = true;
	return COMMAND_DONE;
}

static enum command_end fail_as_malformed(struct extended_call *call)
{
	return fail(call, "08P01", "invalid message format");
}

static enum command_end fail_without_statement(struct extended_call *call, const char *name)
{
	if (name[0] == '\0')
		return fail(call, "26000", "unnamed prepared statement does not exist");
	return fail(call, "26000", "prepared statement \"%.*s\" does not exist",
		PREPARED_NAME_SIZE, name);
}

static enum command_end fail_without_portal(struct extended_call *call, const char *name)
{
	return fail(call, "34000", "portal \"%.*s\" does not exist", PREPARED_NAME_SIZE, name);
}

static void write_empty(struct buffer *out, enum server_message type)
{
	writer_message(out, type, NULL, 0);
}

/* --- Parse -------------------------------------------------------------------------------- */

static enum command_end add_statement(
	struct extended_call *call, const char *name, const char *text)
{
	struct prepared *prepared = &call->extended->prepared;
	struct console_statement *present = prepared_find_statement(prepared, name);
	const struct topic *topic;

	if (present && name[0] != '\0')
		return fail(call, "42P05", "prepared statement \"%s\" already exists", name);
	prepared_drop_statement(prepared, present);
	if (!dispatch_check(call->client, text, &topic, call->out)) {
		extended_fail(call->extended);
		return COMMAND_DONE;
	}
	if (!prepared_add_statement(prepared, name, text, topic))
		return fail(call, "54000", "too many or too long prepared statements");
	write_empty(call->out, PQ_PARSE_COMPLETE);
	return COMMAND_DONE;
}

static enum command_end on_parse(struct extended_call *call)
{
	const char *name = reader_string(&call->reader);
	const char *text = reader_string(&call->reader);
	const uint16_t types = reader_int16(&call->reader);

	reader_bytes(&call->reader, 4 * (size_t)types);
	if (!reader_done(&call->reader))
		return fail_as_malformed(call);
	if (types > 0)
		return fail(call, "0A000", "parameters are not supported by the admin console");
	return add_statement(call, name, text);
}

/* --- Bind --------------------------------------------------------------------------------- */

static enum command_end add_portal(struct extended_call *call, const struct binding *binding,
	struct console_statement *statement)
{
	struct prepared *prepared = &call->extended->prepared;
	struct console_portal *present = prepared_find_portal(prepared, binding->portal);
	const struct topic *topic = statement->query->topic;
	struct console_portal *portal;

	if (present && binding->portal[0] != '\0')
		return fail(call, "42P03", "cursor \"%s\" already exists", binding->portal);
	prepared_drop_portal(prepared, present);
	portal = prepared_add_portal(prepared, binding->portal, statement->query);
	if (!portal)
		return fail(call, "54000", "too many portals, or too long a name");
	portal->binary = binding_binary_columns(binding, topic ? topic->column_count : 0);
	write_empty(call->out, PQ_BIND_COMPLETE);
	return COMMAND_DONE;
}

static enum command_end on_bind(struct extended_call *call)
{
	struct console_statement *statement;
	const struct topic *topic;
	struct binding binding;

	if (!binding_read(&call->reader, &binding))
		return fail_as_malformed(call);
	statement = prepared_find_statement(&call->extended->prepared, binding.statement);
	if (!statement)
		return fail_without_statement(call, binding.statement);
	if (binding.values > 0)
		return fail(call, "08P01",
			"bind message supplies %u parameters, but prepared statement \"%s\""
			" requires 0",
			binding.values, statement->name);
	if (binding_unknown_format(&binding) != 0)
		return fail(call, "22023", "unsupported format code: %u",
			binding_unknown_format(&binding));
	topic = statement->query->topic;
	if (topic && topic->column_count > 0 && binding.formats > 1 &&
		binding.formats != topic->column_count)
		return fail(call, "08P01",
			"bind message has %u result formats but query has %u columns",
			binding.formats, topic->column_count);
	return add_portal(call, &binding, statement);
}

/* --- Describe and Close -------------------------------------------------------------------- */

/* Read the name and the kind, statement or portal, of a Describe or Close. */
static bool read_name(struct reader *reader, char *kind, const char **name)
{
	*kind = (char)reader_byte(reader);
	*name = reader_string(reader);
	return reader_done(reader);
}

static void describe_rows(struct buffer *out, const struct topic *topic, uint64_t binary)
{
	if (topic && topic->column_count > 0)
		result_describe(out, topic->columns, topic->column_count, binary);
	else
		write_empty(out, PQ_NO_DATA);
}

static enum command_end describe_statement(struct extended_call *call, const char *name)
{
	const struct console_statement *statement =
		prepared_find_statement(&call->extended->prepared, name);

	if (!statement)
		return fail_without_statement(call, name);
	writer_message(call->out, PQ_PARAMETER_DESCRIPTION, "\0\0", 2);
	describe_rows(call->out, statement->query->topic, 0);
	return COMMAND_DONE;
}

static enum command_end describe_portal(struct extended_call *call, const char *name)
{
	const struct console_portal *portal =
		prepared_find_portal(&call->extended->prepared, name);

	if (!portal)
		return fail_without_portal(call, name);
	describe_rows(call->out, portal->query->topic, portal->binary);
	return COMMAND_DONE;
}

static enum command_end on_describe(struct extended_call *call)
{
	const char *name;
	char kind;

	if (!read_name(&call->reader, &kind, &name))
		return fail_as_malformed(call);
	if (kind == 'S')
		return describe_statement(call, name);
	if (kind == 'P')
		return describe_portal(call, name);
	return fail(call, "08P01", "invalid DESCRIBE message subtype %d", kind);
}

static enum command_end on_close(struct extended_call *call)
{
	struct prepared *prepared = &call->extended->prepared;
	const char *name;
	char kind;

	if (!read_name(&call->reader, &kind, &name))
		return fail_as_malformed(call);
	if (kind == 'S')
		prepared_drop_statement(prepared, prepared_find_statement(prepared, name));
	else if (kind == 'P')
		prepared_drop_portal(prepared, prepared_find_portal(prepared, name));
	else
		return fail(call, "08P01", "invalid CLOSE message subtype %d", kind);
	write_empty(call->out, PQ_CLOSE_COMPLETE);
	return COMMAND_DONE;
}

/* --- Execute ------------------------------------------------------------------------------ */

/* The part of a portal's answer that one Execute sends. */
struct portion {
	size_t length;
	uint32_t rows;
	bool is_suspended; /* ends after the number of rows that Execute asked for */
	bool is_error;
};

static struct portion cut_portion(const uint8_t *answer, size_t length, uint32_t max_rows)
{
	struct portion portion = {0};
	struct frame frame = {0};

	while (portion.length < length && !portion.is_suspended) {
		frame_peek(
			answer + portion.length, length - portion.length, UINT32_MAX, &frame);
		portion.length += frame.total;
		portion.is_error = frame.type == PQ_ERROR_RESPONSE;
		portion.is_suspended = frame.type == PQ_DATA_ROW && ++portion.rows == max_rows;
	}
	return portion;
}

static struct portion move_portion(
	struct console_portal *portal, uint32_t max_rows, struct buffer *out)
{
	struct buffer *answer = &portal->answer;
	struct portion portion = {0};

	if (answer->length == 0)
		return portion;
	portion = cut_portion(
		answer->data + portal->sent, answer->length - portal->sent, max_rows);
	buffer_append(out, answer->data + portal->sent, portion.length);
	portal->sent += portion.length;
	if (portal->sent == answer->length) {
		buffer_free(answer);
		portal->sent = 0;
	}
	return portion;
}

/*
 * Send the rows that Execute asked for. The rest stays in the portal for the next Execute; rows that
 * are missing are built first.
 */
static enum command_end send_portion(
	struct extended_call *call, struct console_portal *portal, uint32_t max_rows)
{
	struct extended *extended = call->extended;
	const struct portion portion = move_portion(portal, max_rows, call->out);

	extended->running = NULL;
	if (portion.is_error)
		extended_fail(extended);
	if (!portion.is_suspended && portal->show) {
		extended->running = portal;
		extended->wanted = max_rows > 0 ? max_rows - portion.rows : 0;
		return COMMAND_CONTINUES;
	}
	if (!portion.is_suspended)
		return COMMAND_DONE;
	if (prepared_held(&extended->prepared) > PORTALS_HELD_MAX)
		return fail(call, "54000", "too many rows are waiting in portals");
	write_empty(call->out, PQ_PORTAL_SUSPENDED);
	return COMMAND_DONE;
}

/* Drop the portal's answer. */
static enum command_end fail_without_memory(
	struct extended_call *call, struct console_portal *portal)
{
	call->extended->running = NULL;
	show_stream_free(portal->show);
	portal->show = NULL;
	portal->sent = 0;
	buffer_free(&portal->answer);
	return fail(call, "53200", "no mem");
}

static enum command_end run_portal(
	struct extended_call *call, struct console_portal *portal, uint32_t max_rows)
{
	const struct result_options options = {.binary = portal->binary, .is_described = true};
	const enum command_end end = dispatch_run(
		call->client, portal->query->text, &options, &portal->answer, &portal->show);

	portal->has_run = true;
	if (portal->answer.failed)
		return fail_without_memory(call, portal);
	/* The extended protocol sends SHOW FDS without descriptors. */
	if ((end == COMMAND_DONE || end == COMMAND_PASSES_FDS || end == COMMAND_CONTINUES) &&
		call->client->console)
		return send_portion(call, portal, max_rows);
	buffer_append(call->out, portal->answer.data, portal->answer.length);
	buffer_free(&portal->answer);
	return end;
}

enum command_end extended_continue(
	struct extended *extended, struct client_link *client, struct buffer *out)
{
	struct extended_call call = {.extended = extended, .client = client, .out = out};
	struct console_portal *portal = extended->running;

	if (show_stream_continue(portal->show, &portal->answer)) {
		show_stream_free(portal->show);
		portal->show = NULL;
	}
	if (portal->answer.failed)
		return fail_without_memory(&call, portal);
	return send_portion(&call, portal, extended->wanted);
}

/* Execute of a portal that has run: send rows that are left. */
static enum command_end resume_portal(
	struct extended_call *call, struct console_portal *portal, uint32_t max_rows)
{
	if (portal->answer.length > 0 || portal->show)
		return send_portion(call, portal, max_rows);
	writer_command_complete(call->out, "SHOW"); /* all rows have been sent */
	return COMMAND_DONE;
}

static enum command_end on_execute(struct extended_call *call)
{
	const char *name = reader_string(&call->reader);
	uint32_t max_rows = reader_int32(&call->reader);
	struct console_portal *portal;

	if (!reader_done(&call->reader))
		return fail_as_malformed(call);
	if (max_rows > INT32_MAX)
		max_rows = 0; /* all rows */
	portal = prepared_find_portal(&call->extended->prepared, name);
	if (!portal)
		return fail_without_portal(call, name);
	if (!portal->has_run)
		return run_portal(call, portal, max_rows);
	if (!portal->query->topic || portal->query->topic->column_count == 0)
		return fail(call, "55000", "portal \"%s\" cannot be run", name);
	return resume_portal(call, portal, max_rows);
}

/* --- Sync and Flush ----------------------------------------------------------------------- */

static enum command_end on_sync(struct extended_call *call)
{
	call->extended->is_skipping = false;
	prepared_drop_portals(&call->extended->prepared);
	writer_ready(call->out, READY_IDLE);
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
		{PQ_EXECUTE, on_execute},
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

bool extended_knows(uint8_t type)
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

void extended_fail(struct extended *extended)
{
	extended->is_skipping = true;
}

void extended_interrupt(struct extended *extended)
{
	prepared_drop_portals(&extended->prepared);
	prepared_drop_statement(
		&extended->prepared, prepared_find_statement(&extended->prepared, ""));
}

void extended_free(struct extended *extended)
{
	prepared_drop_all(&extended->prepared);
}
