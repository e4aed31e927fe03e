/* SPDX-License-Identifier: ISC */
#include "admin/console/console_messages.h"

#include <stdio.h>

#include "admin/console/dispatch.h"
#include "admin/console/pass_rows.h"
#include "admin/console/reply.h"
#include "admin/console/waits.h"
#include "base/text.h"
#include "model/registry.h"
#include "session/link/close.h"
#include "wire/frame.h"
#include "wire/reader.h"
#include "wire/writer.h"

/* Answers of the extended protocol are collected up to so many bytes before they are sent. */
enum { OUTPUT_MAX = 64 * 1024 };

/* Count one transaction and one query per console, before the command reads the counters. */
static void count_first(struct console_session *session)
{
	struct totals *totals = &session->client->link.pool->stats.current;

	if (session->is_counted)
		return;
	session->is_counted = true;
	totals->transactions++;
	totals->queries++;
}

/* --- descriptors -------------------------------------------------------------------------- */

static void end_passing(struct console_session *session)
{
	passing_free(session->passing);
	session->passing = NULL;
}

static void on_passed(void *context, bool sent)
{
	struct console_session *session = context;

	end_passing(session);
	if (!sent) {
		client_close_for(session->client, REASON_UNEXPECTED_EOF);
		return;
	}
	console_session_read_or_pause(session);
	console_session_schedule(session);
}

static void pass(struct console_session *session, const struct buffer *out)
{
	struct client_link *client = session->client;

	session->passing = pass_rows_begin(&client->link.stream, out, on_passed, session);
	if (!session->passing)
		client_close_for(client, REASON_NO_MEMORY);
}

/* --- simple queries ----------------------------------------------------------------------- */

static void end_show(struct console_session *session)
{
	show_stream_free(session->show);
	session->show = NULL;
}

/* Send a slice of the answer; if it has failed the answer ends with an error. */
static void send_slice(struct console_session *session, struct buffer *out, bool is_last)
{
	if (is_last || out->failed)
		end_show(session);
	if (is_last)
		console_session_write_ready(session->client, out);
	if (out->length > 0 || out->failed)
		console_session_send(session->client, out);
}

static void run_query(struct console_session *session, const char *text)
{
	struct client_link *client = session->client;
	struct buffer out;
	enum command_end end;

	buffer_init_secret(&out); /* SHOW FDS has keys */
	count_first(session);
	end = dispatch_run(client, text, NULL, &out, &session->show);
	session->is_over = end == COMMAND_EXITS;
	if (!session->in_transaction)
		prepared_drop_portals(&session->extended.prepared);
	if (end == COMMAND_DONE && session->client) {
		console_session_write_ready(client, &out);
		console_session_send(client, &out);
	} else if (end == COMMAND_PASSES_FDS && session->client) {
		console_session_write_ready(client, &out);
		pass(session, &out);
	} else if (end == COMMAND_CONTINUES) {
		waits_delay(client, true);
		send_slice(session, &out, false);
	}
	buffer_free(&out);
}

static void on_query(
	struct console_session *session, const uint8_t *message, const struct frame *frame)
{
	struct client_link *client = session->client;
	struct reader reader;
	const char *text;

	reader_init(&reader, frame_body(message), frame_body_size(frame));
	text = reader_string(&reader);
	if (!reader_done(&reader))
		client_close_for(client, REASON_INCOMPLETE_PKT);
	else if (link_registry(&client->link)->process->settings->disable_pqexec)
		client_close_for(client, REASON_PQEXEC_DISALLOWED);
	else if (!session->extended.is_skipping && console_session_flush(session)) {
		extended_interrupt(&session->extended, session->in_transaction);
		run_query(session, text);
	}
}

static void continue_query(struct console_session *session)
{
	struct buffer out;
	bool is_last;

	buffer_init_secret(&out); /* as in run_query() */
	is_last = show_stream_continue(session->show, &out);
	send_slice(session, &out, is_last);
	buffer_free(&out);
}

/* --- the extended protocol ---------------------------------------------------------------- */

