/* SPDX-License-Identifier: ISC */
#include "session/takeover/adoption_statements.h"

#include <stdlib.h>
#include <string.h>

#include "session/takeover/inventory.h"

/*
 * One text, by its number in the old process. Each worker of this process that uses it has a
 * statement of its own for it, all with this number.
 */
struct adopted_statement {
	UT_hash_handle by_id;
	uint64_t id, parses, binds;
	uint32_t generation;
	struct tagged_field content; /* points into the record */
	struct statement
		*in[]; /* by the number of the registry: references; NULL: not used there */
};

struct adoption_statements {
	const struct process *process;
	struct adopted_statement *by_id; /* uthash */
};

struct adoption_statements *adoption_statements_new(struct registry *registry)
{
	struct adoption_statements *adopted = calloc(1, sizeof(*adopted));

	if (adopted)
		adopted->process = registry->process;
	return adopted;
}

static void free_entry(
	const struct adoption_statements *adopted, struct adopted_statement *entry)
{
	for (unsigned i = 0; i < adopted->process->workers; i++)
		statement_unref(entry->in[i]);
	free(entry);
}

void adoption_statements_free(struct adoption_statements *adopted)
{
	struct adopted_statement *entry, *next;

	if (!adopted)
		return;
	HASH_ITER (by_id, adopted->by_id, entry, next) {
		HASH_DELETE(by_id, adopted->by_id, entry);
		free_entry(adopted, entry);
	}
	free(adopted);
}

static struct adopted_statement *find_entry(
	const struct adoption_statements *adopted, uint64_t id)
{
	struct adopted_statement *entry;

	HASH_FIND_BYHASHVALUE(by_id, adopted->by_id, &id, sizeof(id), (unsigned)id, entry);
	return entry;
}

/* Make the statement of this registry. Only the first one that is made has the counts. */
static struct statement *open_in(struct registry *registry, struct adopted_statement *entry)
{
	struct statement *statement = statement_open_as(
		&registry->statements, entry->id, entry->content.bytes, entry->content.length);

	if (!statement)
		return NULL;
	statement->generation = entry->generation;
	statement->parses = entry->parses;
	statement->binds = entry->binds;
	entry->parses = entry->binds = 0;
	return statement;
}

/* Returns the statement of the link's registry, or NULL. */
static struct statement *find(
	const struct adoption_statements *adopted, const struct link *link, uint64_t id)
{
	struct adopted_statement *entry = find_entry(adopted, id);
	struct registry *registry = link_registry(link);

	if (entry && !entry->in[registry->number])
		entry->in[registry->number] = open_in(registry, entry);
	return entry ? entry->in[registry->number] : NULL;
}

/* --- texts -------------------------------------------------------------------------------- */

struct text {
	uint64_t id, generation, parses, binds;
	struct tagged_field content;
};

static bool read_text(struct reader *reader, struct text *out)
{
	struct tagged_field field;

	*out = (struct text){0};
	while (tagged_next(reader, &field)) {
		switch (field.tag) {
		case INVENTORY_STATEMENT_ID:
			out->id = tagged_to_number(&field);
			break;
		case INVENTORY_CONTENT:
			out->content = field;
			break;
		case INVENTORY_GENERATION:
			out->generation = tagged_to_number(&field);
			break;
		case INVENTORY_PARSES:
			out->parses = tagged_to_number(&field);
			break;
		case INVENTORY_BINDS:
			out->binds = tagged_to_number(&field);
			break;
		default:
			break;
		}
	}
	return reader_done(reader);
}

static bool add(struct adoption_statements *adopted, const struct text *text)
{
	struct adopted_statement *entry = calloc(
		1, sizeof(*entry) + adopted->process->workers * sizeof(struct statement *));

	if (!entry)
		return false;
	entry->id = text->id;
	entry->content = text->content;
	entry->generation = (uint32_t)text->generation;
	entry->parses = text->parses;
	entry->binds = text->binds;
	/* Consecutive numbers need no hash function. */
	HASH_ADD_BYHASHVALUE(
		by_id, adopted->by_id, id, sizeof(entry->id), (unsigned)entry->id, entry);
	if (entry->by_id.tbl)
		return true;
	free(entry); /* uthash was out of memory */
	return false;
}

/*
 * Another worker of the old process has used the text with the same number. Of two generations the
 * later one: what a server has prepared in an earlier one is prepared again.
 */
static bool merge(struct adopted_statement *entry, const struct text *text)
{
	if (entry->content.length != text->content.length ||
		memcmp(entry->content.bytes, text->content.bytes, text->content.length) != 0)
		return false;
	if (entry->generation < text->generation)
		entry->generation = (uint32_t)text->generation;
	entry->parses += text->parses;
	entry->binds += text->binds;
	return true;
}

