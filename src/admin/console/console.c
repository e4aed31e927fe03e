/* SPDX-License-Identifier: ISC */
#include "admin/console/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/console/dispatch.h"
#include "admin/console/extended.h"
#include "admin/console/reply.h"
#include "admin/console/waits.h"
#include "admin/show/show_stream.h"
#include "base/text.h"
#include "net/passing.h"
#include "session/link/close.h"
#include "session/work/control.h"
#include "wire/frame.h"
#include "wire/reader.h"
#include "wire/writer.h"

enum {
	/* Longest message that is gathered, and beyond which no more is read for the time being. */
	INPUT_MAX = 1024 * 1024,
	/* Answers of the extended protocol are gathered up to so many bytes. */
	OUTPUT_MAX = 64 * 1024,
};

/* Commands that came together may take so long before others have their turn. */
#define SLICE USEC_PER_MSEC

struct console_session {
	struct loop_task task; /* commands to be run; at the end, to be freed */
	struct client_link *client; /* NULL: it has closed */
	struct buffer input; /* received and not yet dealt with */
	struct buffer out; /* answers of the extended protocol that have not been sent */
	struct extended extended;
	struct show_stream *show; /* the rest of the answer to a simple query; NULL: none */
	bool busy; /* the extended protocol's answers come in order, and one is still to come */
	struct passing *passing; /* an answer with descriptors under way; NULL: none */
	bool counted; /* its first command has been */
	bool over; /* the process ends: no more commands */
	bool ended; /* the client is gone, but what it said before has not been dealt with */
};

/* --- sending ------------------------------------------------------------------------------ */

/* Send what was built and let go of it. False: the client is closed. */
static bool send_answer(struct client_link *client, struct buffer *out)
{
	enum stream_sent sent;
	bool failed = out->failed;

	if (failed) {
		/* The answer was too much for us; say so, which takes next to nothing. */
		buffer_free(out);
		reply_error(out, client, "no mem");
		writer_ready(out, READY_IDLE);
		failed = out->failed;
	}
	if (failed) {
		client_close_for(client, REASON_NO_MEMORY);
	} else {
		sent = stream_send_bytes(&client->link.stream, out->data, out->length);
		if (sent == STREAM_SENT_NOT)
			client_close_for(client, REASON_UNEXPECTED_EOF);
		failed = sent == STREAM_SENT_NOT;
	}
	buffer_free(out);
	return !failed;
}

/* --- descriptors -------------------------------------------------------------------------- */

static void schedule(struct console_session *session);
static void read_or_pause(struct console_session *session);

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
	read_or_pause(session);
	schedule(session);
}

/* The descriptor that a row names in its first column; -1: it is no row. */
static int descriptor_of(const uint8_t *message, const struct frame *frame)
{
	struct reader reader;
	char text[16] = "";
	const uint8_t *cell;
	uint32_t length;

	if (frame->type != PQ_DATA_ROW)
		return -1;
	reader_init(&reader, frame_body(message), frame_body_size(frame));
	reader_int16(&reader);
	length = reader_int32(&reader);
	cell = length < sizeof(text) ? reader_bytes(&reader, length) : NULL;
	if (!cell)
		return -1;
	memcpy(text, cell, length);
	return atoi(text);
}

/* Send an answer row by row, each with its descriptor. False: no memory. */
static bool pass(struct console_session *session, const struct buffer *out)
{
	struct stream *stream = &session->client->link.stream;
	struct frame frame;

	session->passing = passing_new(stream->loop, stream->fd, on_passed, session);
	if (!session->passing || out->failed)
		return false;
	for (size_t at = 0;
		frame_peek(out->data + at, out->length - at, UINT32_MAX, &frame) == FRAME_WHOLE;
		at += frame.total) {
		const uint8_t *message = out->data + at;

		if (!passing_add(session->passing, message, frame.total,
			    descriptor_of(message, &frame)))
			return false;
	}
	return passing_begin(session->passing);
}

