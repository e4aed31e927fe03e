/* SPDX-License-Identifier: ISC */
/*
 * The names that one client has for prepared statements.
 *
 * Found by hash in a table of our own: a handle of uthash takes 56 bytes, and an application with
 * two hundred statements on each of ten thousand connections pays for each byte.
 */
#ifndef PGUSHER_MODEL_CLIENT_STATEMENTS_H
#define PGUSHER_MODEL_CLIENT_STATEMENTS_H

#include <string.h>

#include "model/statement.h"

/* One name. Its memory goes when it is neither listed nor has operations in flight. */
struct client_statement {
	struct statement *statement; /* counted */
	uint32_t hash;
	uint16_t pending; /* operations in flight that will confirm it or undo it */
	uint8_t shape; /* the statement's, as far as the client knows */
	bool confirmed : 1; /* its ParseComplete has come */
	bool listed : 1; /* the client's next Bind will find it */
	char name[];
};

/* How many closed statements a client is remembered by. */
enum { CLOSED_STATEMENTS = 4 };

struct client_statements {
	struct statement_table *table;
	struct client_statement **slots; /* a power of two of them, at most 4/5 in use */
	uint32_t capacity, count;
	uint64_t bytes; /* of the names, and of the texts they stand for */
	struct client_statement
		*recent; /* found last: loops use one statement again and again */
	size_t recent_size; /* of its name, with its NUL */
	uint64_t closed[CLOSED_STATEMENTS]; /* numbers of those that it closed last */
	unsigned closed_next;
	char *deallocates; /* owned: its next Execute ends this name; NULL: none */
	bool remembers; /* the client has asked for columns, and may not ask again */
	bool told; /* it has heard of a plan out of date, and will prepare that anew */
	bool changed; /* since all were cleared last */
};

/* Without any name. NULL: no memory. */
struct client_statements *client_statements_new(struct statement_table *table);

/* The client goes. No operation of its may be in flight. NULL is allowed. */
void client_statements_free(struct client_statements *statements);

/* As client_statements_find(), where it is not the one found last. */
struct client_statement *client_statements_look_up(
	struct client_statements *statements, const char *name, size_t size);

/* Does what is there begin with the name that was found last? NULL: no. */
static inline struct client_statement *client_statements_repeated(
	const struct client_statements *statements, const void *text, size_t length)
{
	return statements->recent && statements->recent_size <= length &&
			memcmp(text, statements->recent->name, statements->recent_size) == 0
		? statements->recent
		: NULL;
}

/* By name, of `size` bytes with its NUL; NULL: it has no such statement. */
static inline struct client_statement *client_statements_find(
	struct client_statements *statements, const char *name, size_t size)
{
	struct client_statement *repeated = client_statements_repeated(statements, name, size);

	return repeated ? repeated : client_statements_look_up(statements, name, size);
}

/* A new name, which must not be listed, for a statement, which is counted. NULL: no memory. */
struct client_statement *client_statements_add(
	struct client_statements *statements, const char *name, struct statement *statement);

/*
 * A name that is not found any more, with one operation in flight: another process has told of it.
 * NULL: no memory.
 */
struct client_statement *client_statements_add_unlisted(
	struct client_statements *statements, const char *name, struct statement *statement);

/* Do not find it any more. It stays as long as operations are in flight. */
void client_statements_unlist(
	struct client_statements *statements, struct client_statement *entry);

/* Find it again; whatever took its name is not found any more. False: no memory. */
bool client_statements_relist(
	struct client_statements *statements, struct client_statement *entry);

/* An operation that pointed at it has ended. NULL is allowed. */
void client_statements_settle(
	struct client_statements *statements, struct client_statement *entry);

/* Its next Execute ends this name, which is copied; NULL: none. False: no memory. */
bool client_statements_will_deallocate(struct client_statements *statements, const char *name);

/* Unlist all that have been confirmed and have nothing in flight: DEALLOCATE ALL. */
void client_statements_clear(struct client_statements *statements);

/* The client has closed it by its own will. */
void client_statements_note_closed(
	struct client_statements *statements, const struct statement *statement);

/*
 * Has the client this statement, or had it lately, under whatever name? Of a client with very
 * many names not all are asked.
 */
bool client_statements_had(
	const struct client_statements *statements, const struct statement *statement);

#endif