bool adoption_statements_take(struct adoption_statements *adopted, struct reader *reader)
{
	struct adopted_statement *entry;
	struct text text;

	if (!read_text(reader, &text) || text.id == 0 || text.id > INT64_MAX ||
		!statement_is_content(text.content.bytes, text.content.length))
		return false;
	entry = find_entry(adopted, text.id);
	return entry ? merge(entry, &text) : add(adopted, &text);
}

/* --- clients ------------------------------------------------------------------------------ */

static uint64_t read_number(struct reader *reader)
{
	const uint64_t high = reader_int32(reader);

	return high << 32 | reader_int32(reader);
}

static struct client_statements *open_names(struct client_link *client)
{
	if (!client->statements)
		client->statements =
			client_statements_new(&link_registry(&client->link)->statements);
	return client->statements;
}

struct name {
	const char *text;
	struct statement *statement;
	bool confirmed;
};

static bool read_name(const struct adoption_statements *adopted,
	const struct client_link *client, struct reader *reader, struct name *out)
{
	out->text = reader_string(reader);
	out->statement = find(adopted, &client->link, read_number(reader));
	out->confirmed = reader_byte(reader) & STATEMENT_RECORD_CONFIRMED;
	return !reader->failed && out->statement;
}

static bool take_names(const struct adoption_statements *adopted, struct client_link *client,
	const struct tagged_field *names)
{
	struct client_statement *entry;
	struct reader reader;
	struct name name;

	reader_init(&reader, names->bytes, names->length);
	while (reader_left(&reader) > 0) {
		if (!read_name(adopted, client, &reader, &name) || !open_names(client) ||
			client_statements_find(
				client->statements, name.text, strlen(name.text) + 1))
			return false;
		entry = client_statements_add(client->statements, name.text, name.statement);
		if (!entry)
			return false;
		entry->confirmed = name.confirmed;
	}
	return true;
}

static bool take_closed(struct client_link *client, const struct tagged_field *closed)
{
	struct reader reader;

	if (closed->length == 0)
		return true;
	if (!open_names(client))
		return false;
	reader_init(&reader, closed->bytes, closed->length);
	for (unsigned i = 0; i < CLOSED_STATEMENTS; i++)
		client->statements->closed[i] = read_number(&reader);
	return !reader.failed;
}

bool adoption_statements_fill_client(const struct adoption_statements *adopted,
	struct client_link *client, const struct statement_record *record)
{
	struct statement *unnamed = find(adopted, &client->link, record->unnamed);

	if (unnamed)
		client->unnamed = statement_ref(unnamed);
	return (record->unnamed == 0 || unnamed) &&
		take_names(adopted, client, &record->names) &&
		take_closed(client, &record->closed);
}

/* --- servers ------------------------------------------------------------------------------ */

static struct server_statement *open_entry(
	const struct adoption_statements *adopted, struct server_link *server, uint64_t id)
{
	struct statement *statement = find(adopted, &server->link, id);

	return statement ? server_statements_open(server->statements, statement) : NULL;
}

static bool take_entries(const struct adoption_statements *adopted, struct server_link *server,
	const struct tagged_field *entries)
{
	struct reader reader;

	reader_init(&reader, entries->bytes, entries->length);
	while (reader_left(&reader) > 0) {
		struct server_statement *entry =
			open_entry(adopted, server, read_number(&reader));
		uint8_t bits;

		if (!entry)
			return false;
		entry->generation = reader_int32(&reader);
		entry->batch = reader_int32(&reader);
		bits = reader_byte(&reader);
		entry->present = bits & STATEMENT_RECORD_PRESENT;
		server_statements_expect(
			server->statements, entry, bits & STATEMENT_RECORD_EXPECTED);
	}
	return !reader.failed;
}

bool adoption_statements_fill_server(const struct adoption_statements *adopted,
	struct server_link *server, const struct statement_record *record)
{
	server->unnamed = record->unnamed;
	server->batch = (uint32_t)record->batch;
	server->unnamed_batch = (uint32_t)record->unnamed_batch;
	if (record->entries.length == 0 && record->operations.length == 0)
		return true;
	server->statements = server_statements_new();
	return server->statements && take_entries(adopted, server, &record->entries);
}

/* --- operations in flight ----------------------------------------------------------------- */

static uint32_t noted_requests(const struct requests *requests)
{
	uint32_t noted = 0;

	for (uint32_t i = 0; i < requests->count; i++)
		noted += (requests_at(requests, i)->action & REQUEST_NOTED) != 0;
	return noted;
}

static bool has_server(enum statement_operation_kind kind)
{
	return kind == STATEMENT_PREPARE || kind == STATEMENT_CLOSE;
}

static bool may_have_name(enum statement_operation_kind kind)
{
	return kind == STATEMENT_PREPARE || kind == STATEMENT_PREPARED ||
		kind == STATEMENT_CLOSED || kind == STATEMENT_DEALLOCATE ||
		kind == STATEMENT_EXECUTE || kind == STATEMENT_HAND_OVER;
}

/*
 * Count one more operation for a name. Returns NULL when there is no name or the counter is
 * full.
 */
