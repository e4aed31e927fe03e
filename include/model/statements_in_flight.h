/* SPDX-License-Identifier: ISC */
/*
 * What the requests in flight do to prepared statements: operations are done when the server
 * has answered them, and undone when the server skips them after an error or the pair is split.
 *
 * It changes only what is known of the client's and the server's statements (client_statements,
 * server_statements) and of requests; it sends nothing. Protocol: "Message Flow", Pipelining.
 */
#ifndef PGUSHER_MODEL_STATEMENTS_IN_FLIGHT_H
#define PGUSHER_MODEL_STATEMENTS_IN_FLIGHT_H

#include "model/client_link.h"
#include "model/server_link.h"
#include "model/server_statements.h"

/* The server has answered its oldest request, which was noted: the operation is done. */
void statements_done(struct server_link *server);

/* The server skips requests after an error (requests.lost): undo their operations. */
void statements_lost(struct server_link *server);

/*
 * The server's oldest request has failed: the statement of a Parse does not exist, nor its
 * name.
 */
void statements_failed(struct server_link *server);

/* Returns true if pgusher itself has to answer the server's oldest request. */
static inline bool statements_are_due(const struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);

	return first && request_is(first, REQUEST_ANSWER);
}

/*
 * Returns the client's name for the last operation in flight that may give or take this name; NULL:
 * none of the last ones.
 */
const struct client_statement *statements_undecided(
	const struct server_link *server, const char *name);

/*
 * Returns the client's name of the statement that the server calls so, of one of the operations in
 * flight; NULL: there is none.
 */
const char *statements_name_in_flight(
	const struct server_link *server, const char *name, size_t length);

/* Returns the operation of the server's oldest request; NULL: that has none. */
static inline const struct statement_operation *statements_oldest(
	const struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);

	return first && (first->action & REQUEST_NOTED)
		? server_statements_next(server->statements)
		: NULL;
}

/*
 * The server has forgotten all statements (DEALLOCATE ALL, DISCARD ALL), and so has the client
 * that asked for it. client may be NULL.
 */
void statements_forget_all(struct server_link *server, struct client_link *client);

/*
 * The client has no unnamed statement from here on. A Parse of an earlier batch that is in
 * flight will not bring one back if it fails.
 */
void statements_forget_unnamed(struct server_link *server);

/* For statements_unpair(): undo what is in flight for the client. */
void statements_undo(struct server_link *server, struct client_link *client);

/* The pair is split: requests in flight no longer concern the client. */
static inline void statements_unpair(struct server_link *server, struct client_link *client)
{
	server->unnamed_passing = server->awaits_bind = server->forgetting = false;
	server->kept_requests = 0;
	server->batch_progress = BATCH_ENDED;
	if (server->statements && server->statements->in_flight > 0)
		statements_undo(server, client);
}

/* Free what a closing client, or a closing server, has. They must have been unpaired. */
void statements_client_closed(struct client_link *client);
void statements_server_closed(struct server_link *server);

#endif
