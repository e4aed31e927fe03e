/* SPDX-License-Identifier: ISC */
/*
 * The table of prepared statements: clients that prepare the same text with the same parameter
 * types share one entry.
 *
 * References are held by the clients' names for it (model/client_statements), by the servers
 * that have it prepared (model/server_statements), and by clients for their unnamed statement.
 * After the last reference was dropped a statement is freed at the end of the turn, since a
 * message that is about to be sent may still point into it.
 */
#ifndef PGUSHER_MODEL_STATEMENT_H
#define PGUSHER_MODEL_STATEMENT_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When out of memory uthash leaves an item out of its table instead of ending the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/buffer.h"
#include "base/handles.h"
#include "base/lock.h"
#include "crypt/keyed_hash.h"
#include "net/loop.h"
#include "wire/session_topics.h"

/* Size of the name on servers: `PGBOUNCER_` and the id. */
enum { STATEMENT_NAME_SIZE = 32 };

/* A power of two: texts that share a place are counted together. */
enum { STATEMENT_SEEN = 4096 };

/* Whether statement_is_repeatable() has read the text. */
enum statement_repeatable {
	STATEMENT_UNKNOWN,
	STATEMENT_REPEATABLE,
	STATEMENT_NOT_REPEATABLE,
};

struct statement {
	UT_hash_handle by_content;
	TAILQ_ENTRY(statement) unused; /* without references, until the end of the turn */
	struct statement_table *table;
	uint64_t id; /* counted from 1, never reused */
	uint64_t handle; /* in statement_table.handles; 0: none yet */
	uint64_t parses, binds; /* Parse and Bind messages of clients for it */
	uint32_t holders; /* references */
	uint32_t names; /* references that are names of clients */
	uint32_t servers; /* servers on which it is expected: see model/server_statements */
	uint32_t generation; /* plans prepared in an earlier generation are outdated */
	session_topics topics; /* that it may change: `words`, and what it may call */
	session_topics words; /* see wire/suspicion */
	uint8_t shape; /* number of times that its result columns have changed */
	uint8_t repeatable; /* enum statement_repeatable */
	/* It is to be read before each use: */
	bool may_name; /* it may name another statement: EXECUTE, EXPLAIN, CREATE, PREPARE */
	bool may_unlisten; /* it may be an UNLISTEN */
	uint64_t functions; /* version of the list that `topics` are by; 0: of none */
	uint32_t length; /* of the content */
	uint32_t name_size; /* of `name`, with its NUL */
	char name[STATEMENT_NAME_SIZE]; /* on servers */
	/*
	 * As in Parse after the name: text, NUL, number of types, types. Of a statement prepared by
	 * SQL: see statement_append_sql().
	 */
	uint8_t content[];
};

TAILQ_HEAD(statement_list, statement);

struct statement_table {
	struct statement *by_content; /* uthash */
	struct statement_list unused;
	struct keyed_hash *hash; /* owned by the caller of statement_table_init() */
	struct handles *handles; /* process.handles; NULL: none */
	struct loop *loop;
	struct loop_task freeing; /* frees `unused` at the end of the turn */
	char nowhere[STATEMENT_NAME_SIZE]; /* a random name that no statement has */
	char carrier[STATEMENT_NAME_SIZE]; /* a random name of what runs our PREPARE */
	uint64_t *
		last_id; /* of all tables of the process: the caller of statement_table_init() owns it */
	uint64_t bytes; /* of all statements, and of the clients' names for them */
	uint64_t count;
	/* How often texts came, by their hashes: see statement_is_repeated(). */
	uint8_t seen[STATEMENT_SEEN];
	uint32_t seen_count; /* since they were halved */
};

/* Initialise an empty table. The keyed hash, the loop and the last id must outlive it. */
void statement_table_init(struct statement_table *table, struct loop *loop,
	struct keyed_hash *hash, uint64_t *last_id);

/* Free the table. All references to statements must have been dropped. */
void statement_table_free(struct statement_table *table);

/*
 * Find the statement with this content, or make it. Returns it with a reference for the caller;
 * NULL when out of memory.
 */
struct statement *statement_open(
	struct statement_table *table, const void *content, size_t length);

/*
 * As statement_open(), for a takeover: the statement has the id that it had in the old process,
 * which no other text has here. If the content is there with another id, as two workers of the old
 * process may have had it, there are two statements of it: servers have it by either name.
 */
struct statement *statement_open_as(
	struct statement_table *table, uint64_t id, const void *content, size_t length);

/* New statements get higher ids than this one: another process has used it. */
void statement_skip_ids(struct statement_table *table, uint64_t id);

/* Take another reference; returns the statement. */
struct statement *statement_ref(struct statement *statement);

/* Drop a reference; after the last one it is freed at the end of the turn. NULL is allowed. */
void statement_unref(struct statement *statement);

/*
 * Returns whether these bytes are a valid content: a text, a number of types, the types.
 * Protocol: "Message Formats", Parse. Or that of a statement prepared by SQL.
 */
bool statement_is_content(const void *content, size_t length);

/*
 * Append the content of a statement that is prepared by SQL: PREPARE without the name, that is,
 * with `rest` behind that word; then 65535 in place of a number of types, which such a content
 * does not have; then the search_path that finds its types (NULL: not known), with a NUL.
 */
void statement_append_sql(
	struct buffer *buffer, const char *rest, size_t length, const char *search_path);

/*
 * Returns whether it is a query that does not change the session, and whose text means the same in all
 * sessions. The text is read once.
 */
bool statement_is_repeatable(struct statement *statement);

/*
 * Count that its text came once more. Returns whether it has come several times of late, so that a plan
 * for it is likely to be used again; never false for a text that comes all the time.
 */
bool statement_is_repeated(struct statement *statement);

/* Returns whether it is prepared by SQL. */
bool statement_is_sql(const struct statement *statement);

/* Returns, of a statement prepared by SQL, what stands behind the name in its PREPARE. */
const char *statement_sql_rest(const struct statement *statement);

/* Returns whether the statement has this content. */
bool statement_is(const struct statement *statement, const void *content, size_t length);

/* Returns the number of parameters that have a type in the client's Parse. */
unsigned statement_parameter_types(const struct statement *statement);

/* Returns its size in memory, in bytes. */
size_t statement_size(const struct statement *statement);

/* Returns the text of the query. */
static inline const char *statement_text(const struct statement *statement)
{
	return (const char *)statement->content;
}

#endif
