/* SPDX-License-Identifier: ISC */
/*
 * The statements that one server has prepared for clients, and the operations in flight that
 * change them.
 *
 * An operation describes what a request in flight does to prepared statements. Its request is
 * marked with REQUEST_NOTED, and both are in the same order. The answers of the server show
 * which statements are `present`. Decisions about the next message use the statements that are
 * `expected`, that is, present when all operations in flight have succeeded. After an error the
 * operations that were skipped are undone.
 */
#ifndef PGUSHER_MODEL_SERVER_STATEMENTS_H
#define PGUSHER_MODEL_SERVER_STATEMENTS_H

#include "model/client_statements.h"
#include "model/statement.h"

/* One statement on one server. */
struct server_statement {
	UT_hash_handle by_statement; /* the key is the pointer */
	TAILQ_ENTRY(server_statement) recency; /* if expected; most recently used first */
	struct statement *statement; /* a reference */
	uint32_t generation; /* of the statement when it was last prepared here */
	uint32_t batch; /* server_link.batch when it last changed */
	uint32_t changes; /* operations in flight that prepare or close it */
	bool present; /* according to the answers so far */
	bool expected; /* present when all operations in flight have succeeded */
};

/* The numbers must not change: a takeover sends them. */
enum statement_operation_kind {
	STATEMENT_PREPARE = 0, /* Parse was sent */
	STATEMENT_CLOSE = 1, /* Close was sent */
	STATEMENT_PREPARED = 2, /* nothing was sent: the client is to get a ParseComplete */
	STATEMENT_CLOSED = 3, /* nothing was sent: the client is to get a CloseComplete */
	STATEMENT_UNNAMED = 4, /* Parse of the unnamed statement was sent */
	STATEMENT_DEALLOCATE = 5, /* a Query of ours was sent in place of the client's */
	STATEMENT_EXECUTE = 6, /* a Query that uses a statement was sent, with our name in it */
	STATEMENT_HAND_OVER =
		7, /* the server is given a statement under the client's own name */
};

struct statement_operation {
	enum statement_operation_kind kind;
	struct server_statement *server; /* PREPARE, CLOSE */
	struct client_statement *client; /* the client's name for the statement; NULL: none */
	/* UNNAMED: the client's unnamed statement before this one, a reference; NULL: none. */
	struct statement *before;
	uint32_t batch; /* UNNAMED: server_link.batch when it was sent */
	/* PREPARE, EXECUTE as a Query: it has so many more characters than the client's. */
	int16_t longer;
	/*
	 * EXECUTE: its PREPARE has failed, and the client has got that error: it must get no other
	 * answer but ReadyForQuery.
	 */
	bool spoilt;
};

TAILQ_HEAD(server_statement_list, server_statement);

struct server_statements {
	struct server_statement *by_statement; /* uthash */
	struct server_statement_list recency; /* the expected ones */
	uint32_t count; /* number of the expected ones */
	uint64_t bytes; /* length of their contents */
	struct statement_operation *operations; /* a ring, oldest first; NULL until needed */
	uint32_t first, in_flight, capacity;
	/* So many of the oldest operations have a `before` that no longer counts. */
	uint32_t forgotten;
	bool changed; /* since server_statements_clear() was called last */
};

/* Make an empty set. Returns NULL when out of memory. */
struct server_statements *server_statements_new(void);

/* Free the statements of a closed server. No operation may be in flight. NULL is allowed. */
void server_statements_free(struct server_statements *statements);

/*
 * Returns the entry of a statement; NULL if it is neither present nor expected nor in flight.
 */
struct server_statement *server_statements_find(
	const struct server_statements *statements, const struct statement *statement);

/*
 * As server_statements_find(), but makes an entry, with a reference to the statement, if there
 * is none. Returns NULL when out of memory.
 */
struct server_statement *server_statements_open(
	struct server_statements *statements, struct statement *statement);

/* Set `expected`; an expected statement becomes the most recently used one. */
void server_statements_expect(
	struct server_statements *statements, struct server_statement *entry, bool expected);

/* Make an expected statement the most recently used one. */
void server_statements_touch(
	struct server_statements *statements, struct server_statement *entry);

/* Returns the least recently used statement, to be evicted; NULL if none is expected. */
struct server_statement *server_statements_oldest(const struct server_statements *statements);

/*
 * Free the entry if it is neither present nor expected nor changed by an operation in flight.
 */
void server_statements_settle(
	struct server_statements *statements, struct server_statement *entry);

/* The server has deallocated all statements; operations in flight still count. */
void server_statements_clear(struct server_statements *statements);

/* The plans of its statements may be outdated, here and on other servers: new generation. */
void server_statements_distrust(struct server_statements *statements);

/* Have room for `count` more operations. Returns false when out of memory. */
bool server_statements_reserve(struct server_statements *statements, uint32_t count);

/* Add an operation, which is copied; there must be room. */
void server_statements_push(
	struct server_statements *statements, const struct statement_operation *operation);

/* Remove the oldest operation and copy it to `out`. Returns false if there is none. */
bool server_statements_pop(
	struct server_statements *statements, struct statement_operation *out);

/* Returns the oldest operation, valid until the ring changes; NULL if there is none. */
const struct statement_operation *server_statements_next(
	const struct server_statements *statements);

/*
 * The PREPARE before the oldest operation has failed, and the client gets its error. If that
 * operation is an EXECUTE, its own error is for nothing but the log.
 */
void server_statements_spoil_next(struct server_statements *statements);

#endif
