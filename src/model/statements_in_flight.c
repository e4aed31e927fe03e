/* SPDX-License-Identifier: ISC */
#include "model/statements_in_flight.h"

#include <string.h>

#include "model/client_link.h"
#include "model/client_statements.h"
#include "wire/message.h"

/* So far behind what was lost we look for more about the same name. */
enum { LOOK_AHEAD_MOST = 256 };

/* --- operations that were done ------------------------------------------------------------ */

static struct client_statements *names_of(const struct server_link *server)
{
	return server->link.peer ? client_of(server->link.peer)->statements : NULL;
}

/* It is this client's name from now on, whatever happens. */
static void confirm(struct server_link *server, struct client_statement *entry)
{
	if (!entry)
		return;
	entry->confirmed = true;
	client_statements_settle(names_of(server), entry);
}

/* One operation in flight less, which changes nothing about the name. */
static void settle(struct server_link *server, struct client_statement *entry)
{
	if (entry)
		client_statements_settle(names_of(server), entry);
}

/* The server has it, or has it no more. */
static void change(struct server_link *server, struct server_statement *entry, bool present)
{
	entry->present = present;
	entry->changes--;
	server_statements_settle(server->statements, entry);
}

void statements_done(struct server_link *server)
{
	struct statement_operation done;

	if (!server_statements_pop(server->statements, &done))
		return;
	switch (done.kind) {
	case STATEMENT_PREPARE:
		confirm(server, done.client);
		change(server, done.server, true);
		break;
	case STATEMENT_CLOSE:
		change(server, done.server, false);
		break;
	case STATEMENT_PREPARED:
		confirm(server, done.client);
		break;
	case STATEMENT_CLOSED:
	case STATEMENT_DEALLOCATE:
	case STATEMENT_HAND_OVER:
	case STATEMENT_EXECUTE:
		settle(server, done.client);
		break;
	case STATEMENT_UNNAMED:
		statement_unref(done.before);
		break;
	}
}

/* --- operations that were not done -------------------------------------------------------- */

/* The client has not got that name, unless it was confirmed before. */
static void take_name_back(struct server_link *server, struct client_statement *entry)
{
	if (!entry)
		return;
	if (!entry->confirmed && entry->listed)
		client_statements_unlist(names_of(server), entry);
	client_statements_settle(names_of(server), entry);
}

static struct statement_operation *in_flight(
	struct server_statements *statements, uint32_t index)
{
	return &statements
			->operations[(statements->first + index) & (statements->capacity - 1)];
}

static bool has_same_name(
	const struct client_statement *entry, const struct client_statement *other)
{
	return other && other != entry && other->hash == entry->hash &&
		strcmp(other->name, entry->name) == 0;
}

/*
 * What is behind all that was lost may be about the same name: a Close that was to end what has
 * never been there ends this one; a Parse has had the name closed before. True: one of the two.
 */
static bool later_has_name(
	struct server_link *server, struct client_statement *entry, uint32_t lost)
{
	struct server_statements *statements = server->statements;
	const uint32_t most = lost + LOOK_AHEAD_MOST;

	for (uint32_t i = lost; i < statements->in_flight && i < most; i++) {
		struct statement_operation *later = in_flight(statements, i);
		struct client_statement *other = later->client;

		if (!has_same_name(entry, other))
			continue;
		if (later->kind == STATEMENT_CLOSED || later->kind == STATEMENT_DEALLOCATE) {
			later->client = entry;
			entry = other;
		}
		client_statements_settle(names_of(server), entry);
		return true;
	}
	return false;
}

/* It still has that name; so many operations are lost in all. */
static void give_name_back(
	struct server_link *server, struct client_statement *entry, uint32_t lost)
{
	/* One that was never confirmed has been lost before, with its Parse. */
	if (!entry || (entry->confirmed && later_has_name(server, entry, lost)))
		return;
	if (!entry->listed && entry->confirmed)
		client_statements_relist(names_of(server), entry);
	client_statements_settle(names_of(server), entry);
}

/*
 * What was to happen to it did not. If nothing else is in flight the server has what it has;
 * else that is decided by what is still to come.
 */
static void unchange(struct server_link *server, struct server_statement *entry)
{
	entry->changes--;
	if (entry->changes == 0 && entry->expected != entry->present)
		server_statements_expect(server->statements, entry, entry->present);
	server_statements_settle(server->statements, entry);
}

/* The next Parse of the unnamed statement that is in flight; NULL: none. */
static struct statement_operation *next_unnamed(struct server_statements *statements)
{
	for (uint32_t i = 0; i < statements->in_flight; i++) {
		struct statement_operation *operation = in_flight(statements, i);

		if (operation->kind == STATEMENT_UNNAMED)
			return operation;
	}
	return NULL;
}

void statements_forget_unnamed(struct server_link *server)
{
	struct server_statements *statements = server->statements;
	uint32_t i = statements->forgotten;

	for (; i < statements->in_flight; i++) {
		struct statement_operation *operation = in_flight(statements, i);

		if (operation->kind != STATEMENT_UNNAMED)
			continue;
		/* What is not done of this batch keeps what is said now from being done. */
		if (operation->batch == server->batch)
			break;
		statement_unref(operation->before);
		operation->before = NULL;
	}
	statements->forgotten = i;
}

/*
 * This is the client's unnamed statement, or was before another Parse; the count is taken over.
 */
static void restore_unnamed(struct server_link *server, struct statement *statement)
{
	struct statement_operation *later =
		server->statements ? next_unnamed(server->statements) : NULL;
	struct statement *nobodys = NULL, **place = &nobodys;

	server->unnamed = 0;
	if (later)
		place = &later->before;
	else if (server->link.peer)
		place = &client_of(server->link.peer)->unnamed;
	statement_unref(*place);
	*place = statement;
	statement_unref(nobodys);
}

