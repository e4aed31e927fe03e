/* SPDX-License-Identifier: ISC */
#include "support/fakes/scripted_stream.h"

#include <bsd/sys/queue.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/check.h"
#include "net/stream_backlog.h"

enum script_end { SCRIPT_GOES_ON, SCRIPT_ENDS, SCRIPT_BREAKS };

struct script {
	LIST_ENTRY(script) entry;
	struct stream *stream; /* NULL: closed */
	struct buffer input, output;
	enum script_end end;
	size_t room, sends;
	bool hang_up_reported;
	bool connecting; /* scripted_connect() until scripted_connected() */
};

static LIST_HEAD(, script) scripts = LIST_HEAD_INITIALIZER(scripts);

struct script *scripted_of(const struct stream *stream)
{
	struct script *script;

	LIST_FOREACH(script, &scripts, entry)
	if (script->stream == stream)
		return script;
	return NULL;
}

static ssize_t scripted_receive(struct stream *stream, void *data, size_t size)
{
	struct script *script = scripted_of(stream);
	const size_t length = script->input.length < size ? script->input.length : size;

	if (length > 0) {
		memcpy(data, script->input.data, length);
		buffer_consume(&script->input, length);
		return (ssize_t)length;
	}
	switch (script->end) {
	case SCRIPT_GOES_ON:
		return STREAM_AGAIN;
	case SCRIPT_ENDS:
		return STREAM_END;
	case SCRIPT_BREAKS:
		break;
	}
	return STREAM_BROKEN;
}

static ssize_t scripted_send(struct stream *stream, const struct iovec *pieces, int count)
{
	struct script *script = scripted_of(stream);
	size_t wanted = 0, taken = 0;

	script->sends++;
	if (script->end == SCRIPT_BREAKS)
		return STREAM_BROKEN;
	for (int i = 0; i < count; i++) {
		const size_t left = script->room - taken;
		const size_t length = pieces[i].iov_len < left ? pieces[i].iov_len : left;

		wanted += pieces[i].iov_len;
		CHECK(length == 0 ||
			buffer_append(&script->output, pieces[i].iov_base, length));
		taken += length;
	}
	if (script->room != SCRIPTED_ANY)
		script->room -= taken;
	return taken == 0 && wanted > 0 ? STREAM_AGAIN : (ssize_t)taken;
}

static void scripted_close(struct stream *stream)
{
	scripted_of(stream)->stream = NULL;
}

static const struct stream_kind stream_scripted = {
	scripted_receive, scripted_send, scripted_close};

struct script *scripted_open(
	struct stream *stream, struct loop *loop, const struct stream_handlers *handlers)
{
	struct script *script = calloc(1, sizeof(*script));

	CHECK(script);
	CHECK(!scripted_of(stream));
	*stream = (struct stream){
		.loop = loop,
		.kind = &stream_scripted,
		.handlers = handlers,
		.fd = -1,
	};
	script->stream = stream;
	script->room = SCRIPTED_ANY;
	LIST_INSERT_HEAD(&scripts, script, entry);
	return script;
}

struct script *scripted_connect(
	struct stream *stream, struct loop *loop, const struct stream_handlers *handlers)
{
	struct script *script = scripted_open(stream, loop, handlers);

	script->connecting = true;
	return script;
}

void scripted_free(struct script *script)
{
	if (script->stream)
		stream_close(script->stream);
	LIST_REMOVE(script, entry);
	buffer_free(&script->input);
	buffer_free(&script->output);
	free(script);
}

void scripted_moved(struct script *script, struct stream *stream)
{
	CHECK(script->stream);
	script->stream = stream;
}

void scripted_connected(struct script *script, int error)
{
	CHECK(script->stream && script->connecting);
	script->connecting = false;
	script->stream->handlers->connected(script->stream, error);
}

void scripted_feed(struct script *script, const void *data, size_t length)
{
	CHECK(buffer_append(&script->input, data, length));
}

void scripted_end(struct script *script)
{
	script->end = SCRIPT_ENDS;
}

void scripted_break(struct script *script)
{
	script->end = SCRIPT_BREAKS;
}

static bool report_hang_up(struct script *script)
{
	struct stream *stream = script->stream;

	if (script->end == SCRIPT_GOES_ON || script->hang_up_reported ||
		!stream->handlers->hung_up)
		return false;
	script->hang_up_reported = true;
	stream->handlers->hung_up(stream);
	return true;
}

bool scripted_run(struct script *script)
{
	struct stream *stream = script->stream;

	if (!stream || script->connecting)
		return false;
	if (stream->paused)
		return report_hang_up(script);
	if (script->input.length == 0 && script->end == SCRIPT_GOES_ON)
		return false;
	stream->handlers->readable(stream);
	return true;
}

void scripted_run_all(struct script *script)
{
	while (scripted_run(script))
		;
}

void scripted_allow(struct script *script, size_t room)
{
	script->room = room;
	if (room > 0 && script->stream && stream_is_blocked(script->stream))
		stream_write_backlog(script->stream);
}

const uint8_t *scripted_output(const struct script *script, size_t *length)
{
	*length = script->output.length;
	return script->output.data;
}

void scripted_forget_output(struct script *script)
{
	buffer_clear(&script->output);
}

size_t scripted_sends(const struct script *script)
{
	return script->sends;
}

size_t scripted_unread(const struct script *script)
{
	return script->input.length;
}

bool scripted_is_closed(const struct script *script)
{
	return script->stream == NULL;
}
