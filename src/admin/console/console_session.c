/* SPDX-License-Identifier: ISC */
#include "admin/console/console_session.h"

#include "admin/console/reply.h"
#include "session/link/close.h"
#include "wire/writer.h"

void console_session_notify(struct client_link *client, const char *text)
{
	struct stream *stream = &client->link.stream;
	struct buffer out = {0};
	bool lost;

	if (stream_is_blocked(stream))
		return;
	reply_notice(&out, text, NULL);
	lost = !out.failed &&
		stream_send_bytes(stream, out.data, out.length) == STREAM_SENT_NOT;
	buffer_free(&out);
	if (lost)
		client_close_for(client, REASON_UNEXPECTED_EOF);
}

void console_session_write_ready(const struct client_link *client, struct buffer *out)
{
	writer_ready(out, client->console->in_transaction ? READY_IN_TRANSACTION : READY_IDLE);
}

bool console_session_send(struct client_link *client, struct buffer *out)
{
	bool failed = out->failed;

	if (failed) {
		/* No memory for the answer; an error takes very little. */
		buffer_free(out);
		reply_error(out, client, "no mem");
		console_session_write_ready(client, out);
		failed = out->failed;
	}
	if (failed) {
		client_close_for(client, REASON_NO_MEMORY);
	} else {
		failed = !link_send(&client->link, out);
		if (failed)
			client_close_for(client, REASON_UNEXPECTED_EOF);
	}
	buffer_free(out);
	return !failed;
}

bool console_session_flush(struct console_session *session)
{
	if (session->out.failed) {
		client_close_for(session->client, REASON_NO_MEMORY);
		return false;
	}
	return session->out.length == 0 || console_session_send(session->client, &session->out);
}

void console_session_schedule(struct console_session *session)
{
	loop_defer_late(session->client->link.stream.loop, &session->task, session->run);
}

void console_session_read_or_pause(struct console_session *session)
{
	struct stream *stream = &session->client->link.stream;

	if (session->passing || session->has_ended || stream_is_blocked(stream) ||
		session->input.length >= CONSOLE_INPUT_MAX)
		stream_pause(stream);
	else
		stream_resume(stream);
}

bool console_session_is_showing(const struct console_session *session)
{
	return session->show || session->extended.running;
}
