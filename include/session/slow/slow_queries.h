/* SPDX-License-Identifier: ISC */
/*
 * Follows queries from their first message to the end of their answer, for the slow-query log. The
 * functions are called while registry.query_watch is not NULL.
 *
 * A query is one of the statistics (model/statistics/stats). Its time has three parts: in the queue
 * for a server; for the client, while it does not take its answer, or owes the rest of its messages
 * or COPY data and the server waits for that; and the rest, for the server. The part of the queue is
 * that of the pair (client_link.served). Replication is not logged.
 *
 * Most queries are fast, and answered in one run. So the text is kept at the end of the client's run,
 * and answers are counted at the end of a server's run only if the query was slow or has not ended.
 */
#ifndef PGUSHER_SESSION_SLOW_SLOW_QUERIES_H
#define PGUSHER_SESSION_SLOW_SLOW_QUERIES_H

#include "session/relay/relay.h"
#include "session/slow/query_watch.h"

/* Events of the relay: see struct relay_events. */
void slow_queries_client_ran(const struct relay_run *run, const uint8_t *data);
void slow_queries_server_ran(struct relay_run *run);

/* A judge has passed or dropped the Bind at `at`. */
void slow_queries_bind(const struct relay_run *run, const uint8_t *at);

/* A judge has passed or dropped the end of COPY data of the client. */
void slow_queries_copy_end(const struct relay_run *run);

/* A judge has passed an error, or the request for COPY data, of the server. */
void slow_queries_error(struct relay_run *run, const uint8_t *at, const struct frame *frame);
void slow_queries_copy_in(struct relay_run *run);

/* Count the rows and bytes of the answers from run->start to run->at. */
void slow_queries_count(struct relay_run *run);

/*
 * Begin the record of the query that this paired server runs. What was before the log was turned on,
 * or in another process, is not in it.
 */
void slow_queries_note_running(struct server_link *server);

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
