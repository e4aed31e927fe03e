/* SPDX-License-Identifier: ISC */
/*
 * The texts of prepared statements, each of them once: whoever prepares the same text with the
 * same parameter types shares it with all the others.
 *
 * Holders: the names that clients have for it (model/client_statements), the servers that have it
 * prepared (model/server_statements), and clients whose unnamed statement it is. A statement that
 * its last holder let go of goes at the end of the turn, since a message that is about to be sent
 * may still point into it.
 */
#ifndef PGUSHER_MODEL_STATEMENT_H
#define PGUSHER_MODEL_STATEMENT_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Without memory uthash leaves an item out of its table instead of ending the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/handles.h"
#include "crypt/keyed_hash.h"
#include "net/loop.h"

/* `PGBOUNCER_` and the number: what it is called on servers. */
enum { STATEMENT_NAME_SIZE = 32 };

struct statement {
	UT_hash_handle by_content;
	TAILQ_ENTRY(statement) dying; /* without holders, until the end of the turn */
	struct statement_table *table;
	uint64_t id; /* counted from 1, never used twice */
	uint64_t handle; /* as a pool's */
	uint64_t parses, binds; /* by clients: Parse messages, and Bind messages, of it */
	uint32_t holders;
	uint32_t names; /* of the holders, those that are names of clients */
	uint32_t servers; /* that have it, or will when all that is in flight has been done */
	uint32_t generation; /* plans made in an earlier one are out of date */
	uint8_t shape; /* counts how often its columns were found to be others */
	uint32_t length;
	uint32_t name_size; /* of its name on servers, with the NUL */
	char name[STATEMENT_NAME_SIZE]; /* on servers */
	uint8_t content[]; /* as in Parse, behind the name: text, NUL, number of types, types */
};

TAILQ_HEAD(statement_list, statement);

struct statement_table {
	struct statement *by_content; /* uthash */
	struct statement_list dying;
	struct keyed_hash *hash; /* lent */
	struct handles *handles; /* lent; NULL: nobody tells of statements */
	struct loop *loop;
	struct loop_task burial;
	char nowhere[STATEMENT_NAME_SIZE]; /* the name of no statement: nobody can guess it */
	uint64_t last_id;
	uint64_t bytes; /* of all statements, and of the names that clients have for them */
	uint64_t count;
};

/* An empty table. The hash is that of the registry, since clients choose the texts. */
void statement_table_init(
	struct statement_table *table, struct loop *loop, struct keyed_hash *hash);

/* All statements must have been let go of. */
void statement_table_free(struct statement_table *table);

/* The statement with this content, made if need be; counted for the caller. NULL: no memory. */
struct statement *statement_open(
	struct statement_table *table, const void *content, size_t length);

/* The same with a number that another process has given it, which must be free here. */
struct statement *statement_open_as(
	struct statement_table *table, uint64_t id, const void *content, size_t length);

struct statement *statement_ref(struct statement *statement);

/* NULL is allowed. */
void statement_unref(struct statement *statement);

/* Is it a content at all? Protocol: "Message Formats", Parse: a text, a number of types, the types. */
bool statement_is_content(const void *content, size_t length);

/* Is this its content? */
bool statement_is(const struct statement *statement, const void *content, size_t length);

/* Of how many parameters its client has told the type. */
unsigned statement_parameter_types(const struct statement *statement);

/* Bytes that it takes. */
size_t statement_size(const struct statement *statement);

/* The query in its content. */
static inline const char *statement_text(const struct statement *statement)
{
	return (const char *)statement->content;
}

#endif
