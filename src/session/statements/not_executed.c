/* SPDX-License-Identifier: ISC */
#include "session/statements/not_executed.h"

#include <string.h>

#include "model/client_statements.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/sql_scanner.h"

/* How far the messages may have left the failed transaction. */
enum way_out {
	IN_TRANSACTION,
	END_PREPARED, /* a Parse of COMMIT or ROLLBACK: its Bind comes next */
	OUTSIDE, /* what follows is executed */
};

struct walk {
	const struct client_link *client;
	enum way_out way;
	bool parsed; /* a Parse came before: its text was looked at */
	bool certain;
};

/* --- texts -------------------------------------------------------------------------------- */

/* A failed transaction refuses all commands that do not begin so. */
static bool ends_transaction(const char *text, size_t length)
{
	static const char *const commands[] = {"commit", "rollback", "abort", "end", "prepare"};
	struct sql_scanner scanner;

	sql_scanner_init(&scanner, text, length, false);
	sql_scanner_skip_white(&scanner);
	while (scanner.at < scanner.end && *scanner.at == ';') {
		scanner.at++;
		sql_scanner_skip_white(&scanner);
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (sql_scanner_match(&scanner, commands[i]))
			return true;
	}
	return false;
}

/* May the text have more statements than the first? */
static bool has_more(const char *text, size_t length)
{
	const char *end = memchr(text, ';', strnlen(text, length));

	return end && end[1 + strspn(end + 1, " \t\r\n;")] != '\0';
}

static void see_query(struct walk *walk, const char *text, size_t length)
{
	if (!ends_transaction(text, length))
		return;
	walk->way = OUTSIDE;
	walk->certain = memchr(text, '\0', length) && !has_more(text, length);
}

/* --- messages of the extended protocol ---------------------------------------------------- */

static void see_parse(struct walk *walk, const uint8_t *body, size_t length)
{
	const uint8_t *nul = memchr(body, '\0', length);

	walk->parsed = true;
	if (nul && ends_transaction((const char *)nul + 1, length - (size_t)(nul + 1 - body)))
		walk->way = END_PREPARED;
}

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

/* A statement that is not known was parsed before in these messages, or its text was too long. */
static void see_bind(struct walk *walk, const uint8_t *body, size_t length)
{
	const struct statement *statement = statement_of_bind(walk->client, body, length);

	if (walk->way == END_PREPARED)
		walk->way = OUTSIDE;
	else if (!statement)
		walk->certain = walk->parsed;
	else if (ends_transaction((const char *)statement->content, statement->length))
		walk->way = OUTSIDE;
}

/* --- all of them -------------------------------------------------------------------------- */

static bool may_begin_something(const struct walk *walk, uint8_t type)
{
	return type == PQ_QUERY || type == PQ_PARSE || type == PQ_FUNCTION_CALL ||
		(type == PQ_BIND && walk->way == OUTSIDE);
}

static void see(struct walk *walk, uint8_t type, const uint8_t *body, size_t length)
{
	if (walk->way != IN_TRANSACTION && may_begin_something(walk, type))
		walk->certain = false;
	else if (type == PQ_QUERY)
		see_query(walk, (const char *)body, length);
	else if (type == PQ_PARSE)
		see_parse(walk, body, length);
	else if (type == PQ_BIND)
		see_bind(walk, body, length);
}

bool not_executed_is_certain(
	const struct client_link *client, const uint8_t *messages, size_t length)
{
	struct walk walk = {.client = client, .certain = true};
	struct frame frame;
	size_t at = 0;

	while (walk.certain && at < length &&
		frame_peek(messages + at, length - at, UINT32_MAX, &frame) == FRAME_WHOLE) {
		see(&walk, frame.type, frame_body(messages + at), frame_body_size(&frame));
		at += frame.total;
	}
	return walk.certain;
}
