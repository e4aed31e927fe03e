/* SPDX-License-Identifier: ISC */
#include "model/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "wire/reader.h"
#include "wire/sql_scanner.h"
#include "wire/suspicion.h"

void statement_table_init(struct statement_table *table, struct loop *loop,
	struct keyed_hash *hash, uint64_t *last_id)
{
	uint64_t number;

	*table = (struct statement_table){.hash = hash, .loop = loop, .last_id = last_id};
	TAILQ_INIT(&table->unused);
	random_fill(&loop->random, &number, sizeof(number));
	snprintf(table->nowhere, sizeof(table->nowhere), "PGUSHER_%016llx",
		(unsigned long long)number);
	snprintf(table->carrier, sizeof(table->carrier), "PGUSHER_%016llx_",
		(unsigned long long)number);
}

size_t statement_size(const struct statement *statement)
{
	return sizeof(*statement) + statement->length;
}

static void free_unused(struct statement *statement)
{
	struct statement_table *table = statement->table;

	TAILQ_REMOVE(&table->unused, statement, unused);
	HASH_DELETE(by_content, table->by_content, statement);
	SHARED_OWN(table->bytes, -(uint64_t)statement_size(statement));
	table->count--;
	if (table->handles)
		handles_take_back(table->handles, &statement->handle, statement);
	free(statement);
}

static void free_all_unused(struct loop_task *task)
{
	struct statement_table *table = (struct statement_table *)((char *)task -
		offsetof(struct statement_table, freeing));
	struct statement *statement;

	while ((statement = TAILQ_FIRST(&table->unused)) != NULL)
		free_unused(statement);
}

void statement_table_free(struct statement_table *table)
{
	free_all_unused(&table->freeing);
	loop_forget(table->loop, &table->freeing);
	CHECK(table->by_content == NULL);
}

static struct statement *find(
	struct statement_table *table, const void *content, size_t length, unsigned hash)
{
	struct statement *found;

	HASH_FIND_BYHASHVALUE(by_content, table->by_content, content, length, hash, found);
	return found;
}

/* Of a statement prepared by SQL: PREPARE, and where a number of types would be. */
static const char prepare[] = "PREPARE ";
enum { BEFORE_REST = sizeof(prepare) - 1, SQL_MARK = 0xffff };

/* A Parse with this number of types has as many of them behind it. */
static bool is_sql_content(const void *content, size_t length)
{
	struct reader reader;

	if (length < BEFORE_REST || memcmp(content, prepare, BEFORE_REST) != 0)
		return false;
	reader_init(&reader, content, length);
	reader_string(&reader);
	if (reader_int16(&reader) != SQL_MARK || reader_left(&reader) >= SQL_MARK * 4)
		return false;
	reader_string(&reader);
	return reader_done(&reader);
}

static bool may_name(const char *text, size_t length)
{
	static const char *const words[] = {"create", "execute", "explain", "prepare"};
	struct sql_scanner scanner;

	sql_scanner_init(&scanner, text, length, false);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (sql_scanner_match(&scanner, words[i]))
			return true;
	}
	return false;
}

static bool may_unlisten(const char *text, size_t length)
{
	struct sql_scanner scanner;

	sql_scanner_init(&scanner, text, length, false);
	return sql_scanner_match(&scanner, "unlisten");
}

static struct statement *make(struct statement_table *table, uint64_t id, const void *content,
	size_t length, unsigned hash)
{
	struct statement *statement = malloc(sizeof(*statement) + length);

	if (!statement)
		return NULL;
	*statement = (struct statement){
		.table = table,
		.id = id,
		.holders = 1,
		.length = (uint32_t)length,
		.may_name = may_name(content, length) && !is_sql_content(content, length),
		.may_unlisten = may_unlisten(content, length),
	};
	statement->name_size = 1 +
		(uint32_t)snprintf(statement->name, sizeof(statement->name), "PGBOUNCER_%llu",
			(unsigned long long)id);
	memcpy(statement->content, content, length);
	if (is_sql_content(content, length) ||
		suspicion_may_be_in(content, (const uint8_t *)content + length))
		statement->words = suspicion_of_text(content, length, false, NULL);
	statement->topics = statement->words;
	HASH_ADD_KEYPTR_BYHASHVALUE(
		by_content, table->by_content, statement->content, length, hash, statement);
	if (!statement->by_content.tbl) { /* uthash was out of memory */
		free(statement);
		return NULL;
	}
	SHARED_OWN(table->bytes, statement_size(statement));
	table->count++;
	return statement;
}

