/* SPDX-License-Identifier: ISC */
#include "session/takeover/statement_record.h"

#include <stdlib.h>

/*
 * Never change or reuse a number. These are 32 to 63; the others are in takeover/link_record.
 */
enum statement_tag {
	TAG_NAMES = 32,
	TAG_CLOSED = 33,
	TAG_UNNAMED = 34,
	TAG_ENTRIES = 35,
	TAG_OPERATIONS = 36,
	TAG_BATCH = 37,
	TAG_UNNAMED_BATCH = 38,
};

/* Append the list as a field, unless it is empty, and free it. */
static void add_list(struct buffer *out, enum statement_tag tag, struct buffer *list)
{
	if (list->length > 0)
		tagged_bytes(out, tag, list->data, list->length);
	out->failed = out->failed || list->failed;
	buffer_free(list);
}

static uint64_t number_of(const struct statement *statement)
{
	return statement ? statement->id : 0;
}

/* --- clients ------------------------------------------------------------------------------ */

static void write_name(struct buffer *list, const struct client_statement *entry)
{
	writer_string(list, entry->name);
	writer_int64(list, entry->statement->id);
	writer_byte(list, entry->confirmed ? STATEMENT_RECORD_CONFIRMED : 0);
}

static void write_names(struct buffer *out, const struct client_statements *statements)
{
	struct buffer names = {0};

	for (uint32_t i = 0; i < statements->capacity; i++) {
		if (statements->slots[i])
			write_name(&names, statements->slots[i]);
	}
	add_list(out, TAG_NAMES, &names);
}

static void write_closed(struct buffer *out, const struct client_statements *statements)
{
	struct buffer closed = {0};

	for (unsigned i = 0; i < CLOSED_STATEMENTS; i++)
		writer_int64(&closed,
			statements->closed[(statements->closed_next + i) % CLOSED_STATEMENTS]);
	add_list(out, TAG_CLOSED, &closed);
}

void statement_record_write_client(struct buffer *out, const struct client_link *client)
{
	if (client->statements) {
		write_names(out, client->statements);
		write_closed(out, client->statements);
	}
	tagged_number(out, TAG_UNNAMED, number_of(client->unnamed));
}

/* --- servers ------------------------------------------------------------------------------ */

static void write_entry(struct buffer *list, const struct server_statement *entry)
{
	writer_int64(list, entry->statement->id);
	writer_int32(list, entry->generation);
	writer_int32(list, entry->batch);
	writer_byte(list,
		(uint8_t)((entry->present ? STATEMENT_RECORD_PRESENT : 0) |
			(entry->expected ? STATEMENT_RECORD_EXPECTED : 0)));
}

static void write_entries(struct buffer *out, const struct server_statements *statements)
{
	const struct server_statement *entry, *next;
	struct buffer entries = {0};

	HASH_ITER (by_statement, statements->by_statement, entry, next) {
		if (!entry->expected)
			write_entry(&entries, entry);
	}
	TAILQ_FOREACH_REVERSE (entry, &statements->recency, server_statement_list, recency)
		write_entry(&entries, entry);
	add_list(out, TAG_ENTRIES, &entries);
}

/* A name that is not listed any more, and the first operation that refers to it. */
struct written_name {
	UT_hash_handle by_entry; /* the key is the pointer */
	const struct client_statement *entry;
	uint32_t index;
};

/*
 * Return the index of the first operation that refers to the name; it is `index` if no earlier
 * one does. Sets *failed when out of memory.
 */
static uint32_t first_reference(struct written_name **written,
	const struct client_statement *entry, uint32_t index, bool *failed)
{
	struct written_name *name;

	HASH_FIND_BYHASHVALUE(by_entry, *written, &entry, sizeof(entry), entry->hash, name);
	if (name)
		return name->index;
	name = calloc(1, sizeof(*name));
	if (!name) {
		*failed = true;
		return index;
	}
	name->entry = entry;
	name->index = index;
	HASH_ADD_BYHASHVALUE(by_entry, *written, entry, sizeof(entry), entry->hash, name);
	if (!name->by_entry.tbl) { /* uthash was out of memory */
		free(name);
		*failed = true;
	}
	return index;
}

static void free_written(struct written_name *written)
{
	struct written_name *name, *next;

	HASH_ITER (by_entry, written, name, next) {
		HASH_DELETE(by_entry, written, name);
		free(name);
	}
}

static void write_reference(struct buffer *list, struct written_name **written,
	const struct client_statement *entry, uint32_t index)
{
	uint32_t first;

	if (!entry) {
		writer_byte(list, STATEMENT_RECORD_NONE);
		return;
	}
	if (entry->listed) {
		writer_byte(list, STATEMENT_RECORD_LISTED);
		writer_string(list, entry->name);
		return;
	}
	first = first_reference(written, entry, index, &list->failed);
	if (first == index) {
		writer_byte(list, STATEMENT_RECORD_UNLISTED);
		write_name(list, entry);
	} else {
		writer_byte(list, STATEMENT_RECORD_EARLIER);
		writer_int32(list, first);
	}
}

static void write_operations(struct buffer *out, const struct server_statements *statements)
{
	struct buffer operations = {0};
	struct written_name *written = NULL;

	for (uint32_t i = 0; i < statements->in_flight; i++) {
		const struct statement_operation *operation =
			&statements->operations[(statements->first + i) &
				(statements->capacity - 1)];

		writer_byte(&operations, (uint8_t)operation->kind);
		writer_int64(&operations,
			number_of(operation->server ? operation->server->statement : NULL));
		writer_int64(&operations, number_of(operation->before));
		write_reference(&operations, &written, operation->client, i);
	}
	free_written(written);
	add_list(out, TAG_OPERATIONS, &operations);
}

void statement_record_write_server(struct buffer *out, const struct server_link *server)
{
	if (server->statements) {
		write_entries(out, server->statements);
		write_operations(out, server->statements);
	}
	tagged_number(out, TAG_UNNAMED, server->unnamed);
	tagged_number(out, TAG_BATCH, server->batch);
	tagged_number(out, TAG_UNNAMED_BATCH, server->unnamed_batch);
}

/* --- reading ------------------------------------------------------------------------------ */

bool statement_record_read(struct statement_record *out, const struct tagged_field *field)
{
	switch ((enum statement_tag)field->tag) {
	case TAG_NAMES:
		out->names = *field;
		return true;
	case TAG_CLOSED:
		out->closed = *field;
		return true;
	case TAG_UNNAMED:
		out->unnamed = tagged_to_number(field);
		return true;
	case TAG_ENTRIES:
		out->entries = *field;
		return true;
	case TAG_OPERATIONS:
		out->operations = *field;
		return true;
	case TAG_BATCH:
		out->batch = tagged_to_number(field);
		return true;
	case TAG_UNNAMED_BATCH:
		out->unnamed_batch = tagged_to_number(field);
		return true;
	}
	return false;
}
