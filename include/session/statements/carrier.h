/* SPDX-License-Identifier: ISC */
/*
 * Messages by pgusher that run PREPARE on a server, before a message of the client that uses a
 * statement prepared by SQL.
 *
 * The SQL is run as a statement of the extended protocol, the carrier, with a portal of the same
 * name (statement_table.carrier): if it fails the server skips what follows up to a Sync, and the
 * client gets the error. Their answers are dropped. Protocol: "Message Flow", Extended Query.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_CARRIER_H
#define PGUSHER_SESSION_STATEMENTS_CARRIER_H

#include "session/relay/relay.h"

struct client_statement;
struct server_statement;
struct statement;

/*
 * Insert PREPARE of the statement, which is prepared by SQL, under our name. There must be room:
 * prepare_has_room_for_sql(), prepare_open_table().
 */
void carrier_insert(struct relay_run *run, struct server_statement *entry);

/*
 * As carrier_insert(), but under the client's own name, which was unlisted for that with one more
 * operation pending. Returns false, and inserts nothing, when out of memory.
 */
bool carrier_insert_as(struct relay_run *run, struct client_statement *entry);

/*
 * Insert a Parse of the carrier: the statement's text, in which another name of a statement, in
 * quotes, stands from `begin` to `end`. The client's message uses the carrier then.
 */
void carrier_insert_renamed(struct relay_run *run, const struct statement *statement,
	size_t begin, size_t end, const char *name);

/* Insert a Sync whose answer is dropped. */
void carrier_insert_sync(struct relay_run *run);

/*
 * Before a PREPARE of a name that the client has: make an empty statement with the carrier's name,
 * so that a PREPARE of that name fails if nothing else does. Ends with a Sync.
 */
void carrier_insert_namesake(struct relay_run *run);

#endif
