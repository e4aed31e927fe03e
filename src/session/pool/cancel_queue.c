/* SPDX-License-Identifier: ISC */
#include "session/pool/cancel_queue.h"

#include <string.h>

#include "model/registry.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"

/* Time between a query that has waited and a request for it. */
#define HOLD (USEC_PER_SEC / 5)

/* --- in the queue ------------------------------------------------------------------------- */

static void ignore(struct stream *stream)
{
	(void)stream;
}

/*
 * Nothing more is read from the client, not even its end: many clients close the connection at
 * once, and their request counts nevertheless.
 */
static const struct stream_handlers requester_handlers = {
	.readable = ignore,
	.drained = ignore,
};

/*
 * PostgreSQL drops a request for a query that it has not received yet. The client has sent the
 * query long ago if it has waited for the server, so the request may come at the moment in which
 * the query is passed on: it waits then for as long as PostgreSQL needs to receive the query, even
 * on a busy machine.
 */
static usec_t end_of_hold(const struct client_link *client, const struct server_link *target)
{
	const struct client_link *owner =
		target ? (const struct client_link *)target->link.peer : NULL;

	if (!owner || owner->link.state != CLIENT_PAIRED || owner->served == 0 ||
		loop_now(client->link.stream.loop) - owner->served >= HOLD)
		return 0;
	return owner->served + HOLD;
}

void cancel_queue_add(struct client_link *client, struct pool *pool, struct server_link *target)
{
	client->link.pool = pool;
	client->cancel = target;
	if (target)
		target->cancels_queued++;
	client_enter(client, CLIENT_CANCEL_WAITING);
	client->held_until = end_of_hold(client, target);
	stream_set_handlers(&client->link.stream, &requester_handlers);
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

static bool has_same_address(const struct server_link *a, const struct server_link *b)
{
	return a->where_length == b->where_length &&
		memcmp(&a->where, &b->where, a->where_length) == 0;
}

struct client_link *cancel_queue_next_client(
	const struct pool *pool, const struct server_link *there)
{
	struct link *link;

	TAILQ_FOREACH (link, &pool->cancels, place) {
		const struct server_link *target = client_of(link)->cancel;

		/* Requests for a peer have no target: all go to the same address. */
		if (link->state == CLIENT_CANCEL_WAITING && client_of(link)->held_until == 0 &&
			(!there || !target || has_same_address(target, there)))
			return client_of(link);
	}
	return NULL;
}

struct server_link *cancel_queue_next_draining(
	const struct pool *pool, const struct server_link *there)
{
	struct link *link;

	if (pool->cancels_due == 0)
		return NULL;
	TAILQ_FOREACH (link, &pool->servers[SERVERS_BEING_CANCELED], place) {
		if (server_of(link)->draining.cancel == DRAINING_CANCEL_DUE &&
			(!there || has_same_address(server_of(link), there)))
			return server_of(link);
	}
	return NULL;
}

bool cancel_queue_client_first(const struct client_link *client, const struct server_link *due)
{
	return client && (!due || client->link.request_time <= due->draining.since);
}

bool cancel_queue_is_due(const struct pool *pool)
{
	return cancel_queue_next_client(pool, NULL) || cancel_queue_next_draining(pool, NULL);
}

const struct server_link *cancel_queue_next_target(const struct pool *pool)
{
	const struct client_link *client = cancel_queue_next_client(pool, NULL);
	const struct server_link *due = cancel_queue_next_draining(pool, NULL);

	return cancel_queue_client_first(client, due) ? client->cancel : due;
}
