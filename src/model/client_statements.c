/* SPDX-License-Identifier: ISC */
#include "model/client_statements.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 16, SLOTS_ASKED = 1024 };

struct client_statements *client_statements_new(struct statement_table *table)
{
	struct client_statements *statements = calloc(1, sizeof(*statements));

	if (!statements)
		return NULL;
	statements->table = table;
	statements->capacity = SLOTS_FIRST;
	statements->slots = calloc(SLOTS_FIRST, sizeof(*statements->slots));
	if (statements->slots)
		return statements;
	free(statements);
	return NULL;
}

static size_t size_of(const struct client_statement *entry)
{
	return sizeof(*entry) + strlen(entry->name) + 1;
}

static void discard(struct client_statements *statements, struct client_statement *entry)
{
	const size_t size = size_of(entry);

	SHARED_OWN(statements->table->bytes, -(uint64_t)size);
	statements->bytes -= size + entry->statement->length;
	entry->statement->names--;
	statement_unref(entry->statement);
	free(entry);
}

void client_statements_free(struct client_statements *statements)
{
	if (!statements)
		return;
	for (uint32_t i = 0; i < statements->capacity; i++) {
		if (statements->slots[i])
			discard(statements, statements->slots[i]);
	}
	free(statements->deallocates);
	free(statements->slots);
	free(statements);
}

/* --- slots: linear probing ---------------------------------------------------------------- */

static uint32_t mask_of(const struct client_statements *statements)
{
	return statements->capacity - 1;
}

static void put(struct client_statements *statements, struct client_statement *entry)
{
	uint32_t i = entry->hash & mask_of(statements);

	while (statements->slots[i])
		i = (i + 1) & mask_of(statements);
	statements->slots[i] = entry;
}

/* Move all names to a table of another size. Returns false, unchanged, when out of memory. */
static bool resize(struct client_statements *statements, uint32_t capacity)
{
	struct client_statement **old = statements->slots;
	const uint32_t before = statements->capacity;

	if (capacity > UINT32_MAX / 2)
		return false;
	statements->slots = calloc(capacity, sizeof(*old));
	if (!statements->slots) {
		statements->slots = old;
		return false;
	}
	statements->capacity = capacity;
	for (uint32_t i = 0; i < before; i++) {
		if (old[i])
			put(statements, old[i]);
	}
	free(old);
	return true;
}

/* Make the table smaller after many names were removed, so that walks over it are short. */
static void shrink(struct client_statements *statements)
{
	uint32_t capacity = statements->capacity;

	while (capacity > SLOTS_FIRST && statements->count < capacity / 4)
		capacity /= 2;
	if (capacity < statements->capacity)
		resize(statements, capacity);
}

static bool list(struct client_statements *statements, struct client_statement *entry)
{
	if ((uint64_t)(statements->count + 1) * 5 > (uint64_t)statements->capacity * 4 &&
		!resize(statements, statements->capacity * 2))
		return false;
	put(statements, entry);
	statements->count++;
	statements->changed = true;
	entry->listed = true;
	return true;
}

static struct client_statement *find(
	struct client_statements *statements, const char *name, uint32_t hash)
{
	struct client_statement *entry;

	for (uint32_t i = hash & mask_of(statements); (entry = statements->slots[i]) != NULL;
		i = (i + 1) & mask_of(statements)) {
		if (entry->hash == hash && strcmp(entry->name, name) == 0)
			return entry;
	}
	return NULL;
}

/* Remove an entry, and move later entries of its run that the empty slot would hide. */
static void take_out(struct client_statements *statements, const struct client_statement *entry)
{
	const uint32_t mask = mask_of(statements);
	uint32_t hole = entry->hash & mask, i;

	while (statements->slots[hole] != entry)
		hole = (hole + 1) & mask;
	for (i = (hole + 1) & mask; statements->slots[i]; i = (i + 1) & mask) {
		const uint32_t home = statements->slots[i]->hash & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			statements->slots[hole] = statements->slots[i];
			hole = i;
		}
	}
	statements->slots[hole] = NULL;
}

/* --- names -------------------------------------------------------------------------------- */

static uint32_t hash_of(struct client_statements *statements, const char *name, size_t size)
{
	return (uint32_t)keyed_hash_of(statements->table->hash, name, size);
}

/* Not one that must be read before each use: see model/statement. */
static void remember(struct client_statements *statements, struct client_statement *entry)
{
	if (entry->statement->may_name || entry->statement->may_unlisten)
		return;
	statements->recent = entry;
	statements->recent_size = strlen(entry->name) + 1;
}

