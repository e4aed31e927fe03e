/* SPDX-License-Identifier: ISC */
#include "session/statements/suspect.h"

#include <string.h>

#include "model/state/custom_names.h"
#include "model/state/watched_text.h"
#include "session/link/client_lexis.h"
#include "wire/reader.h"
#include "wire/sql_scanner.h"

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

/* The same for the strings among the arguments of an EXECUTE. */
static bool note_arguments(struct relay_run *run, const char *arguments, size_t length)
{
	const struct session_lexis lexis = client_lexis(run->client);
	struct sql_scanner scanner;
	struct buffer text = {0};
	enum sql_token token;
	bool good = true;

	sql_scanner_init(&scanner, arguments, length, lexis.escapes);
	while (good && (token = sql_scanner_next(&scanner, &text)) != SQL_END) {
		if (token == SQL_STRING)
			good = custom_names_note(
				run->client, (const char *)text.data, text.length - 1);
		else
			good = token != SQL_UNKNOWN && token != SQL_ESCAPED;
	}
	buffer_free(&text);
	return good;
}

/* Note the names of custom settings in the statement's text. Returns its topics. */
static session_topics note_text(struct relay_run *run, const struct statement *statement)
{
	const struct suspicion_names names = custom_names_of(run->client);

	return statement->topics |
		suspicion_of_text(
			(const char *)statement->content, statement->length, false, &names);
}

static bool is_asked(const struct relay_run *run)
{
	return run->server->link.pool->session_state != SESSION_STATE_IGNORE;
}

static void look_for_calls(const struct relay_run *run, struct statement *statement)
{
	const struct pool *pool = run->server->link.pool;
	const char *text = statement_text(statement);

	if (statement->functions == pool->database->functions.version)
		return;
	statement->functions = pool->database->functions.version;
	statement->topics = statement->words | watched_text_topics(pool, text, strlen(text));
}

void suspect_bound(struct relay_run *run, struct statement *statement)
{
	if (statement)
		look_for_calls(run, statement);
	else
		run->server->suspected |= TOPICS_UNSEEN;
}

void suspect_bind_of(struct relay_run *run, const struct statement *statement, size_t offset)
{
	session_topics topics = statement->topics;

	if (!is_asked(run))
		return;
	if (topics & TOPIC_SETTINGS) {
		const uint8_t *body = run->at + FRAME_HEADER_SIZE + offset;
		const uint8_t *end = run->at + run->frame.total;
		struct reader reader;

		topics |= note_text(run, statement);
		end = end < run->end ? end : run->end;
		reader_init(&reader, body, body < end ? (size_t)(end - body) : 0);
		if (!note_values(run->client, &reader))
			topics |= TOPIC_UNREAD;
	}
	run->server->suspected |= topics;
}

void suspect_execute(struct relay_run *run, struct statement *statement, const char *arguments,
	size_t length)
{
	session_topics topics;

	if (run->server->link.pool->pairing == CLIENT_WATCHED)
		look_for_calls(run, statement);
	topics = statement->topics;
	if (!topics || !is_asked(run))
		return;
	if (topics & TOPIC_SETTINGS) {
		topics |= note_text(run, statement);
		if (!note_arguments(run, arguments, length))
			topics |= TOPIC_UNREAD;
	}
	run->server->suspected |= topics;
}
