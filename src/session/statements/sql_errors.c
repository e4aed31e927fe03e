/* SPDX-License-Identifier: ISC */
#include "session/statements/sql_errors.h"

#include <stdlib.h>
#include <string.h>

#include "model/statements_in_flight.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/report.h"
#include "wire/writer.h"

bool sql_errors_are_swallowed(const struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);
	const struct statement_operation *next =
		server->statements ? server_statements_next(server->statements) : NULL;

	return first && next && request_is(first, REQUEST_SWALLOW) &&
		next->kind == STATEMENT_HAND_OVER;
}

bool sql_errors_are_carried(const struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);

	return first && request_is(first, REQUEST_SWALLOW) && first->type != PQ_QUERY &&
		first->type != PQ_SYNC;
}

/* What is different in the client's text. */
struct difference {
	const struct server_link *server;
	const struct client_statements *names; /* of the client */
	const char *carrier, *theirs; /* a name of ours, and the client's; NULL: not used */
	int longer; /* so many more characters has our text before the rest */
	bool is_elsewhere; /* the error is in another text than the client has sent */
};

/* --- fields ------------------------------------------------------------------------------- */

/* Returns the length of pgusher's name that is here, with the client's name; 0: there is none. */
static size_t find_name(
	const char *text, const struct difference *difference, const char **theirs)
{
	static const char front[] = "PGBOUNCER_";
	size_t length;

	*theirs = difference->theirs;
	if (difference->theirs) {
		length = strlen(difference->carrier);
		if (strncmp(text, difference->carrier, length) == 0)
			return length;
	}
	if (strncmp(text, front, sizeof(front) - 1) != 0)
		return 0;
	length = sizeof(front) - 1 + strspn(text + sizeof(front) - 1, "0123456789");
	/* The first one in flight is about what has failed now. */
	*theirs = statements_name_in_flight(difference->server, text, length);
	if (!*theirs && difference->names)
		*theirs = client_statements_name_of(difference->names, text, length);
	return *theirs ? length : 0;
}

/* Append the text with the client's names in place of pgusher's. */
static void write_text(
	struct buffer *out, const char *text, const struct difference *difference)
{
	const char *found, *theirs;

	while ((found = strchr(text, 'P')) != NULL) {
		const size_t length = find_name(found, difference, &theirs);

		writer_bytes(out, text, (size_t)(found - text));
		if (length > 0)
			writer_bytes(out, theirs, strlen(theirs));
		else
			writer_byte(out, 'P');
		text = found + (length > 0 ? length : 1);
	}
	writer_string(out, text);
}

/* The position in the client's text, if it is there. */
static void write_position(
	struct buffer *out, const char *text, const struct difference *difference)
{
	const long position = strtol(text, NULL, 10) - difference->longer;
	char number[24];

	if (difference->is_elsewhere || position <= 0)
		return;
	snprintf(number, sizeof(number), "%ld", position);
	writer_byte(out, REPORT_POSITION);
	writer_string(out, number);
}

/* Returns false if the message is malformed. */
static bool write_fields(
	struct buffer *out, struct reader *reader, const struct difference *difference)
{
	uint8_t field;

	while ((field = reader_byte(reader)) != 0) {
		const char *text = reader_string(reader);

		if (!text)
			return false;
		if (field == REPORT_POSITION) {
			write_position(out, text, difference);
			continue;
		}
		writer_byte(out, field);
		if (field == REPORT_TEXT)
			write_text(out, text, difference);
		else
			writer_string(out, text);
	}
	writer_byte(out, 0);
	return reader_done(reader);
}

/* --- the message -------------------------------------------------------------------------- */

static enum verdict translate(struct relay_run *run, const struct difference *difference)
{
	struct buffer message = {0};
	const size_t mark = writer_begin(&message, PQ_ERROR_RESPONSE);
	struct reader reader;
	enum verdict verdict = RELAY_PASS;

	reader_init(&reader, run->at + FRAME_HEADER_SIZE, run->frame.total - FRAME_HEADER_SIZE);
	if (write_fields(&message, &reader, difference) && !message.failed) {
		writer_end(&message, mark);
		for (size_t at = 0; at < message.length; at += RELAY_INSERTS)
			relay_insert(run, message.data + at,
				message.length - at < RELAY_INSERTS ? message.length - at
								    : RELAY_INSERTS);
		verdict = RELAY_DROP;
	}
	buffer_free(&message);
	return verdict;
}

/* Is it a part of what prepares a statement by SQL before the client's message? */
static bool is_carried(const struct request *first)
{
	return request_is(first, REQUEST_SWALLOW) &&
		(first->type == PQ_EXECUTE || first->type == PQ_BIND);
}

/* Has the error a name that may be one of pgusher's? */
static bool has_name(const struct relay_run *run)
{
	return memmem(run->at, run->frame.total, "PGBOUNCER_", sizeof("PGBOUNCER_") - 1);
}

/* Is it about the client's unnamed statement under our name? */
static bool uses_unnamed(const struct relay_run *run)
{
	return run->client->unnamed &&
		requests_first(&run->server->requests)->action & REQUEST_UNNAMED;
}

enum verdict sql_errors_judge(struct relay_run *run)
{
	const struct request *first = requests_first(&run->server->requests);
	const struct statement_operation *operation = statements_oldest(run->server);
	struct difference difference = {0};

	if (!run->client || !run->whole || !first ||
		!(run->client->statements || uses_unnamed(run)))
		return RELAY_PASS;
	difference.server = run->server;
	difference.names = run->client->statements;
	if (uses_unnamed(run)) {
		difference.carrier = run->client->unnamed->name;
		difference.theirs = "";
	} else if (is_carried(first)) {
		difference.is_elsewhere = true;
	} else if (operation && operation->client && first->type == PQ_QUERY) {
		difference.carrier = link_registry(run->from)->statements.carrier;
		difference.theirs = operation->client->name;
		difference.longer = operation->longer;
	} else if (!has_name(run)) {
		return RELAY_PASS;
	}
	return translate(run, &difference);
}
