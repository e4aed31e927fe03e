/* SPDX-License-Identifier: ISC */
#include "session/statements/suspect.h"

#include "model/custom_names.h"
#include "wire/reader.h"

/* Skip the codes of formats. Protocol: Bind. */
static void skip_formats(struct reader *reader)
{
	const unsigned count = reader_int16(reader);

	reader_bytes(reader, (size_t)count * 2);
}

/* set_config() may have its name from any of the values; those that are no name do no harm. */
static bool note_values(struct client_link *client, struct reader *reader)
{
	unsigned count;

	skip_formats(reader);
	count = reader_int16(reader);
	while (count-- > 0 && !reader->failed) {
		const uint32_t length = reader_int32(reader);
		const uint8_t *value;

		if (length == UINT32_MAX)
			continue;
		value = reader_bytes(reader, length);
		if (value && !custom_names_note(client, (const char *)value, length))
			return false;
	}
	return !reader->failed;
}

void suspect_bind_of(struct relay_run *run, const struct statement *statement, size_t offset)
{
	const struct suspicion_names names = custom_names_of(run->client);
	struct server_link *server = run->server;
	session_topics topics = statement->topics;

	if (server->link.pool->session_state == SESSION_STATE_IGNORE)
		return;
	if (topics & TOPIC_SETTINGS) {
		const uint8_t *body = run->at + FRAME_HEADER_SIZE + offset;
		const uint8_t *end = run->at + run->frame.total;
		struct reader reader;

		topics |= suspicion_of_text(
			(const char *)statement->content, statement->length, false, &names);
		end = end < run->end ? end : run->end;
		reader_init(&reader, body, body < end ? (size_t)(end - body) : 0);
		if (!note_values(run->client, &reader))
			topics |= TOPIC_UNREAD;
	}
	server->suspected |= topics;
}
