/* SPDX-License-Identifier: ISC */
/*
 * The statements that one server has prepared for us, and what is on its way to change that.
 *
 * An operation is what a request in flight means for prepared statements; its request is marked
 * (request.noted), and both stand in the same order. What a server has is known from its answers
 * only. What it will have when all that is in flight has been done is what the next message is
 * decided by; an error undoes what it keeps from being done.
 */
#ifndef PGUSHER_MODEL_SERVER_STATEMENTS_H
#define PGUSHER_MODEL_SERVER_STATEMENTS_H

#include "model/client_statements.h"
#include "model/statement.h"

/* One statement on one server. */
struct server_statement {
	UT_hash_handle by_statement; /* the key is the pointer */
	TAILQ_ENTRY(server_statement) recency; /* while expected; most recently used first */
	struct statement *statement; /* counted */
	uint32_t generation; /* of the plan: as the statement's when it was prepared last */
	uint32_t batch; /* of the server (server_link.batch), in which it last changed */
	uint32_t changes; /* operations in flight that prepare or close it */
	bool present; /* by the answers so far */
	bool expected; /* by all that is in flight */
};

/* Numbers are for ever: they are told to other processes. */
enum statement_operation_kind {
	STATEMENT_PREPARE = 0, /* Parse was sent */
	STATEMENT_CLOSE = 1, /* Close was sent */
	STATEMENT_PREPARED = 2, /* nothing was sent: the client is owed a ParseComplete */
	STATEMENT_CLOSED = 3, /* nothing was sent: the client is owed a CloseComplete */
	STATEMENT_UNNAMED = 4, /* Parse of the unnamed statement was sent */
	STATEMENT_DEALLOCATE = 5, /* a Query of ours stands for the client's */
};

struct statement_operation {
	enum statement_operation_kind kind;
	struct server_statement *server; /* PREPARE, CLOSE */
	struct client_statement *client; /* the name that it is about; NULL: none */
	struct statement *before; /* UNNAMED: the client's before; counted; NULL: none */
	uint32_t batch; /* UNNAMED: of the server, in which it was sent */
};

TAILQ_HEAD(server_statement_list, server_statement);

struct server_statements {
	struct server_statement *by_statement; /* uthash */
	struct server_statement_list recency; /* those that are expected */
	uint32_t count; /* of these */
	uint64_t bytes; /* of their texts */
	struct statement_operation *operations; /* a ring, oldest first; NULL until needed */
	uint32_t first, in_flight, capacity;
	uint32_t
		forgotten; /* so many of the oldest say of no unnamed statement what was before */
	bool changed; /* since all were cleared last */
};

/* Without any statement. NULL: no memory. */
struct server_statements *server_statements_new(void);

/* The server has gone, and no operation is in flight. NULL is allowed. */
void server_statements_free(struct server_statements *statements);

/* NULL: it neither has it nor will have, nor is anything in flight about it. */
struct server_statement *server_statements_find(
	const struct server_statements *statements, const struct statement *statement);

/* The same, made if need be. NULL: no memory. */
struct server_statement *server_statements_open(
	struct server_statements *statements, struct statement *statement);

/* By what is in flight the server will, or will not, have it; it becomes most recently used. */
void server_statements_expect(
	struct server_statements *statements, struct server_statement *entry, bool expected);

/* It is being used. */
void server_statements_touch(
	struct server_statements *statements, struct server_statement *entry);

/* The one to be given up first; NULL: none is expected. */
struct server_statement *server_statements_oldest(const struct server_statements *statements);

/* Forget the entry if nothing is left to know about it. */
void server_statements_settle(
	struct server_statements *statements, struct server_statement *entry);

/* The server has none any more, but for what is still in flight. */
void server_statements_clear(struct server_statements *statements);

/* The plans of all that it has may be out of date, there and wherever else they are. */
void server_statements_distrust(struct server_statements *statements);

/* Have room for so many more operations. False: no memory. */
bool server_statements_reserve(struct server_statements *statements, uint32_t count);

/* Add one; there must be room. */
void server_statements_push(
	struct server_statements *statements, const struct statement_operation *operation);

/* Take the oldest out; false: there is none. */
bool server_statements_pop(
	struct server_statements *statements, struct statement_operation *out);

/* The oldest; NULL: none. */
const struct statement_operation *server_statements_next(
	const struct server_statements *statements);

#endif
