/* SPDX-License-Identifier: ISC */
#include "admin/console/execute.h"

#include "admin/console/dispatch.h"
#include "wire/frame.h"
#include "wire/writer.h"

/* Most bytes of rows that portals keep for later Executes. */
enum { PORTALS_HELD_MAX = 16 * 1024 * 1024 };

/* --- portions ----------------------------------------------------------------------------- */

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
 * Send the rows that Execute asked for. The rest stays in the portal for the next Execute; rows
 * that are missing are built first.
 */
static enum command_end send_portion(
	struct extended_call *call, struct console_portal *portal, uint32_t max_rows)
{
	struct extended *extended = call->extended;
	const struct portion portion = move_portion(portal, max_rows, call->out);

	extended->running = NULL;
	if (portion.is_error)
		extended->is_skipping = true;
	if (!portion.is_suspended && portal->show) {
		extended->running = portal;
		extended->wanted = max_rows > 0 ? max_rows - portion.rows : 0;
		return COMMAND_CONTINUES;
	}
	if (!portion.is_suspended)
		return COMMAND_DONE;
	if (prepared_held(&extended->prepared) > PORTALS_HELD_MAX)
		return extended_call_fail(
			call, "54000", "too many rows are waiting in portals");
	extended_call_write(call, PQ_PORTAL_SUSPENDED);
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
	return extended_call_fail(call, "53200", "no mem");
}

/* --- running ------------------------------------------------------------------------------ */

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

enum command_end execute_continue(struct extended_call *call)
{
	struct console_portal *portal = call->extended->running;

	if (show_stream_continue(portal->show, &portal->answer)) {
		show_stream_free(portal->show);
		portal->show = NULL;
	}
	if (portal->answer.failed)
		return fail_without_memory(call, portal);
	return send_portion(call, portal, call->extended->wanted);
}

/* Execute of a portal that has run: send rows that are left. */
static enum command_end resume_portal(
	struct extended_call *call, struct console_portal *portal, uint32_t max_rows)
{
	if (portal->answer.length > 0 || portal->show)
		return send_portion(call, portal, max_rows);
	writer_command_complete(call->out, portal->query->shape.end_tag);
	return COMMAND_DONE;
}

enum command_end execute_message(struct extended_call *call)
{
	const char *name = reader_string(&call->reader);
	uint32_t max_rows = reader_int32(&call->reader);
	struct console_portal *portal;

	if (!reader_done(&call->reader))
		return extended_call_fail_as_malformed(call);
	if (max_rows > INT32_MAX)
		max_rows = 0; /* all rows */
	portal = prepared_find_portal(&call->extended->prepared, name);
	if (!portal)
		return extended_call_fail_without_portal(call, name);
	if (!portal->has_run)
		return run_portal(call, portal, max_rows);
	if (portal->query->shape.column_count == 0)
		return extended_call_fail(call, "55000", "portal \"%s\" cannot be run", name);
	return resume_portal(call, portal, max_rows);
}
