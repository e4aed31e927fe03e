/* SPDX-License-Identifier: ISC */
#include "session/statements/prepare.h"

#include "model/statements_in_flight.h"
#include "session/statements/carrier.h"
#include "wire/sql.h"

/* --- passing requests on ------------------------------------------------------------------ */

void prepare_note(struct relay_run *run, uint8_t type, enum request_action action,
	const struct statement_operation *operation)
{
	prepare_add_request(run, type, action | REQUEST_NOTED);
	server_statements_push(run->server->statements, operation);
}

bool prepare_open_table(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (!server->statements)
		server->statements = server_statements_new();
	return server->statements &&
		server_statements_reserve(server->statements, REQUESTS_EACH);
}

enum verdict prepare_refuse(struct relay_run *run, enum request_action action)
{
	const char *nowhere = prepare_table(run)->nowhere;
	uint8_t message[FRAME_HEADER_SIZE + 1 + STATEMENT_NAME_SIZE];
	const size_t length = strlen(nowhere) + 1;

	message[0] = PQ_DESCRIBE;
	memcpy(message + 1, (uint8_t[]){0, 0, 0, (uint8_t)(4 + 1 + length), 'S'}, 5);
	memcpy(message + 6, nowhere, length);
	relay_insert(run, message, 6 + length);
	prepare_add_request(run, run->frame.type, action);
	query_clocks_start(run->client);
	return RELAY_DROP;
}

void prepare_replace_name(struct relay_run *run, const char *portal, size_t portal_size,
	const char *name, size_t name_size, size_t size)
{
	prepare_put_header(relay_insert_room(run, FRAME_HEADER_SIZE), PQ_BIND,
		run->frame.total - 1 - name_size + size);
	relay_insert_lent(run, portal, portal_size);
	relay_insert(run, name, size);
	relay_skip_front(run, FRAME_HEADER_SIZE + portal_size + name_size);
}

const char *prepare_long_text_at(const struct relay_run *run, size_t offset, size_t *size)
{
	const uint8_t *body = run->at + FRAME_HEADER_SIZE;
	const size_t there = (size_t)(run->end - body);
	const size_t whole = run->frame.total - FRAME_HEADER_SIZE;
	const size_t length = there < whole ? there : whole;
	const uint8_t *end;

	if (offset >= length)
		return NULL;
	end = memchr(body + offset, '\0', length - offset);
	if (!end)
		return NULL;
	*size = (size_t)(end - (body + offset)) + 1;
	return (const char *)body + offset;
}

/* --- statements of the client ------------------------------------------------------------- */

bool prepare_is_affordable(const struct relay_run *run, size_t bytes)
{
	const uint64_t most = (uint64_t)prepare_settings(run)->max_prepared_memory;
	const struct client_statements *own = run->client->statements;
	const struct process *process = link_registry(run->from)->process;

	return most == 0 ||
		(registry_statement_bytes(process) + bytes <= most &&
			(own ? own->bytes : 0) + bytes <= most / 4);
}

struct client_statement *prepare_name_statement(
	struct relay_run *run, const char *name, struct statement *statement)
{
	struct client_link *client = run->client;

	if (!client->statements)
		client->statements = client_statements_new(prepare_table(run));
	return client->statements ? client_statements_add(client->statements, name, statement)
				  : NULL;
}

void prepare_drop_unnamed(struct relay_run *run)
{
	struct server_link *server = run->server;

	server->unnamed = 0;
	server->unnamed_passing = false;
	prepare_set_unnamed(run->client, NULL);
	if (server->statements && server->statements->in_flight > 0)
		statements_forget_unnamed(server);
	if (run->client->statements)
		client_statements_will_deallocate(run->client->statements, NULL);
}

/* --- preparing on the server -------------------------------------------------------------- */

void prepare_insert_parse(struct relay_run *run, const struct statement *statement,
	const char *name, size_t name_size)
{
	uint8_t *front = relay_insert_room(run, FRAME_HEADER_SIZE + name_size);

	prepare_put_header(front, PQ_PARSE, 4 + name_size + statement->length);
	memcpy(front + FRAME_HEADER_SIZE, name, name_size);
	relay_insert_lent(run, statement->content, statement->length);
	run->client->link.pool->stats.current.server_parses++;
}

void prepare_insert_about(
	struct relay_run *run, uint8_t type, const struct statement *statement)
{
	uint8_t *message = relay_insert_room(run, FRAME_HEADER_SIZE + 1 + statement->name_size);

	prepare_put_header(message, type, 4 + 1 + statement->name_size);
	message[FRAME_HEADER_SIZE] = 'S';
	memcpy(message + FRAME_HEADER_SIZE + 1, statement->name, statement->name_size);
}

