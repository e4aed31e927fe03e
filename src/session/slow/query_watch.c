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
	memset(query, 0, offsetof(struct watched_query, name));
	query->name[0] = query->parameters[0] = '\0';
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

void query_watch_init(struct query_watch *watch, struct registry *registry)
{
	*watch = (struct query_watch){.registry = registry};
}

void query_watch_clear(struct query_watch *watch)
{
	for (uint32_t i = 0; i < watch->capacity; i++)
		watched_query_free(watch->queries[i]);
	watched_query_free(watch->closing);
	free(watch->queries);
	query_watch_init(watch, watch->registry);
}

/* Returns an entry that is NULL, or `capacity` when out of memory. */
static uint32_t find_room(struct query_watch *watch)
{
	const uint32_t capacity = watch->capacity ? 2 * watch->capacity : 16;
	struct watched_query **queries;
	uint32_t i = watch->free_from;

	while (i < watch->capacity && watch->queries[i])
		i++;
	watch->free_from = i;
	if (i < watch->capacity)
		return i;
	queries = realloc(watch->queries, capacity * sizeof(struct watched_query *));
	if (!queries)
		return watch->capacity;
	memset(queries + watch->capacity, 0,
		(capacity - watch->capacity) * sizeof(struct watched_query *));
	watch->queries = queries;
	watch->capacity = capacity;
	return i;
}

struct watched_query *query_watch_open(struct query_watch *watch, struct server_link *server)
{
	struct watched_query *query = query_watch_find(watch, server);
	uint32_t room;

	if (query)
		return query;
	room = find_room(watch);
	if (room == watch->capacity)
		return NULL;
	query = calloc(1, sizeof(*query));
	if (!query)
		return NULL;
	watch->queries[room] = query;
	server->watched = room + 1;
	return query;
}

struct watched_query *query_watch_take(struct query_watch *watch, struct server_link *server)
{
	struct watched_query *query = query_watch_find(watch, server);

	if (!query)
		return NULL;
	watch->queries[server->watched - 1] = NULL;
	if (server->watched - 1 < watch->free_from)
		watch->free_from = server->watched - 1;
	server->watched = 0;
	return query;
}