/* --- welcome ------------------------------------------------------------------------------ */

/* `1.25.2/bouncer`, out of `PgBouncer 1.25.2 (…)`. */
static void report_version(struct buffer *out, const char *version)
{
	char text[32];
	const char *number = version + strcspn(version, "0123456789");
	const size_t length = strcspn(number, " ");

	snprintf(text, sizeof(text), "%.*s/bouncer", (int)length, number);
	writer_parameter_status(out, "server_version", text);
}

static void welcome(struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);
	const char *notice = registry->process->settings->login_notify_message;
	struct buffer out = {0};

	writer_authentication(&out, AUTH_OK, NULL, 0);
	report_version(&out, registry->process->version);
	writer_parameter_status(&out, "client_encoding", "UTF8");
	writer_parameter_status(&out, "server_encoding", "UTF8");
	writer_parameter_status(&out, "DateStyle", "ISO");
	writer_parameter_status(&out, "TimeZone", "GMT");
	writer_parameter_status(&out, "standard_conforming_strings", "on");
	writer_parameter_status(&out, "is_superuser", "on");
	if (client->link.parameters)
		parameters_report(client->link.parameters, &out);
	writer_backend_key(&out, client->key, client->key_length);
	if (notice && notice[0] != '\0')
		reply_notice(&out, notice, NULL);
	writer_ready(&out, READY_IDLE);
	send_answer(client, &out);
}

/* --- messages ----------------------------------------------------------------------------- */

/* The console's one transaction and query, counted before the command looks at the counters. */
static void count_first(struct console_session *session)
{
	struct totals *totals = &session->client->link.pool->stats.current;

	if (session->counted)
		return;
	session->counted = true;
	totals->transactions++;
	totals->queries++;
}

static void end_show(struct console_session *session)
{
	show_stream_free(session->show);
	session->show = NULL;
}

/* Send a slice of the answer to a simple query; without memory it ends with an error. */
static void send_slice(struct console_session *session, struct buffer *out, bool is_whole)
{
	if (is_whole || out->failed)
		end_show(session);
	if (is_whole)
		writer_ready(out, READY_IDLE);
	if (out->length > 0 || out->failed)
		send_answer(session->client, out);
}

static void run_query(struct console_session *session, const char *text)
{
	struct client_link *client = session->client;
	struct buffer out;
	enum command_end end;

	buffer_init_secret(&out); /* SHOW FDS tells keys */
	count_first(session);
	end = dispatch_run(client, text, NULL, &out, &session->show);
	session->over = end == COMMAND_EXITS;
	if (end == COMMAND_DONE && session->client) {
		writer_ready(&out, READY_IDLE);
		send_answer(client, &out);
	} else if (end == COMMAND_PASSES_FDS && session->client) {
		writer_ready(&out, READY_IDLE);
		if (!pass(session, &out))
			client_close_for(client, REASON_NO_MEMORY);
	} else if (end == COMMAND_CONTINUES) {
		waits_delay(client, true);
		send_slice(session, &out, false);
	}
	buffer_free(&out);
}

/* The answer that the extended protocol waited for has been sent: it may go on. */
static void on_answered(struct client_link *client, bool failed)
{
	struct console_session *session = client->console;

	session->busy = false;
	if (failed)
		extended_fail(&session->extended);
	schedule(session);
}

/* Send what the extended protocol has answered so far. False: the client is closed. */
static bool flush(struct console_session *session)
{
	if (session->out.failed) {
		client_close_for(session->client, REASON_NO_MEMORY);
		return false;
	}
	return session->out.length == 0 || send_answer(session->client, &session->out);
}

/* Is an answer to SHOW under way? What came behind it waits. */
static bool is_showing(const struct console_session *session)
{
	return session->show || session->extended.running;
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
	session->over = end == COMMAND_EXITS;
	session->busy = end == COMMAND_WAITS;
	if (session->busy)
		waits_answer_to(session->client, on_answered);
	if (end == COMMAND_CONTINUES)
		waits_delay(session->client, true);
	if (session->busy || is_showing(session) || session->out.length > OUTPUT_MAX)
		flush(session);
}

