/* SPDX-License-Identifier: ISC */
#include "model/server_statements.h"

#include <stdlib.h>

enum { OPERATIONS_FIRST = 16, OPERATIONS_KEPT = 256 };

struct server_statements *server_statements_new(void)
{
	struct server_statements *statements = calloc(1, sizeof(*statements));

	if (statements)
		TAILQ_INIT(&statements->recency);
	return statements;
}

static void discard(struct server_statements *statements, struct server_statement *entry)
{
	entry->statement->servers -= entry->expected; /* set only if the server is closed */
	HASH_DELETE(by_statement, statements->by_statement, entry);
	statement_unref(entry->statement);
	free(entry);
}

void server_statements_free(struct server_statements *statements)
{
	struct server_statement *entry, *next;

	if (!statements)
		return;
	HASH_ITER (by_statement, statements->by_statement, entry, next)
		discard(statements, entry);
	free(statements->operations);
	free(statements);
}

/* --- statements --------------------------------------------------------------------------- */

struct server_statement *server_statements_find(
	const struct server_statements *statements, const struct statement *statement)
{
	struct server_statement *recent = TAILQ_FIRST(&statements->recency), *found;

	if (recent && recent->statement == statement)
		return recent;
	/* By the keyed hash of its content: clients choose the statements. */
	HASH_FIND_BYHASHVALUE(by_statement, statements->by_statement, &statement,
		sizeof(statement), statement->by_content.hashv, found);
	return found;
}

struct server_statement *server_statements_open(
	struct server_statements *statements, struct statement *statement)
{
	struct server_statement *entry = server_statements_find(statements, statement);

	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->statement = statement;
	HASH_ADD_BYHASHVALUE(by_statement, statements->by_statement, statement,
		sizeof(statement), statement->by_content.hashv, entry);
	if (!entry->by_statement.tbl) { /* uthash was out of memory */
		free(entry);
		return NULL;
	}
	statement_ref(statement);
	statements->changed = true;
	return entry;
}

void server_statements_expect(
	struct server_statements *statements, struct server_statement *entry, bool expected)
{
	if (entry->expected) {
		TAILQ_REMOVE(&statements->recency, entry, recency);
		statements->count--;
		statements->bytes -= entry->statement->length;
		entry->statement->servers--;
	}
	statements->changed = true;
	entry->expected = expected;
	if (!expected)
		return;
	TAILQ_INSERT_HEAD(&statements->recency, entry, recency);
	statements->count++;
	statements->bytes += entry->statement->length;
	entry->statement->servers++;
}

void server_statements_touch(
	struct server_statements *statements, struct server_statement *entry)
{
	if (TAILQ_FIRST(&statements->recency) == entry)
		return;
	TAILQ_REMOVE(&statements->recency, entry, recency);
	TAILQ_INSERT_HEAD(&statements->recency, entry, recency);
}

struct server_statement *server_statements_oldest(const struct server_statements *statements)
{
	return TAILQ_LAST(&statements->recency, server_statement_list);
}

void server_statements_settle(
	struct server_statements *statements, struct server_statement *entry)
{
	statements->changed = true;
	if (!entry->present && !entry->expected && entry->changes == 0)
		discard(statements, entry);
}

void server_statements_clear(struct server_statements *statements)
{
	struct server_statement *entry, *next;

	/* One query may have DEALLOCATE ALL a hundred thousand times. */
	if (!statements->changed)
		return;
	HASH_ITER (by_statement, statements->by_statement, entry, next) {
		entry->present = false;
		/* Operations in flight are executed after the deallocation. */
		if (entry->expected && entry->changes == 0)
			server_statements_expect(statements, entry, false);
		server_statements_settle(statements, entry);
	}
	statements->changed = false;
}

void server_statements_distrust(struct server_statements *statements)
{
	struct server_statement *entry;

	TAILQ_FOREACH (entry, &statements->recency, recency)
		entry->statement->generation++;
}

/* --- operations in flight ----------------------------------------------------------------- */

bool server_statements_reserve(struct server_statements *statements, uint32_t count)
{
	uint32_t capacity = statements->capacity ? statements->capacity : OPERATIONS_FIRST;
	struct statement_operation *operations;

	if (statements->in_flight + count <= statements->capacity)
		return true;
	while (capacity < statements->in_flight + count)
		capacity *= 2;
	operations = malloc(capacity * sizeof(*operations));
	if (!operations)
		return false;
	for (uint32_t i = 0; i < statements->in_flight; i++)
		operations[i] = statements->operations[(statements->first + i) &
			(statements->capacity - 1)];
	free(statements->operations);
	statements->operations = operations;
	statements->capacity = capacity;
	statements->first = 0;
	return true;
}

void server_statements_push(
	struct server_statements *statements, const struct statement_operation *operation)
{
	const uint32_t mask = statements->capacity - 1;

	statements->operations[(statements->first + statements->in_flight++) & mask] =
		*operation;
}

bool server_statements_pop(
	struct server_statements *statements, struct statement_operation *out)
{
	if (statements->in_flight == 0)
		return false;
	*out = statements->operations[statements->first];
	statements->first = (statements->first + 1) & (statements->capacity - 1);
	statements->in_flight--;
	statements->forgotten -= statements->forgotten > 0;
	/* Free the ring after a long pipeline. */
	if (statements->in_flight == 0 && statements->capacity > OPERATIONS_KEPT) {
		free(statements->operations);
		statements->operations = NULL;
		statements->capacity = statements->first = 0;
	}
	return true;
}

const struct statement_operation *server_statements_next(
	const struct server_statements *statements)
{
	return statements->in_flight == 0 ? NULL : &statements->operations[statements->first];
}

void server_statements_spoil_next(struct server_statements *statements)
{
	struct statement_operation *next = statements->operations + statements->first;

	if (statements->in_flight > 0 && next->kind == STATEMENT_EXECUTE)
		next->spoilt = true;
}
