/* SPDX-License-Identifier: ISC */
/*
 * The names of one client's prepared statements.
 *
 * They are in a hash table of our own: uthash needs 56 bytes for an entry, which is much for an
 * application with two hundred statements on each of ten thousand connections.
 */
#ifndef PGUSHER_MODEL_CLIENT_STATEMENTS_H
#define PGUSHER_MODEL_CLIENT_STATEMENTS_H

#include <string.h>

#include "model/statement.h"

/* One name. It is freed when it is not listed and has no operations in flight. */
struct client_statement {
	struct statement *statement; /* a reference */
	uint32_t hash;
	uint16_t pending; /* operations in flight that will confirm or undo it */
	uint8_t shape; /* the statement's shape when the client last learnt its columns */
	bool confirmed : 1; /* its ParseComplete has arrived */
	bool listed : 1; /* in the table: the next Bind of this name finds it */
	char name[];
};

/* Number of closed statements that are remembered for each client. */
enum { CLOSED_STATEMENTS = 4 };

struct client_statements {
	struct statement_table *table;
	struct client_statement **slots; /* a power of two of them, at most 4/5 in use */
	uint32_t capacity, count;
	uint64_t bytes; /* of the names, and of the texts of their statements */
	struct client_statement *recent; /* the last one found, often used again; NULL: none */
	size_t recent_size; /* of its name, with its NUL */
	uint64_t closed[CLOSED_STATEMENTS]; /* ids of the statements that it closed last */
	unsigned closed_next;
	char *deallocates; /* owned: the name that its next Execute deallocates; NULL: none */
	bool remembers; /* the client has asked for columns, and may not ask again */
	bool told; /* it got the error of an outdated plan, and will prepare again */
	bool changed; /* since client_statements_clear() was called last */
	bool by_sql; /* it has, or had, a statement that is prepared by SQL */
};

/* Make an empty set of names. Returns NULL when out of memory. */
struct client_statements *client_statements_new(struct statement_table *table);

/* Free all names. No operation of the client may be in flight. NULL is allowed. */
void client_statements_free(struct client_statements *statements);

/* As client_statements_find(), for a name other than the last one found. */
struct client_statement *client_statements_look_up(
	struct client_statements *statements, const char *name, size_t size);

/* Returns the last name found if the text begins with it and its NUL; else NULL. */
static inline struct client_statement *client_statements_repeated(
	const struct client_statements *statements, const void *text, size_t length)
{
	return statements->recent && statements->recent_size <= length &&
			memcmp(text, statements->recent->name, statements->recent_size) == 0
		? statements->recent
		: NULL;
}

/* Returns the listed name of `size` bytes, with its NUL; NULL when there is none. */
static inline struct client_statement *client_statements_find(
	struct client_statements *statements, const char *name, size_t size)
{
	struct client_statement *repeated = client_statements_repeated(statements, name, size);

	return repeated ? repeated : client_statements_look_up(statements, name, size);
}

/*
 * Returns a listed name of the statement that servers call so; NULL if there is none. As with
 * client_statements_had(), very many names are not all searched.
 */
const char *client_statements_name_of(
	const struct client_statements *statements, const char *name, size_t length);

/*
 * Add a name for a statement and take a reference to it. The name must not be listed. Returns
 * NULL when out of memory.
 */
struct client_statement *client_statements_add(
	struct client_statements *statements, const char *name, struct statement *statement);

/*
 * Add a name, received from the old process of a takeover, that is not listed and has one
 * operation in flight. Returns NULL when out of memory.
 */
struct client_statement *client_statements_add_unlisted(
	struct client_statements *statements, const char *name, struct statement *statement);

/* Remove the name from the table. It is freed now, or after its last operation in flight. */
void client_statements_unlist(
	struct client_statements *statements, struct client_statement *entry);

/*
 * List the name again; another entry of the same name is unlisted. Returns false when out of
 * memory.
 */
bool client_statements_relist(
	struct client_statements *statements, struct client_statement *entry);

/*
 * One operation in flight less; frees the entry if that was the last one and it is not listed.
 */
void client_statements_settle(
	struct client_statements *statements, struct client_statement *entry);

/*
 * The next Execute of the client deallocates this name, which is copied; NULL: no name. Returns
 * false when out of memory.
 */
bool client_statements_will_deallocate(struct client_statements *statements, const char *name);

/* Unlist all names that are confirmed and have nothing in flight: for DEALLOCATE ALL. */
void client_statements_clear(struct client_statements *statements);

/* Remember that the client has closed this statement itself. */
void client_statements_note_closed(
	struct client_statements *statements, const struct statement *statement);

/*
 * Returns whether the client has this statement under any name, or has closed it lately. May
 * return false wrongly for a client with very many names, which are not all searched.
 */
bool client_statements_had(
	const struct client_statements *statements, const struct statement *statement);

#endif
