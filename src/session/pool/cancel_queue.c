/* SPDX-License-Identifier: ISC */
#include "session/pool/cancel_queue.h"

#include <string.h>

#include "model/registry.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"

/* --- in the queue ------------------------------------------------------------------------- */

static void ignore(struct stream *stream)
{
	(void)stream;
}

/* Nothing more is read from it, not even its end: many do not wait for ours. */
static const struct stream_handlers asker_handlers = {
	.readable = ignore,
	.drained = ignore,
};

void cancel_queue_add(struct client_link *client, struct pool *pool, struct server_link *target)
{
	client->link.pool = pool;
	client->cancel = target;
	if (target)
		target->cancels_queued++;
	client_enter(client, CLIENT_CANCEL_WAITING);
	stream_set_handlers(&client->link.stream, &asker_handlers);
	stream_pause(&client->link.stream);
	client_limits_start(client);
	pool_needs_work(client->link.pool);
}

void cancel_queue_drop(struct server_link *target)
{
	struct link *link, *next;

	if (target->cancels_queued == 0)
		return;
	TAILQ_FOREACH_SAFE (link, &target->link.pool->cancels, place, next) {
		struct client_link *client = client_of(link);

		if (link->state == CLIENT_CANCEL_WAITING && client->cancel == target)
			client_close_for(client, REASON_CANCEL_FOR_CLIENT_NOW_IDLE);
	}
}

/* --- the next one ------------------------------------------------------------------------- */

static bool same_place(const struct server_link *a, const struct server_link *b)
{
	return a->where_length == b->where_length &&
		memcmp(&a->where, &b->where, a->where_length) == 0;
}

/* The client that has waited longest, of those whose request may go there; NULL: to any place. */
struct client_link *cancel_queue_next_client(
	const struct pool *pool, const struct server_link *there)
{
	struct link *link;

	TAILQ_FOREACH (link, &pool->cancels, place) {
		const struct server_link *target = client_of(link)->cancel;

		/* A peer is one place for all of them. */
		if (link->state == CLIENT_CANCEL_WAITING &&
			(!there || !target || same_place(target, there)))
			return client_of(link);
	}
	return NULL;
}

/* The same of servers that are DRAINING. */
struct server_link *cancel_queue_next_draining(
	const struct pool *pool, const struct server_link *there)
{
	struct link *link;

	if (pool->cancels_due == 0)
		return NULL;
	TAILQ_FOREACH (link, &pool->servers[SERVERS_BEING_CANCELED], place) {
		if (server_of(link)->draining.cancel == DRAINING_CANCEL_DUE &&
			(!there || same_place(server_of(link), there)))
			return server_of(link);
	}
	return NULL;
}

/* Of a client and a server, the one that has waited longer. Either may be NULL. */
bool cancel_queue_client_first(const struct client_link *client, const struct server_link *due)
{
	return client && (!due || client->link.request_time <= due->draining.since);
}

const struct server_link *cancel_queue_next_target(const struct pool *pool)
{
	const struct client_link *client = cancel_queue_next_client(pool, NULL);
	const struct server_link *due = cancel_queue_next_draining(pool, NULL);

	return cancel_queue_client_first(client, due) ? client->cancel : due;
}