static void insert_close(struct relay_run *run, struct server_statement *entry)
{
	prepare_insert_about(run, PQ_CLOSE, entry->statement);
	entry->changes++;
	entry->batch = run->server->batch;
	prepare_note(run, PQ_CLOSE, REQUEST_SWALLOW,
		&(struct statement_operation){.kind = STATEMENT_CLOSE, .server = entry});
}

/* Must the statement be closed before it can be prepared? Not if it is certainly absent. */
static bool must_close(const struct relay_run *run, const struct server_statement *entry)
{
	return entry->expected || !prepare_is_certain(run, entry) ||
		(entry->changes == 0 && entry->present);
}

bool prepare_forgets_all(const struct relay_run *run, const char *text, size_t length)
{
	/* The first letter excludes most queries. */
	return length > 0 && ((text[0] | 0x20) == 'd' || text[0] <= '/') &&
		prepare_tracks(run) && sql_forgets_statements(text, length);
}

bool prepare_deallocates(
	const struct relay_run *run, const char *text, size_t length, struct buffer *name)
{
	return run->client->statements && length > 0 &&
		((text[0] | 0x20) == 'd' || text[0] <= '/') && prepare_tracks(run) &&
		sql_deallocated_name(text, length, name) &&
		prepare_find_name(run, (const char *)name->data, name->length);
}

void prepare_evict(struct relay_run *run, const struct server_statement *newest)
{
	struct server_statements *statements = run->server->statements;
	const struct settings *settings = prepare_settings(run);
	struct server_statement *oldest;

	while ((statements->count > (uint32_t)settings->max_prepared_statements ||
		       (settings->max_prepared_bytes > 0 &&
			       statements->bytes > (uint64_t)settings->max_prepared_bytes)) &&
		(oldest = server_statements_oldest(statements)) != newest &&
		requests_reserve(&run->server->requests, REQUESTS_EACH) &&
		server_statements_reserve(statements, REQUESTS_EACH)) {
		server_statements_expect(statements, oldest, false);
		insert_close(run, oldest);
		run->client->link.pool->database->prepared.evictions++;
	}
}

struct server_statement *prepare_make_room(struct relay_run *run, struct statement *statement)
{
	struct server_statements *statements = run->server->statements;
	struct server_statement *entry = server_statements_open(statements, statement);

	if (!entry)
		return NULL;
	/* Another statement of that name, of a client, would be run in place of this one. */
	if (must_close(run, entry) || statement_is_sql(statement))
		insert_close(run, entry);
	server_statements_expect(statements, entry, true);
	entry->generation = statement->generation;
	entry->batch = run->server->batch;
	entry->changes++;
	return entry;
}

bool prepare_absent(struct relay_run *run, struct statement *statement)
{
	struct server_statements *statements = run->server->statements;
	struct prepared_counts *counts = &run->client->link.pool->database->prepared;
	struct server_statement *entry;

	if (statements) {
		entry = server_statements_find(statements, statement);
		if (prepare_is_there(run, entry)) {
			server_statements_touch(statements, entry);
			counts->hits++;
			return true;
		}
	}
	if (!prepare_open_table(run) || !prepare_has_room_for_sql(run))
		return false;
	entry = prepare_make_room(run, statement);
	if (!entry)
		return false;
	if (statement_is_sql(statement))
		carrier_insert(run, entry);
	else {
		prepare_insert_parse(run, statement, statement->name, statement->name_size);
		prepare_note(run, PQ_PARSE, REQUEST_SWALLOW,
			&(struct statement_operation){
				.kind = STATEMENT_PREPARE, .server = entry});
	}
	counts->misses++;
	prepare_evict(run, entry);
	return true;
}

bool prepare_before_query(struct relay_run *run, struct statement *statement)
{
	const uint32_t before = run->server->requests.count;

	if (!prepare_if_absent(run, statement))
		return false;
	/* The server skips what follows an error up to a Sync, and a Query, too. */
	if (run->server->requests.count != before)
		carrier_insert_sync(run);
	return true;
}

bool prepare_may_be_there(const struct server_link *server, const char *name)
{
	return ((server->pins | server->suspected) & TOPIC_STATEMENTS) &&
		strncmp(name, "PGBOUNCER_", sizeof("PGBOUNCER_") - 1) != 0;
}

bool prepare_read_subject(
	struct relay_run *run, enum reason broken, const char **out, enum verdict *verdict)
{
	size_t size;

	if (!run->whole && run->frame.total <= NAME_GATHERED_MAX) {
		*verdict = prepare_is_crowded(run) ? prepare_out_of_memory(run) : RELAY_MORE;
		return false;
	}
	*out = prepare_text_at(run, 1, &size);
	if (!run->whole || !*out || run->frame.total != FRAME_HEADER_SIZE + 1 + size) {
		*verdict = relay_fail(run, failure_of(broken));
		return false;
	}
	return true;
}
