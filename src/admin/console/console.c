/* SPDX-License-Identifier: ISC */
#include "admin/console/console.h"

#include <stdlib.h>

#include "admin/console/console_messages.h"
#include "admin/console/console_session.h"
#include "admin/console/console_welcome.h"
#include "admin/console/shutdown_notices.h"
#include "admin/console/waits.h"
#include "session/link/close.h"
#include "session/serving/control.h"

/* How long the commands of one console run before other work of the loop has its turn. */
#define SLICE USEC_PER_MSEC

/* --- turns -------------------------------------------------------------------------------- */

/* Handle complete messages of the input. Returns how many bytes they had. */
static size_t run_input(struct console_session *session)
{
	const struct stream *stream = &session->client->link.stream;
	const struct buffer *input = &session->input;
	const usec_t end = clock_monotonic() + SLICE;
	size_t at = 0, taken;

	while (at < input->length && !stream_is_blocked(stream) && !session->passing &&
		!session->is_waiting && !console_session_is_showing(session)) {
		if (clock_monotonic() > end) {
			console_session_schedule(session);
			break;
		}
		taken = console_messages_take(session, input->data + at, input->length - at);
		at += taken;
		if (taken == 0 || !session->client || session->is_over)
			break;
	}
	return at;
}

/* Add to the input, behind bytes that came with the last message of the login and were held. */
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

/* During a takeover only the console of the process that takes over is served. */
static bool must_wait(const struct console_session *session)
{
	return link_registry(&session->client->link)->process->still &&
		session->client->link.stream.frozen;
}

static void run_session(struct console_session *session)
{
	size_t taken;

	if (session->is_over || must_wait(session) || !add_input(session, NULL, 0) ||
		!console_messages_continue(session))
		return;
	taken = run_input(session);
	if (!session->client || session->is_over || !console_session_flush(session))
		return;
	/*
	 * If the client does not read, the answer continues with the next event of its socket.
	 */
	if (console_session_is_showing(session) &&
		!stream_is_blocked(&session->client->link.stream))
		console_session_schedule(session);
	if (session->has_ended && !console_session_is_showing(session) &&
		(taken == 0 || taken == session->input.length)) {
		client_close_for(session->client, REASON_CLIENT_UNEXPECTED_EOF);
		return;
	}
	if (taken == session->input.length)
		buffer_free(&session->input); /* an idle console has no input buffer */
	else
		buffer_consume(&session->input, taken);
	console_session_read_or_pause(session);
}

/* Commands concern all workers. */
static void run_commands(struct loop_task *task)
{
	struct console_session *session = (struct console_session *)task;
	struct process *process = session->process;

	process_stop_others(process);
	run_session(session);
	process_let_others_run(process);
}

/* --- hooks of the session floor ----------------------------------------------------------- */

static void on_begin(struct client_link *client)
{
	struct console_session *session = calloc(1, sizeof(*session));
	struct buffer out = {0};

	client->console = session;
	if (!session) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	session->client = client;
	session->process = link_registry(&client->link)->process;
	session->run = run_commands;
	buffer_init_secret(&session->out);
	console_session_schedule(session);
	console_welcome_write(client, &out);
	console_session_send(client, &out);
}

static void on_readable(struct client_link *client)
{
	struct console_session *session = client->console;
	struct loop *loop = client->link.stream.loop;
	uint8_t *area = loop->receive + LOOP_RECEIVE_HEADROOM;
	const ssize_t got = stream_receive(&client->link.stream, area, LOOP_RECEIVE_SIZE);

	if (got == STREAM_END &&
		(session->input.length > 0 || console_session_is_showing(session)) &&
		!session->has_ended) {
		/* Process the last messages first; one of them may be Terminate. */
		session->has_ended = true;
		stream_pause(&client->link.stream);
		console_session_schedule(session);
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
	console_session_read_or_pause(session);
	console_session_schedule(session);
}

/*
 * Resume everything, as PgBouncer does: a cancel request interrupts a PAUSE that does not end.
 */
static void on_canceled(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);

	process_stop_others(registry->process);
	if (!waits_has(client))
		link_log(&client->link, LEVEL_WARNING,
			"admin cancel request for non-waiting client?");
	waits_cancel(client);
	if (registry->process->operation != OPERATION_RUNNING &&
		registry->process->shutdown == SHUTDOWN_NONE) {
		control_resume(registry, NULL);
		waits_look(registry);
	}
	process_let_others_run(registry->process);
}

static void free_session(struct loop_task *task)
{
	struct console_session *session = (struct console_session *)task;

	buffer_free(&session->input);
	buffer_free(&session->out);
	extended_free(&session->extended);
	free(session);
}

/* A command may close its own client: free the session at the end of the turn. */
static void on_closed(struct client_link *client)
{
	struct console_session *session = client->console;
	struct loop *loop = client->link.stream.loop;

	if (!session)
		return;
	client->console = NULL;
	session->client = NULL;
	console_messages_abort(session);
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

/* --- for the daemon ----------------------------------------------------------------------- */

void console_resume(struct registry *registry)
{
	struct link *link;

	TAILQ_FOREACH (link, &registry->console_pool->clients, place) {
		if (client_of(link)->console)
			console_session_schedule(client_of(link)->console);
	}
}

void console_tick(struct registry *registry)
{
	waits_look(registry);
	shutdown_notices_send(registry);
}
