/* SPDX-License-Identifier: ISC */
#include "session/slow/captured_text.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/client_statements.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/reader.h"

/* Bytes of one parameter that are shown. */
enum { VALUE_MAX = 64 };

/* --- the text ----------------------------------------------------------------------------- */

static size_t text_limit(const struct client_link *client)
{
	return (size_t)link_registry(&client->link)->process->settings->log_statement_length;
}

/*
 * A text with a NUL, as far as it has arrived; other fields may follow. A short one is copied with
 * these, since looking for the NUL can wait until the query has been slow.
 */
static void note_text(struct watched_query *query, const struct client_link *client,
	const char *text, size_t length)
{
	const size_t limit = text_limit(client);
	const char *nul;

	query->has_text = true;
	if (length <= limit) {
		memcpy(query->head, text, length);
		query->head_length = (uint32_t)length;
		return;
	}
	nul = memchr(text, 0, length);
	query->head_length = (uint32_t)limit;
	memcpy(query->head, text, limit);
	if (!nul)
		return;
	length = (size_t)(nul - text);
	query->text_length = length;
	query->tail_length = length < WATCHED_TAIL_SIZE ? (uint32_t)length : WATCHED_TAIL_SIZE;
	memcpy(query->tail, nul - query->tail_length, query->tail_length);
}

static void note_parse(
	struct watched_query *query, const struct client_link *client, struct reader *reader)
{
	const char *name = reader_string(reader);

	if (query->has_text || !name)
		return;
	text_copy(query->name, sizeof(query->name), name);
	note_text(query, client, (const char *)reader->at, reader_left(reader));
}

/* --- a Bind, a Describe ------------------------------------------------------------------ */

static struct statement *bound_statement(
	const struct client_link *client, const char *name, size_t size)
{
	struct client_statement *entry;

	if (name[0] == '\0')
		return client->unnamed;
	if (!client->statements)
		return NULL;
	entry = client_statements_find(client->statements, name, size);
	return entry ? entry->statement : NULL;
}

static void note_statement(
	struct watched_query *query, const struct client_link *client, const char *name)
{
	const size_t length = strlen(name);
	struct statement *statement = bound_statement(client, name, length + 1);

	query->has_text = true;
	text_copy(query->name, sizeof(query->name), name);
	if (statement)
		query->statement = statement_ref(statement);
}

/* Describe of a statement. */
static void note_subject(
	struct watched_query *query, const struct client_link *client, struct reader *reader)
{
	const char *name = reader_string(reader);

	if (name && !query->has_text)
		note_statement(query, client, name);
}

static inline bool logs_parameters(const struct client_link *client)
{
	return link_registry(&client->link)->process->settings->log_parameters;
}

static void note_bind(struct watched_query *query, const struct client_link *client,
	struct reader *reader, bool whole)
{
	const char *name;

	reader_string(reader); /* the portal */
	name = reader_string(reader);
	if (!name)
		return;
	if (!query->has_text)
		note_statement(query, client, name);
	if (!logs_parameters(client) || !whole || query->has_parameters)
		return;
	query->has_parameters = true;
	captured_text_parameters(
		query->parameters, sizeof(query->parameters), reader->at, reader_left(reader));
}

/* --- parameters --------------------------------------------------------------------------- */

/* Protocol: "Message Formats", Bind: no formats is text for all, one is for all. */
static bool is_binary(const uint8_t *formats, unsigned count, unsigned index)
{
	if (count == 0)
		return false;
	return formats[2 * (count == 1 ? 0 : index) + 1] == 1;
}

static void show_value(char *out, size_t size, const uint8_t *value, size_t length, bool binary)
{
	const size_t shown = length < VALUE_MAX ? length : VALUE_MAX;
	const char *rest = shown < length ? "..." : "";
	char text[4 * VALUE_MAX + 1];

	if (binary) {
		text_hex(text, sizeof(text), value, shown);
		snprintf(out, size, "\\x%s%s", text, rest);
	} else {
		text_escape(text, sizeof(text), value, shown);
		snprintf(out, size, "'%s'%s", text, rest);
	}
}

