/* SPDX-License-Identifier: ISC */
/*
 * What is noted of the queries that run, for the slow-query log: one record for each server, made
 * when it first runs a query while the log is on, and used again for each query that follows.
 *
 * registry.query_watch is NULL while the log is off. Times are microseconds of the loop's clock.
 */
#ifndef PGUSHER_SESSION_SLOW_QUERY_WATCH_H
#define PGUSHER_SESSION_SLOW_QUERY_WATCH_H

#include "model/registry.h"
#include "model/statistics/slow_log.h"

enum {
	/* The end of a longer text, in which the comment of a tracer is looked for. */
	WATCHED_TAIL_SIZE = 256,
};

struct watched_query {
	uint64_t client; /* id of the client's link; 0: it runs no query */
	usec_t started; /* the client's query_start */
	usec_t ended; /* all is answered, and the client has not taken it all; 0: it is not */
	usec_t client_since; /* since when only the client can go on; 0: the server can */
	usec_t queue_time, client_time;
	uint64_t rows, sent, received; /* as in struct slow_query */
	struct statement *statement; /* a reference: it has the text; NULL: `head` has */
	uint64_t text_length; /* of a text that is longer than the head; 0: not known */
	uint32_t head_length, tail_length; /* the head ends earlier if it has a NUL */
	bool has_text, has_parameters; /* they were looked for */
	char sqlstate[6]; /* of the first error */
	char name[SLOW_NAME_SIZE]; /* of the statement */
	char parameters[SLOW_PARAMETERS_MAX + 1];
	char tail[WATCHED_TAIL_SIZE];
	char head[SLOW_TEXT_MAX];
};

struct query_watch {
	/* Owned: of the pair that was split last, by a closing link; or NULL. */
	struct watched_query *closing;
};

/* Free the records of all servers and of the watch, with what they refer to. */
void query_watch_clear(struct query_watch *watch, const struct registry *registry);

/*
 * Returns the record of a server, which is made if there is none; NULL when out of memory, or if the
 * server is closed.
 */
struct watched_query *query_watch_open(struct server_link *server);

/* Take the record of a server away from it. The caller owns it; NULL: the server has none. */
struct watched_query *query_watch_take(struct server_link *server);

/* Returns whether the record is about the present query of the client. */
static inline bool watched_query_is_of(
	const struct watched_query *query, const struct client_link *client)
{
	return query->started == client->query_start && query->client == client->link.id;
}

/* Begin a query of the client, which started at this time; what was noted before is dropped. */
void watched_query_begin(
	struct watched_query *query, const struct client_link *client, usec_t started);

/* Drop what was noted: no query runs. */
static inline void watched_query_end(struct watched_query *query)
{
	if (query->statement)
		statement_unref(query->statement);
	query->statement = NULL;
	query->client = 0;
	query->ended = 0;
}

/* Free a record that was taken. NULL is allowed. */
void watched_query_free(struct watched_query *query);

#endif