/* Build another slice of what the extended protocol answers, and send it. */
static void continue_portal_show(struct console_session *session)
{
	extended_continue(&session->extended, session->client, &session->out);
	flush(session);
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
	else if (!session->extended.is_skipping && flush(session)) {
		extended_interrupt(&session->extended);
		run_query(session, text);
	}
}

/* What a server would understand, but not we. */
static void refuse_message(struct client_link *client, const char *text)
{
	struct buffer out = {0};

	reply_error(&out, client, "%s", text);
	writer_ready(&out, READY_IDLE);
	if (send_answer(client, &out))
		client_close_for(client, REASON_CONSOLE_BAD_PACKET);
}

/* A message of another kind ends the session, whole or not. */
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

/*
 * Deal with the message at the front of these bytes. Returns its length; 0 when it is not there
 * yet, or the client has been closed.
 */
static size_t take_message(struct console_session *session, const uint8_t *bytes, size_t length)
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
		if (frame.type != PQ_QUERY && !extended_knows(frame.type))
			on_other(client, frame.type);
		else if (frame.total > INPUT_MAX)
			client_close_for(client, REASON_INCOMPLETE_PKT);
		return 0;
	case FRAME_WHOLE:
		break;
	}
	if (frame.type == PQ_QUERY)
		on_query(session, bytes, &frame);
	else if (extended_knows(frame.type))
		on_extended(session, bytes, &frame);
	else if (flush(session))
		on_other(client, frame.type);
	return frame.total;
}

/* --- turns -------------------------------------------------------------------------------- */

static void run_commands(struct loop_task *task);

static void schedule(struct console_session *session)
{
	loop_defer_late(session->client->link.stream.loop, &session->task, run_commands);
}

/*
 * Go on reading, or not: while the client does not take its answers, or has sent more commands
 * than could be run, the rest waits in the kernel.
 */
static void read_or_pause(struct console_session *session)
{
	struct stream *stream = &session->client->link.stream;

	if (session->passing || session->ended || stream_is_blocked(stream) ||
		session->input.length >= INPUT_MAX)
		stream_pause(stream);
	else
		stream_resume(stream);
}

/* Take whole messages from the input; returns how many bytes they were. */
static size_t run_input(struct console_session *session)
{
	const struct stream *stream = &session->client->link.stream;
	const struct buffer *input = &session->input;
	const usec_t end = clock_monotonic() + SLICE;
	size_t at = 0, taken;

	while (at < input->length && !stream_is_blocked(stream) && !session->passing &&
		!session->busy && !is_showing(session)) {
		if (clock_monotonic() > end) {
			schedule(session);
			break;
		}
		taken = take_message(session, input->data + at, input->length - at);
		at += taken;
		if (taken == 0 || !session->client || session->over)
			break;
	}
	return at;
}

/* Some of it may have come together with the last message of the login, and is held. */
static bool add_input(struct console_session *session, const void *data, size_t length)
{
	struct link *link = &session->client->link;

	if (!buffer_append(&session->input, link->held, link->held_length) ||
		!buffer_append(&session->input, data, length)) {
		client_close_for(session->client, REASON_NO_MEMORY);
		return false;
	}
	link_drop_held(link);
	return true;
}

/* While nothing may move, only the process that has asked for it has the word. */
static bool must_wait(const struct console_session *session)
{
	return link_registry(&session->client->link)->process->still &&
		session->client->link.stream.frozen;
}

static void continue_query_show(struct console_session *session)
{
	struct buffer out;
	bool is_whole;

	buffer_init_secret(&out); /* as in run_query() */
	is_whole = show_stream_continue(session->show, &out);
	send_slice(session, &out, is_whole);
	buffer_free(&out);
}

