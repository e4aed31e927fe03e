/* SPDX-License-Identifier: ISC */
#include "session/statements/carrier.h"

#include <stdio.h>

#include "session/statements/prepare.h"
#include "wire/sql.h"

static void insert_own(struct relay_run *run, uint8_t type, const void *body, size_t length)
{
	uint8_t *message = relay_insert_room(run, FRAME_HEADER_SIZE + length);

	prepare_put_header(message, type, 4 + length);
	memcpy(message + FRAME_HEADER_SIZE, body, length);
	prepare_add_request(run, type, REQUEST_SWALLOW);
}

/* Close what is called the carrier: a statement ('S') or a portal ('P'). */
static void insert_close(struct relay_run *run, char kind)
{
	const char *carrier = prepare_table(run)->carrier;
	char body[1 + STATEMENT_NAME_SIZE];
	const int length = snprintf(body, sizeof(body), "%c%s", kind, carrier);

	insert_own(run, PQ_CLOSE, body, (size_t)length + 1);
}

/*
 * Bind the carrier to a portal of its name, without parameters, and execute it; then close both. The
 * operation is that of the Execute.
 */
static void insert_execute(struct relay_run *run, const struct statement_operation *operation)
{
	const char *carrier = prepare_table(run)->carrier;
	const size_t size = strlen(carrier) + 1;
	char body[2 * STATEMENT_NAME_SIZE + 6] = "";

	memcpy(body, carrier, size);
	memcpy(body + size, carrier, size);
	insert_own(run, PQ_BIND, body, 2 * size + 6);
	memset(body + size, 0, 4);
	insert_own(run, PQ_EXECUTE, body, size + 4);
	/* That it is PREPARE is no news. */
	requests_mark_last(&run->server->requests, REQUEST_NOTED | REQUEST_KNOWN);
	server_statements_push(run->server->statements, operation);
	insert_close(run, 'P');
	insert_close(run, 'S');
}

/* Insert a Parse of the carrier: PREPARE of this statement under a name of `length` bytes. */
static void insert_parse(struct relay_run *run, const struct statement *statement,
	const char *name, size_t length)
{
	static const char verb[] = "PREPARE ";
	const char *carrier = prepare_table(run)->carrier,
		   *rest = statement_sql_rest(statement);
	const size_t size = strlen(carrier) + 1, rest_size = strlen(rest) + 1;
	const size_t front = size + sizeof(verb) - 1 + length + 1;
	uint8_t *message;

	insert_close(run, 'S');
	message = relay_insert_room(run, FRAME_HEADER_SIZE + front);
	prepare_put_header(message, PQ_PARSE, 4 + front + rest_size + 2);
	message += FRAME_HEADER_SIZE;
	memcpy(message, carrier, size);
	memcpy(message + size, verb, sizeof(verb) - 1);
	memcpy(message + size + sizeof(verb) - 1, name, length);
	message[front - 1] = ' ';
	relay_insert_lent(run, rest, rest_size);
	relay_insert(run, "\0", 2);
	prepare_add_request(run, PQ_PARSE, REQUEST_SWALLOW);
	run->client->link.pool->stats.current.server_parses++;
}

void carrier_insert(struct relay_run *run, struct server_statement *entry)
{
	const struct statement *statement = entry->statement;
	char quoted[STATEMENT_NAME_SIZE + 2];

	insert_parse(run, statement, quoted,
		(size_t)snprintf(quoted, sizeof(quoted), "\"%s\"", statement->name));
	insert_execute(
		run, &(struct statement_operation){.kind = STATEMENT_PREPARE, .server = entry});
}

bool carrier_insert_as(struct relay_run *run, struct client_statement *entry)
{
	struct buffer name = {0};
	bool good;

	sql_append_name(&name, entry->name);
	good = !name.failed && name.length < RELAY_INSERTS / 2;
	if (good) {
		insert_parse(run, entry->statement, (const char *)name.data, name.length);
		insert_execute(run,
			&(struct statement_operation){
				.kind = STATEMENT_HAND_OVER, .client = entry});
	}
	buffer_free(&name);
	return good;
}

void carrier_insert_renamed(struct relay_run *run, const struct statement *statement,
	size_t begin, size_t end, const char *name)
{
	const char *carrier = prepare_table(run)->carrier;
	const size_t size = strlen(carrier) + 1, quoted = strlen(name) + 2;
	uint8_t *front;

	insert_close(run, 'S');
	front = relay_insert_room(run, FRAME_HEADER_SIZE + size);
	prepare_put_header(
		front, PQ_PARSE, 4 + size + statement->length - (end - begin) + quoted);
	memcpy(front + FRAME_HEADER_SIZE, carrier, size);
	relay_insert_lent(run, statement->content, begin);
	relay_insert(run, "\"", 1);
	relay_insert(run, name, quoted - 2);
	relay_insert(run, "\"", 1);
	relay_insert_lent(run, statement->content + end, statement->length - end);
	prepare_add_request(run, PQ_PARSE, REQUEST_SWALLOW);
	run->client->link.pool->stats.current.server_parses++;
}

void carrier_insert_sync(struct relay_run *run)
{
	insert_own(run, PQ_SYNC, "", 0);
	run->server->batch++;
}

void carrier_insert_namesake(struct relay_run *run)
{
	const char *carrier = prepare_table(run)->carrier;
	char body[STATEMENT_NAME_SIZE + 3] = "";

	insert_close(run, 'S');
	memcpy(body, carrier, strlen(carrier));
	insert_own(run, PQ_PARSE, body, strlen(carrier) + 1 + 3);
	carrier_insert_sync(run);
}
