/* SPDX-License-Identifier: ISC */
/*
 * Adopts the prepared statements of another process: their texts, the names that clients have
 * for them, the servers on which they are prepared, and their operations in flight. Statements
 * keep their numbers, since their names on servers are made of these.
 *
 * Records are checked: if one is inconsistent the function returns false, and the link is left
 * out.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_STATEMENTS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_STATEMENTS_H

#include "model/registry.h"
#include "session/takeover/statement_record.h"

struct adoption_statements;

/* Return an empty table for the caller to free, or NULL when out of memory. */
struct adoption_statements *adoption_statements_new(struct registry *registry);

/*
 * Free the table. Statements that adopted clients or servers have stay. NULL is allowed.
 */
void adoption_statements_free(struct adoption_statements *adopted);

/*
 * Adopt the text of one statement, from a record, behind its kind. Returns false when
 * the record is malformed, or when out of memory.
 */
bool adoption_statements_take(struct adoption_statements *adopted, struct reader *reader);

/*
 * Give a client its statements. When this fails the client keeps those that it has got: freeing
 * the client frees them.
 */
bool adoption_statements_fill_client(const struct adoption_statements *adopted,
	struct client_link *client, const struct statement_record *record);

/* Give a server its statements, but not the operations in flight. Fails like the above. */
bool adoption_statements_fill_server(const struct adoption_statements *adopted,
	struct server_link *server, const struct statement_record *record);

/*
 * Give a server its operations in flight: one for each of its requests with REQUEST_NOTED. The
 * server has been joined to its client, if it has one. When this fails the caller must undo
 * what is in flight by statements_unpair(), or close the server.
 */
bool adoption_statements_fill_operations(const struct adoption_statements *adopted,
	struct server_link *server, const struct tagged_field *operations);

/*
 * Servers taken over from a PgBouncer may have statements prepared under its numbers: make new
 * statements here use numbers that it cannot have used.
 */
void adoption_statements_skip_pgbouncer_numbers(struct registry *registry);

#endif