struct client_statement *client_statements_look_up(
	struct client_statements *statements, const char *name, size_t size)
{
	struct client_statement *found =
		find(statements, name, hash_of(statements, name, size));

	if (found)
		remember(statements, found);
	return found;
}

/* Make an entry without a statement: see count(). */
static struct client_statement *make(struct client_statements *statements, const char *name)
{
	const size_t size = strlen(name) + 1;
	struct client_statement *entry = malloc(sizeof(*entry) + size);

	if (!entry)
		return NULL;
	*entry = (struct client_statement){
		.hash = hash_of(statements, name, size),
	};
	memcpy(entry->name, name, size);
	return entry;
}

static void count(struct client_statements *statements, struct client_statement *entry,
	struct statement *statement)
{
	entry->statement = statement_ref(statement);
	entry->shape = statement->shape;
	statement->names++;
	statements->by_sql |= statement_is_sql(statement);
	SHARED_OWN(statements->table->bytes, size_of(entry));
	statements->bytes += size_of(entry) + statement->length;
}

struct client_statement *client_statements_add(
	struct client_statements *statements, const char *name, struct statement *statement)
{
	struct client_statement *entry = make(statements, name);

	if (!entry)
		return NULL;
	if (!list(statements, entry)) {
		free(entry);
		return NULL;
	}
	count(statements, entry, statement);
	remember(statements, entry);
	return entry;
}

struct client_statement *client_statements_add_unlisted(
	struct client_statements *statements, const char *name, struct statement *statement)
{
	struct client_statement *entry = make(statements, name);

	if (!entry)
		return NULL;
	count(statements, entry, statement);
	entry->pending = 1;
	return entry;
}

void client_statements_unlist(
	struct client_statements *statements, struct client_statement *entry)
{
	if (entry->listed) {
		take_out(statements, entry);
		statements->count--;
		entry->listed = false;
	}
	if (statements->recent == entry)
		statements->recent = NULL;
	if (entry->pending == 0)
		discard(statements, entry);
}

bool client_statements_relist(
	struct client_statements *statements, struct client_statement *entry)
{
	struct client_statement *other = find(statements, entry->name, entry->hash);

	if (other)
		client_statements_unlist(statements, other);
	return list(statements, entry);
}

void client_statements_settle(
	struct client_statements *statements, struct client_statement *entry)
{
	statements->changed = true;
	if (--entry->pending == 0 && !entry->listed)
		discard(statements, entry);
}

bool client_statements_will_deallocate(struct client_statements *statements, const char *name)
{
	free(statements->deallocates);
	statements->deallocates = name ? strdup(name) : NULL;
	return !name || statements->deallocates;
}

void client_statements_clear(struct client_statements *statements)
{
	uint32_t i = 0;

	/* One query may have DEALLOCATE ALL a hundred thousand times. */
	if (!statements->changed)
		return;
	while (i < statements->capacity) {
		struct client_statement *entry = statements->slots[i];

		/* After a removal another entry may have moved into this slot. */
		if (entry && entry->confirmed && entry->pending == 0)
			client_statements_unlist(statements, entry);
		else
			i++;
	}
	shrink(statements);
	statements->changed = false;
}

const char *client_statements_name_of(
	const struct client_statements *statements, const char *name, size_t length)
{
	if (statements->capacity > SLOTS_ASKED)
		return NULL;
	for (uint32_t i = 0; i < statements->capacity; i++) {
		const struct client_statement *entry = statements->slots[i];

		if (entry && entry->statement->name_size == length + 1 &&
			memcmp(entry->statement->name, name, length) == 0)
			return entry->name;
	}
	return NULL;
}

/* --- closed statements -------------------------------------------------------------------- */

void client_statements_note_closed(
	struct client_statements *statements, const struct statement *statement)
{
	statements->closed[statements->closed_next] = statement->id;
	statements->closed_next = (statements->closed_next + 1) % CLOSED_STATEMENTS;
}

bool client_statements_had(
	const struct client_statements *statements, const struct statement *statement)
{
	for (unsigned i = 0; i < CLOSED_STATEMENTS; i++) {
		if (statements->closed[i] == statement->id)
			return true;
	}
	if (statement->names == 0 || statements->capacity > SLOTS_ASKED)
		return false;
	for (uint32_t i = 0; i < statements->capacity; i++) {
		if (statements->slots[i] && statements->slots[i]->statement == statement)
			return true;
	}
	return false;
}