/* admin/console/waits has sent the answer that the next messages waited for. */
static void on_answered(struct client_link *client, bool failed)
{
	struct console_session *session = client->console;

	session->is_waiting = false;
	if (failed)
		extended_fail(&session->extended);
	console_session_schedule(session);
}

static void on_extended(
	struct console_session *session, const uint8_t *message, const struct frame *frame)
{
	enum command_end end;

	if (frame->type == PQ_EXECUTE)
		count_first(session);
	end = extended_take(&session->extended, session->client, frame->type,
		frame_body(message), frame_body_size(frame), &session->out);
	if (!session->client)
		return;
	session->is_over = end == COMMAND_EXITS;
	session->is_waiting = end == COMMAND_WAITS;
	if (session->is_waiting)
		waits_answer_to(session->client, on_answered);
	if (end == COMMAND_CONTINUES)
		waits_delay(session->client, true);
	if (session->is_waiting || console_session_is_showing(session) ||
		session->out.length > OUTPUT_MAX)
		console_session_flush(session);
}

static void continue_portal(struct console_session *session)
{
	extended_continue(&session->extended, session->client, &session->out);
	console_session_flush(session);
}

/* --- other messages ----------------------------------------------------------------------- */

/* A message that a PostgreSQL server would accept and the console does not. */
static void refuse_message(struct client_link *client, const char *text)
{
	struct buffer out = {0};

	reply_error(&out, client, "%s", text);
	console_session_write_ready(client, &out);
	if (console_session_send(client, &out))
		client_close_for(client, REASON_CONSOLE_BAD_PACKET);
}

/* Any other message ends the session, even if it is incomplete. */
static void on_other(struct client_link *client, uint8_t type)
{
	char text[64];

	switch (type) {
	case PQ_TERMINATE:
		client_close_for(client, REASON_CLOSE_REQ);
		break;
	case PQ_FUNCTION_CALL:
	case PQ_COPY_DATA:
	case PQ_COPY_DONE:
	case PQ_COPY_FAIL:
		snprintf(text, sizeof(text), "unsupported packet type for admin console: %d",
			type);
		refuse_message(client, text);
		break;
	default:
		client_close_for(client, REASON_UNKNOWN_PKT);
		break;
	}
}

static void refuse_header(struct client_link *client, const uint8_t *header, size_t length)
{
	char hex[17];
	struct failure failure;

	text_hex(hex, sizeof(hex), header, length < 8 ? length : 8);
	failure = failure_of(REASON_BAD_PACKET_HEADER, hex);
	client_close(client, &failure);
}

size_t console_messages_take(
	struct console_session *session, const uint8_t *bytes, size_t length)
{
	struct client_link *client = session->client;
	const uint32_t max = link_registry(&client->link)->process->settings->max_packet_size;
	struct frame frame;

	switch (frame_peek(bytes, length, max, &frame)) {
	case FRAME_SHORT:
		return 0;
	case FRAME_MALFORMED:
		refuse_header(client, bytes, length);
		return 0;
	case FRAME_PARTIAL:
		if (frame.type != PQ_QUERY && !extended_handles(frame.type))
			on_other(client, frame.type);
		else if (frame.total > CONSOLE_INPUT_MAX)
			client_close_for(client, REASON_INCOMPLETE_PKT);
		return 0;
	case FRAME_WHOLE:
		break;
	}
	if (frame.type == PQ_QUERY)
		on_query(session, bytes, &frame);
	else if (extended_handles(frame.type))
		on_extended(session, bytes, &frame);
	else if (console_session_flush(session))
		on_other(client, frame.type);
	return frame.total;
}

/* --- the answer being built --------------------------------------------------------------- */

bool console_messages_continue(struct console_session *session)
{
	if (!console_session_is_showing(session) ||
		stream_is_blocked(&session->client->link.stream))
		return true;
	if (session->extended.running)
		continue_portal(session);
	else
		continue_query(session);
	if (session->client && !console_session_is_showing(session))
		waits_delay(session->client, false);
	return session->client != NULL;
}

void console_messages_abort(struct console_session *session)
{
	end_passing(session);
	end_show(session);
}