/* The next slice of an answer under way. False: the client is closed. */
static bool continue_show(struct console_session *session)
{
	if (!is_showing(session) || stream_is_blocked(&session->client->link.stream))
		return true;
	if (session->extended.running)
		continue_portal_show(session);
	else
		continue_query_show(session);
	if (session->client && !is_showing(session))
		waits_delay(session->client, false);
	return session->client != NULL;
}

static void run_commands(struct loop_task *task)
{
	struct console_session *session = (struct console_session *)task;
	size_t taken;

	if (session->over || must_wait(session) || !add_input(session, NULL, 0) ||
		!continue_show(session))
		return;
	taken = run_input(session);
	if (!session->client || session->over || !flush(session))
		return;
	/* One that does not read is told more when it has read, which comes as an event. */
	if (is_showing(session) && !stream_is_blocked(&session->client->link.stream))
		schedule(session);
	if (session->ended && !is_showing(session) &&
		(taken == 0 || taken == session->input.length)) {
		client_close_for(session->client, REASON_CLIENT_UNEXPECTED_EOF);
		return;
	}
	if (taken == session->input.length)
		buffer_free(&session->input); /* an idle console owns no memory for it */
	else
		buffer_consume(&session->input, taken);
	read_or_pause(session);
}

/* --- what the session floor tells us ------------------------------------------------------ */

static void on_begin(struct client_link *client)
{
	struct console_session *session = calloc(1, sizeof(*session));

	client->console = session;
	if (!session) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	session->client = client;
	buffer_init_secret(&session->out);
	schedule(session);
	welcome(client);
}

static void on_readable(struct client_link *client)
{
	struct console_session *session = client->console;
	struct loop *loop = client->link.stream.loop;
	uint8_t *area = loop->receive + LOOP_RECEIVE_HEADROOM;
	const ssize_t got = stream_receive(&client->link.stream, area, LOOP_RECEIVE_SIZE);

	if (got == STREAM_END && (session->input.length > 0 || is_showing(session)) &&
		!session->ended) {
		/* Its last words came with its end, and may be a goodbye. */
		session->ended = true;
		stream_pause(&client->link.stream);
		schedule(session);
		return;
	}
	if (got == STREAM_END || got == STREAM_BROKEN) {
		client_close_for(client, REASON_CLIENT_UNEXPECTED_EOF);
		return;
	}
	if (got > 0) {
		client->link.request_time = loop_now(loop);
		if (!add_input(session, area, (size_t)got))
			return;
	}
	read_or_pause(session);
	schedule(session);
}

/* As RESUME; PgBouncer's way to interrupt a PAUSE that would not end. */
static void on_canceled(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);

	if (!waits_has(client))
		link_log(&client->link, LEVEL_WARNING,
			"admin cancel request for non-waiting client?");
	waits_cancel(client);
	if (registry->process->operation != OPERATION_RUNNING &&
		registry->process->shutdown == SHUTDOWN_NONE) {
		control_resume(registry, NULL);
		waits_look(registry);
	}
}

static void free_session(struct loop_task *task)
{
	struct console_session *session = (struct console_session *)task;

	buffer_free(&session->input);
	buffer_free(&session->out);
	extended_free(&session->extended);
	free(session);
}

/* The client may be closed by its own command: the session lives on to the end of the turn. */
static void on_closed(struct client_link *client)
{
	struct console_session *session = client->console;
	struct loop *loop = client->link.stream.loop;

	if (!session)
		return;
	client->console = NULL;
	session->client = NULL;
	end_passing(session);
	end_show(session);
	waits_drop(client);
	loop_forget(loop, &session->task);
	loop_defer(loop, &session->task, free_session);
}

const struct console_hooks console_hooks = {
	.begin = on_begin,
	.readable = on_readable,
	.canceled = on_canceled,
	.closed = on_closed,
};

void console_resume(struct registry *registry)
{
	struct link *link;

	TAILQ_FOREACH (link, &registry->console_pool->clients, place) {
		if (client_of(link)->console)
			schedule(client_of(link)->console);
	}
}

void console_tick(struct registry *registry)
{
	waits_look(registry);
}
