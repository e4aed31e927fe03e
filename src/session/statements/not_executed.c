/* SPDX-License-Identifier: ISC */
#include "session/statements/not_executed.h"

#include <string.h>
#include <strings.h>

#include "model/client_statements.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/reader.h"

/* May the text end a transaction? SQL is not parsed: any text that contains such a word may. */
static bool may_end_transaction(const uint8_t *text, size_t length)
{
	static const char *const commands[] = {"COMMIT", "ROLLBACK", "ABORT", "END", "PREPARE"};

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		const size_t size = strlen(commands[i]);

		for (size_t at = 0; at + size <= length; at++) {
			if (strncasecmp((const char *)text + at, commands[i], size) == 0)
				return true;
		}
	}
	return false;
}

/* Returns the statement of a Bind; NULL: it is not tracked, or the message is malformed. */
static const struct statement *statement_of_bind(
	const struct client_link *client, const uint8_t *body, size_t length)
{
	const struct client_statement *entry = NULL;
	struct reader reader;
	const char *name;

	reader_init(&reader, body, length);
	reader_string(&reader);
	name = reader_string(&reader);
	if (reader.failed)
		return NULL;
	if (name[0] == '\0')
		return client->unnamed;
	if (client->statements)
		entry = client_statements_find(client->statements, name, strlen(name) + 1);
	return entry ? entry->statement : NULL;
}

static bool is_not_executed(
	const struct client_link *client, uint8_t type, const uint8_t *body, size_t length)
{
	const struct statement *statement;

	switch (type) {
	case PQ_QUERY:
	case PQ_PARSE:
		return !may_end_transaction(body, length);
	case PQ_BIND:
		statement = statement_of_bind(client, body, length);
		return statement && !may_end_transaction(statement->content, statement->length);
	default:
		return true;
	}
}

bool not_executed_is_certain(const struct client_link *client, const struct buffer *messages)
{
	size_t at = 0;
	struct frame frame;

	while (at < messages->length) {
		const uint8_t *message = messages->data + at;

		if (frame_peek(message, messages->length - at, UINT32_MAX, &frame) !=
				FRAME_WHOLE ||
			!is_not_executed(client, frame.type, frame_body(message),
				frame_body_size(&frame)))
			return false;
		at += frame.total;
	}
	return true;
}