/* It is one of so many that are lost, and those behind it have been undone. */
static void undo(
	struct server_link *server, const struct statement_operation *lost, uint32_t count)
{
	switch (lost->kind) {
	case STATEMENT_PREPARE:
		take_name_back(server, lost->client);
		unchange(server, lost->server);
		break;
	case STATEMENT_CLOSE:
		unchange(server, lost->server);
		break;
	case STATEMENT_PREPARED:
		take_name_back(server, lost->client);
		break;
	case STATEMENT_CLOSED:
	case STATEMENT_DEALLOCATE:
	case STATEMENT_HAND_OVER:
		give_name_back(server, lost->client, count);
		break;
	case STATEMENT_EXECUTE:
		settle(server, lost->client);
		break;
	case STATEMENT_UNNAMED:
		break;
	}
}

/*
 * Of several Parses of the unnamed statement the first says what was there before all of them.
 */
static void undo_some(struct server_link *server, uint32_t count)
{
	struct server_statements *statements = server->statements;
	struct statement *before = NULL;
	bool unnamed = false;
	struct statement_operation lost;

	for (uint32_t i = count; i-- > 0;)
		undo(server, in_flight(statements, i), count);
	while (count-- > 0 && server_statements_pop(statements, &lost)) {
		if (lost.kind != STATEMENT_UNNAMED)
			continue;
		if (unnamed)
			statement_unref(lost.before);
		else
			before = lost.before;
		unnamed = true;
	}
	if (unnamed)
		restore_unnamed(server, before);
}

void statements_lost(struct server_link *server)
{
	const uint32_t count = server->requests.lost;

	server->requests.lost = 0;
	if (count > 0)
		undo_some(server, count);
}

/* The oldest operation is the Parse that has failed. */
static void forget_before(struct server_link *server)
{
	struct server_statements *statements = server->statements;
	struct statement_operation *operation = &statements->operations[statements->first];

	statement_unref(operation->before);
	operation->before = NULL;
}

void statements_failed(struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);

	/* Its Parse has done away with the one before. */
	if (first && first->type == PQ_PARSE && first->action == REQUEST_FORWARD)
		restore_unnamed(server, NULL);
	else if (first && first->type == PQ_PARSE && (first->action & REQUEST_NOTED))
		forget_before(server);
	server->unnamed = 0;
	server->unnamed_passing = false;
}

/* --- names in flight ---------------------------------------------------------------------- */

const struct client_statement *statements_undecided(
	const struct server_link *server, const char *name)
{
	const struct server_statements *statements = server->statements;
	uint32_t count = statements ? statements->in_flight : 0;

	for (uint32_t i = 0; i < LOOK_AHEAD_MOST && count > 0; i++) {
		const struct statement_operation *operation =
			&statements->operations[(statements->first + --count) &
				(statements->capacity - 1)];

		if (operation->client && operation->kind != STATEMENT_EXECUTE &&
			strcmp(operation->client->name, name) == 0)
			return operation->client;
	}
	return NULL;
}

const char *statements_name_in_flight(
	const struct server_link *server, const char *name, size_t length)
{
	const struct server_statements *statements = server->statements;

	for (uint32_t i = 0; statements && i < LOOK_AHEAD_MOST && i < statements->in_flight;
		i++) {
		const struct client_statement *entry =
			statements
				->operations[(statements->first + i) &
					(statements->capacity - 1)]
				.client;

		if (entry && entry->statement->name_size == length + 1 &&
			memcmp(entry->statement->name, name, length) == 0)
			return entry->name;
	}
	return NULL;
}

/* --- what is forgotten -------------------------------------------------------------------- */

void statements_forget_all(struct server_link *server, struct client_link *client)
{
	if (server->statements)
		server_statements_clear(server->statements);
	if (client && client->statements)
		client_statements_clear(client->statements);
}

/* --- comings and goings ------------------------------------------------------------------- */

/* Its unnamed statement is the one from before the first Parse that has not been answered. */
static void restore_client(struct statement_operation *operation, struct client_link *client)
{
	operation->kind = STATEMENT_CLOSED;
	statement_unref(client->unnamed);
	client->unnamed = operation->before;
	operation->before = NULL;
}

/* What has not been answered has not been said. */
static void part_operation(struct server_link *server, struct client_link *client,
	struct statement_operation *operation)
{
	struct client_statement *entry = operation->client;

	operation->client = NULL;
	if (operation->kind == STATEMENT_UNNAMED)
		restore_client(operation, client);
	else if (operation->kind == STATEMENT_CLOSED ||
		operation->kind == STATEMENT_DEALLOCATE ||
		operation->kind == STATEMENT_HAND_OVER)
		give_name_back(server, entry, server->statements->in_flight);
	else if (operation->kind == STATEMENT_EXECUTE)
		settle(server, entry);
	else
		take_name_back(server, entry);
}

/* The last first, since each is about what those before it have left. */
void statements_undo(struct server_link *server, struct client_link *client)
{
	struct server_statements *statements = server->statements;

	for (uint32_t i = statements->in_flight; i-- > 0;)
		part_operation(server, client, in_flight(statements, i));
}

void statements_client_closed(struct client_link *client)
{
	client_statements_free(client->statements);
	client->statements = NULL;
	statement_unref(client->unnamed);
	client->unnamed = NULL;
}

void statements_server_closed(struct server_link *server)
{
	struct statement_operation operation;

	if (server->statements) {
		while (server_statements_pop(server->statements, &operation))
			statement_unref(operation.before);
		server_statements_free(server->statements);
		server->statements = NULL;
	}
	buffer_wipe(&server->kept);
	server->kept_requests = 0;
}