void captured_text_parameters(char *out, size_t size, const uint8_t *values, size_t length)
{
	char value[4 * VALUE_MAX + 16];
	const uint8_t *formats;
	struct reader reader;
	unsigned format_count, count;
	size_t used = 0;

	out[0] = '\0';
	reader_init(&reader, values, length);
	format_count = reader_int16(&reader);
	formats = reader_bytes(&reader, 2 * (size_t)format_count);
	count = reader_int16(&reader);
	if (!formats || (format_count > 1 && format_count != count))
		return;
	for (unsigned i = 0; i < count; i++) {
		const uint32_t bytes = reader_int32(&reader);
		const uint8_t *at = bytes == UINT32_MAX ? NULL : reader_bytes(&reader, bytes);
		int written;

		if (reader.failed)
			return;
		if (at)
			show_value(value, sizeof(value), at, bytes,
				is_binary(formats, format_count, i));
		else
			snprintf(value, sizeof(value), "NULL");
		written = snprintf(
			out + used, size - used, "%s$%u = %s", i > 0 ? ", " : "", i + 1, value);
		if (written < 0 || (size_t)written >= size - used) {
			/* A value that does not fit is left out. */
			out[used] = '\0';
			return;
		}
		used += (size_t)written;
	}
}

/* --- any message -------------------------------------------------------------------------- */

void captured_text_note(struct watched_query *query, const struct client_link *client,
	const struct captured_message *message)
{
	struct reader reader;

	reader_init(&reader, message->body, message->length);
	switch (message->type) {
	case PQ_QUERY:
		if (!query->has_text)
			note_text(query, client, (const char *)message->body, message->length);
		break;
	case PQ_PARSE:
		note_parse(query, client, &reader);
		break;
	case PQ_DESCRIBE:
		if (reader_byte(&reader) == 'S')
			note_subject(query, client, &reader);
		break;
	case PQ_BIND:
		note_bind(query, client, &reader, message->whole);
		break;
	default:
		break;
	}
}

/* Note the message at `at`, which has bytes up to `until`. Returns the next one; NULL: none is whole. */
static const uint8_t *note_message(struct watched_query *query,
	const struct client_link *client, const uint8_t *at, const uint8_t *until)
{
	const size_t there = (size_t)(until - at);
	struct frame frame;
	const enum frame_result result = frame_peek(at, there, UINT32_MAX, &frame);
	const bool whole = result == FRAME_WHOLE;

	if (!whole && result != FRAME_PARTIAL)
		return NULL;
	captured_text_note(query, client,
		&(struct captured_message){
			.type = frame.type,
			.body = frame_body(at),
			.length = (whole ? frame.total : there) - FRAME_HEADER_SIZE,
			.whole = whole,
		});
	return whole ? at + frame.total : NULL;
}

void captured_text_find(struct watched_query *query, const struct client_link *client,
	const uint8_t *from, const uint8_t *until)
{
	const size_t length = (size_t)(until - from) - FRAME_HEADER_SIZE;

	/* All that has arrived may be the rest of a message. */
	if (from >= until)
		return;
	/* The usual case: a short Query. Its text has a NUL, so what follows does not matter. */
	if (*from == PQ_QUERY && length <= text_limit(client)) {
		query->has_text = true;
		query->head_length = (uint32_t)length;
		memcpy(query->head, from + FRAME_HEADER_SIZE, length);
		return;
	}
	do {
		from = note_message(query, client, from, until);
	} while (from && from < until && !query->has_text);
}

/* Note the statement of a Bind for the unnamed portal if the client has used it last. */
static void note_repeated(struct watched_query *query, const struct client_link *client,
	const uint8_t *bind, const uint8_t *until)
{
	const uint8_t *name = bind + FRAME_HEADER_SIZE + 1;
	const struct client_statements *statements = client->statements;
	struct client_statement *entry;

	if (!statements || name >= until || name[-1] != '\0')
		return;
	entry = client_statements_repeated(statements, name, (size_t)(until - name));
	if (!entry)
		return;
	query->has_text = true;
	query->statement = statement_ref(entry->statement);
	if (statements->recent_size <= sizeof(query->name))
		memcpy(query->name, name, statements->recent_size);
	else
		text_copy(query->name, sizeof(query->name), (const char *)name);
}

void captured_text_bind(struct watched_query *query, const struct client_link *client,
	const uint8_t *from, const uint8_t *bind, const uint8_t *until)
{
	if (!query->has_text && from < bind)
		captured_text_find(query, client, from, bind);
	if (!query->has_text)
		note_repeated(query, client, bind, until);
	if (!query->has_text || logs_parameters(client))
		note_message(query, client, bind, until);
}