static struct client_statement *count_operation(struct client_statement *entry)
{
	if (!entry || entry->pending == UINT16_MAX)
		return NULL;
	entry->pending++;
	return entry;
}

static struct client_statement *add_unlisted(const struct adoption_statements *adopted,
	struct client_link *client, struct reader *reader)
{
	struct client_statement *entry = NULL;
	struct name name;

	if (!read_name(adopted, client, reader, &name) || !open_names(client))
		return NULL;
	entry = client_statements_add_unlisted(client->statements, name.text, name.statement);
	if (entry)
		entry->confirmed = name.confirmed;
	return entry;
}

static struct client_statement *find_listed(const struct client_link *client, const char *name)
{
	return client->statements && name
		? client_statements_find(client->statements, name, strlen(name) + 1)
		: NULL;
}

/*
 * Return the name of the earlier operation with this index. The ring was filled from its first
 * slot and nothing was removed, so the index is that of the slot.
 */
static struct client_statement *name_of_earlier(
	const struct server_statements *statements, uint32_t index)
{
	return index < statements->in_flight ? statements->operations[index].client : NULL;
}

/* Find the name that the operation refers to. Returns false when the reference is invalid. */
static bool take_reference(const struct adoption_statements *adopted,
	struct server_link *server, struct reader *reader,
	struct statement_operation *operation)
{
	const uint8_t reference = reader_byte(reader);
	struct client_link *client = server->link.peer ? client_of(server->link.peer) : NULL;

	if (reference == STATEMENT_RECORD_NONE)
		return true;
	if (!client || !may_have_name(operation->kind))
		return false;
	switch ((enum statement_record_reference)reference) {
	case STATEMENT_RECORD_NONE:
		break;
	case STATEMENT_RECORD_LISTED:
		operation->client = count_operation(find_listed(client, reader_string(reader)));
		break;
	case STATEMENT_RECORD_UNLISTED:
		operation->client = add_unlisted(adopted, client, reader);
		break;
	case STATEMENT_RECORD_EARLIER:
		operation->client = count_operation(
			name_of_earlier(server->statements, reader_int32(reader)));
		break;
	}
	return operation->client != NULL;
}

/* Read an operation up to its reference, without taking references or counting. */
static bool read_operation(const struct adoption_statements *adopted,
	struct server_link *server, struct reader *reader, struct statement_operation *out)
{
	const uint8_t kind = reader_byte(reader);
	const uint64_t id = read_number(reader);
	const uint64_t before = read_number(reader);

	*out = (struct statement_operation){.kind = (enum statement_operation_kind)kind};
	if (reader->failed || kind > STATEMENT_HAND_OVER)
		return false;
	if (has_server(out->kind))
		out->server = open_entry(adopted, server, id);
	if (out->kind == STATEMENT_UNNAMED)
		out->before = find(adopted, &server->link, before);
	return (out->server != NULL) == has_server(out->kind) && (before == 0 || out->before);
}

static void add_operation(
	struct server_statements *statements, struct statement_operation *operation)
{
	if (operation->server)
		operation->server->changes++;
	if (operation->before)
		statement_ref(operation->before);
	server_statements_push(statements, operation);
}

static bool take_operations(const struct adoption_statements *adopted,
	struct server_link *server, const struct tagged_field *operations)
{
	struct statement_operation operation;
	struct reader reader;

	reader_init(&reader, operations->bytes, operations->length);
	while (reader_left(&reader) > 0) {
		if (!read_operation(adopted, server, &reader, &operation) ||
			!server_statements_reserve(server->statements, 1) ||
			!take_reference(adopted, server, &reader, &operation))
			return false;
		add_operation(server->statements, &operation);
	}
	return !reader.failed;
}

/* Remove the entries that are neither prepared on the server nor expected to be. */
static void remove_stale_entries(struct server_statements *statements)
{
	struct server_statement *entry, *next;

	HASH_ITER (by_statement, statements->by_statement, entry, next)
		server_statements_settle(statements, entry);
}

bool adoption_statements_fill_operations(const struct adoption_statements *adopted,
	struct server_link *server, const struct tagged_field *operations)
{
	const uint32_t noted = noted_requests(&server->requests);

	if (!server->statements)
		return noted == 0;
	if (!take_operations(adopted, server, operations))
		return false;
	remove_stale_entries(server->statements);
	return server->statements->in_flight == noted;
}

/* --- from a PgBouncer --------------------------------------------------------------------- */

void adoption_statements_skip_pgbouncer_numbers(struct registry *registry)
{
	struct statement_table *table = &registry->statements;
	uint64_t number;

	/*
	 * PgBouncer counts from 1 and does not get as far as 2^61. Begin at a random number
	 * above it: an earlier takeover of the same servers may have used this range, too.
	 */
	random_fill(&registry->loop->random, &number, sizeof(number));
	number = (number & ((UINT64_C(1) << 61) - 1)) | UINT64_C(1) << 61;
	if (*table->last_id < UINT64_C(1) << 61)
		statement_skip_ids(table, number);
}