/* While no other thread runs, or by a single thread that looks for an id of its own. */
void statement_skip_ids(struct statement_table *table, uint64_t id)
{
	if (id > SHARED_GET(*table->last_id))
		SHARED_SET(*table->last_id, id);
}

struct statement *statement_open_as(
	struct statement_table *table, uint64_t id, const void *content, size_t length)
{
	const unsigned hash = (unsigned)keyed_hash_of(table->hash, content, length);
	struct statement *statement = find(table, content, length, hash);

	if (statement && (id == 0 || statement->id == id))
		return statement_ref(statement);
	if (id > 0)
		statement_skip_ids(table, id);
	else
		id = SHARED_NEXT(*table->last_id);
	return make(table, id, content, length, hash);
}

struct statement *statement_open(
	struct statement_table *table, const void *content, size_t length)
{
	return statement_open_as(table, 0, content, length);
}

struct statement *statement_ref(struct statement *statement)
{
	if (statement->holders++ == 0)
		TAILQ_REMOVE(&statement->table->unused, statement, unused);
	return statement;
}

void statement_unref(struct statement *statement)
{
	struct statement_table *table;

	if (!statement || --statement->holders > 0)
		return;
	table = statement->table;
	TAILQ_INSERT_TAIL(&table->unused, statement, unused);
	loop_defer(table->loop, &table->freeing, free_all_unused);
}

/*
 * Is it a query of which each character means the same in all sessions? Those beyond ASCII depend on
 * client_encoding, and a backslash on standard_conforming_strings.
 */
static bool read_repeatable(const char *text, size_t length)
{
	static const char *const words[] = {
		"select", "insert", "update", "delete", "with", "values", "merge"};
	struct sql_scanner scanner;
	size_t at = 0;

	sql_scanner_init(&scanner, text, length, false);
	while (at < sizeof(words) / sizeof(*words) && !sql_scanner_match(&scanner, words[at]))
		at++;
	if (at == sizeof(words) / sizeof(*words))
		return false;
	for (at = 0; at < length && text[at] != '\0'; at++) {
		if ((unsigned char)text[at] >= 0x80 || text[at] == '\\')
			return false;
	}
	return true;
}

bool statement_is_repeatable(struct statement *statement)
{
	if (statement->repeatable == STATEMENT_UNKNOWN)
		statement->repeatable = statement->topics == 0 &&
				read_repeatable(statement_text(statement), statement->length)
			? STATEMENT_REPEATABLE
			: STATEMENT_NOT_REPEATABLE;
	return statement->repeatable == STATEMENT_REPEATABLE;
}

/* Times that a text has to come, and all texts together before the counts are halved. */
enum { REPEATED = 3, SEEN_MOST = 16 * STATEMENT_SEEN };

static void halve_seen(struct statement_table *table)
{
	for (size_t i = 0; i < STATEMENT_SEEN; i++)
		table->seen[i] /= 2;
	table->seen_count = 0;
}

bool statement_is_repeated(struct statement *statement)
{
	struct statement_table *table = statement->table;
	uint8_t *seen = &table->seen[statement->by_content.hashv & (STATEMENT_SEEN - 1)];

	if (++table->seen_count > SEEN_MOST)
		halve_seen(table);
	*seen += *seen < UINT8_MAX;
	return *seen >= REPEATED;
}

void statement_append_sql(
	struct buffer *buffer, const char *rest, size_t length, const char *search_path)
{
	buffer_append(buffer, prepare, BEFORE_REST);
	buffer_append(buffer, rest, length);
	buffer_append(buffer, "\0\xff\xff", 3);
	if (!search_path)
		search_path = "";
	buffer_append(buffer, search_path, strlen(search_path) + 1);
}

bool statement_is_sql(const struct statement *statement)
{
	return is_sql_content(statement->content, statement->length);
}

const char *statement_sql_rest(const struct statement *statement)
{
	return statement_text(statement) + BEFORE_REST;
}

static bool is_parsed_content(const void *content, size_t length)
{
	struct reader reader;
	uint16_t types;

	reader_init(&reader, content, length);
	reader_string(&reader);
	types = reader_int16(&reader);
	reader_bytes(&reader, (size_t)types * 4);
	return reader_done(&reader);
}

bool statement_is_content(const void *content, size_t length)
{
	return is_parsed_content(content, length) || is_sql_content(content, length);
}

bool statement_is(const struct statement *statement, const void *content, size_t length)
{
	return statement->length == length && memcmp(statement->content, content, length) == 0;
}

unsigned statement_parameter_types(const struct statement *statement)
{
	const uint8_t *types = statement->content + strlen(statement_text(statement)) + 1;

	return statement_is_sql(statement) ? 0 : (unsigned)types[0] << 8 | types[1];
}
