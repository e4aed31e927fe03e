/* SPDX-License-Identifier: ISC */
#include "session/slow/query_watch.h"

#include <stdlib.h>
#include <string.h>

/* --- records ------------------------------------------------------------------------------ */

void watched_query_begin(
	struct watched_query *query, const struct client_link *client, usec_t started)
{
	if (query->statement)
		statement_unref(query->statement);
	/* Field by field, which takes fewer instructions than memset(), for each query. */
	query->ended = query->client_since = 0;
	query->queue_time = query->client_time = 0;
	query->rows = query->sent = query->received = 0;
	query->statement = NULL;
	query->text_length = 0;
	query->head_length = query->tail_length = 0;
	query->has_text = query->has_parameters = false;
	query->sqlstate[0] = query->name[0] = query->parameters[0] = '\0';
	query->client = client->link.id;
	query->started = started;
}

void watched_query_free(struct watched_query *query)
{
	if (!query)
		return;
	watched_query_end(query);
	/* It may have parameters and literals. */
	explicit_bzero(query, sizeof(*query));
	free(query);
}

/* --- records of servers ------------------------------------------------------------------- */

struct watched_query *query_watch_open(struct server_link *server)
{
	if (!server->watched && server->link.state != SERVER_CLOSED)
		server->watched = calloc(1, sizeof(*server->watched));
	return server->watched;
}

struct watched_query *query_watch_take(struct server_link *server)
{
	struct watched_query *query = server->watched;

	server->watched = NULL;
	return query;
}

void query_watch_clear(struct query_watch *watch, const struct registry *registry)
{
	struct link *link;

	TAILQ_FOREACH (link, &registry->links, in_registry) {
		if (link->kind == LINK_SERVER)
			watched_query_free(query_watch_take(server_of(link)));
	}
	watched_query_free(watch->closing);
	watch->closing = NULL;
}
