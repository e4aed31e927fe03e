/* SPDX-License-Identifier: ISC */
/*
 * Follows queries from their first message to the end of their answer, for the slow-query log. The
 * functions are called while registry.query_watch is not NULL.
 *
 * A query is one of the statistics (model/statistics/stats). Its time has three parts: in the queue
 * for a server; for the client, while it does not take its answer, or owes the rest of its messages
 * or COPY data and the server waits for that; and the rest, for the server. The part of the queue is
 * that of the pair (client_link.served). Replication is not logged.
 */
#ifndef PGUSHER_SESSION_SLOW_SLOW_QUERIES_H
#define PGUSHER_SESSION_SLOW_SLOW_QUERIES_H

#include "session/relay/relay.h"
#include "session/slow/query_watch.h"

/*
 * Begin the record of the client's present query. What was before is not in it if the query is older
 * than the log, or came from another process. Returns NULL if no query runs, or out of memory.
 */
struct watched_query *slow_queries_begin(const struct relay_run *run);

/* Returns the record of the client's present query, which begins if there is none; or NULL. */
static inline struct watched_query *slow_queries_present(const struct relay_run *run)
{
	struct watched_query *query;

	if (!run->client || !run->server)
		return NULL;
	query = query_watch_find(link_registry(run->from)->query_watch, run->server);
	return query && watched_query_is_of(query, run->client) ? query
								: slow_queries_begin(run);
}

/*
 * A judge has passed or dropped this message of a paired client, which began at `at` and of which
 * the bytes up to run->end have arrived.
 */
void slow_queries_message(
	struct relay_run *run, const uint8_t *at, const struct frame *frame, bool whole);

/* COPY data of the client are passed to its server. */
void slow_queries_copy_data(struct relay_run *run);

/* A judge has passed an error, or the request for COPY data, of the server. */
void slow_queries_error(struct relay_run *run, const uint8_t *at, const struct frame *frame);
void slow_queries_copy_in(struct relay_run *run);

/* All is answered of the client's query that started then; the client may not have the answer yet. */
void slow_queries_answered(struct relay_run *run, usec_t started);

/* A run of a paired client or server is over, and what it has passed was sent. */
void slow_queries_run_ended(struct server_link *server);

/* The client, or the server, has taken all that was to be sent to it. */
void slow_queries_client_drained(struct client_link *client);
void slow_queries_server_drained(struct server_link *server);

/*
 * The pair of this link, one of which is being closed, is about to be split. Then the client is
 * closed for this reason, or it goes on with another server. The server is closed.
 */
void slow_queries_closing(const struct link *link);
void slow_queries_client_closed(
	struct client_link *client, enum client_state state, const struct failure *why);
void slow_queries_server_closed(struct server_link *server);

/*
 * The query of a client ends for this reason before a server has received any of it. The client's
 * query_start, and its messages if it holds them, are as they were.
 */
void slow_queries_unsent(const struct client_link *client, enum reason reason);

/* Returns the number of rows that a command tag tells: `SELECT 5`, `INSERT 0 1`; 0: none. */
uint64_t slow_queries_rows_of(const uint8_t *tag, size_t length);

#endif
