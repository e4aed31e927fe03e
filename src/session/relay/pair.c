/* SPDX-License-Identifier: ISC */
#include "session/relay/pair.h"

#include "model/registry.h"
#include "model/statements_in_flight.h"
#include "model/statistics/pool_figures.h"
#include "session/link/client_limits.h"

/* --- pairing ------------------------------------------------------------------------------ */

/*
 * Count a wait. Clients that did not wait are only counted by their number: see
 * pool_histogram().
 */
static void end_wait(struct client_link *client)
{
	struct pool *pool = client->link.pool;
	const usec_t now = loop_now(client->link.stream.loop);
	const uint64_t waited = (uint64_t)(now - client->wait_start);

	pool->stats.current.wait_time += waited;
	if (pool->latency)
		latency_add(pool->latency, LATENCY_WAIT, waited);
	client->served = now;
}

/* Inlined, since clients get servers for each transaction. */
__attribute__((always_inline)) static inline void pair(
	struct client_link *client, struct server_link *server)
{
	client->link.peer = &server->link;
	server->link.peer = &client->link;
	server->fresh = true;
	server->touched = true;
	backends_note_user(server, client);
	deadline_cancel(&client->deadline);
	client_enter(client, CLIENT_PAIRED);
	server_enter(server, SERVER_PAIRED);
}

void pair_join(struct client_link *client, struct server_link *server)
{
	struct pool *pool = client->link.pool;

	pool->stats.current.assignments++;
	if (!pool->latency)
		pool_open_latency(pool);
	if (client->link.state == CLIENT_WAITING)
		end_wait(client);
	else
		client->served = 0;
	pair(client, server);
}

void pair_bind(struct client_link *client, struct server_link *server)
{
	const usec_t now = loop_now(client->link.stream.loop);

	/* This is no assignment, and so not in the histogram of waits for assignments. */
	if (client->link.state == CLIENT_LAUNCHING) {
		client->link.pool->stats.current.wait_time +=
			(uint64_t)(now - client->wait_start);
		client->served = now;
	} else {
		client->served = 0;
	}
	server_enter(server, SERVER_IDLE);
	pair(client, server);
}

void pair_again(struct client_link *client, struct server_link *server)
{
	client->served = 0;
	pair(client, server);
}

/* --- unpairing ---------------------------------------------------------------------------- */

/* Has the link passed on the beginning of a message, and not the end yet? */
static bool is_midway(const struct link *link)
{
	return link->remaining > 0 && !link->discarding;
}

void pair_unpair(struct link *link)
{
	struct link *peer = link->peer;
	struct client_link *client = client_of(link->kind == LINK_CLIENT ? link : peer);

	statements_unpair(server_of(link->kind == LINK_SERVER ? link : peer), client);
	link->cut = is_midway(peer);
	peer->cut = is_midway(link);
	link->peer = NULL;
	peer->peer = NULL;
	client->ring_full = false;
	client_enter(client, CLIENT_IDLE);
	client_limits_start_idle(client);
}
