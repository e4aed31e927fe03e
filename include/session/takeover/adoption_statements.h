/* SPDX-License-Identifier: ISC */
/*
 * Prepared statements that another process has told of, by its numbers, which stay their numbers:
 * servers have them under names that are made of these. The part of session/takeover/adoption that gives
 * clients, servers and what is in flight between them their statements back.
 *
 * Nothing that was told is believed: what cannot be is false, and its link is left out.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_STATEMENTS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_STATEMENTS_H

#include "model/registry.h"
#include "session/takeover/statement_record.h"

struct adoption_statements;

/* NULL: no memory. */
struct adoption_statements *adoption_statements_new(struct registry *registry);

/* The statements stay with those who have got them. NULL is allowed. */
void adoption_statements_free(struct adoption_statements *told);

/* One record, whose kind has been read. False: it is broken, or no memory. */
bool adoption_statements_take(struct adoption_statements *told, struct reader *reader);

/* What a client has; what it has got before it fails goes with it. */
bool adoption_statements_fill_client(const struct adoption_statements *told,
	struct client_link *client, const struct statement_record *record);

/* What a server has, but for operations in flight. */
bool adoption_statements_fill_server(const struct adoption_statements *told,
	struct server_link *server, const struct statement_record *record);

/*
 * The operations of a server that has been joined to its client, or has none, of its requests that
 * say that they have one. If that fails what is in flight has to be settled as when both part.
 */
bool adoption_statements_fill_operations(const struct adoption_statements *told,
	struct server_link *server, const struct tagged_field *operations);

/* Servers of a PgBouncer may have statements of its own numbers: ours go on where none can be. */
void adoption_statements_keep_clear(struct registry *registry);

#endif
