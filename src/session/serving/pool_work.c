/* SPDX-License-Identifier: ISC */
#include "session/serving/pool_work.h"

#include <string.h>

#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/notify/listening_server.h"
#include "session/pool/cancel_queue.h"
#include "session/pool/caps.h"
#include "session/pool/launch.h"
#include "session/pool/lifetime.h"
#include "session/pool/login_concurrency.h"
#include "session/pool/pairing.h"
#include "session/pool/return_to_pool.h"
#include "session/relay/own_query.h"
#include "session/relay/relay.h"
#include "session/server/host_fit.h"
#include "session/server/host_probe.h"
#include "session/serving/replication.h"
#include "session/serving/welcome.h"
#include "session/state/functions.h"

/* --- idle servers for waiting clients ----------------------------------------------------- */

/* Give the server to a look-up or to a client, whichever has waited longer. */
static void serve_one(struct pool *pool, struct server_link *server)
{
	struct client_link *client = pool_first_waiter(pool);
	struct lookup *lookup = lookup_next(pool);

	if (lookup && (!client || lookup->since <= client->wait_start))
		lookup_run(lookup, server);
	else if (pairing_give(client, server) == PAIRING_READY)
		relay_client_resume(client);
}

/* The client that has waited longest wants replication: close this server to make room. */
static void make_room(struct server_link *server)
{
	struct pool *pool = server->link.pool;

	server_close_for(server, REASON_EVICTED);
	pool_needs_work(pool);
}

/*
 * A message without an answer makes a client return its server at once, which calls this
 * function again: pool.serving prevents the recursion.
 */
void pool_work_serve(struct pool *pool)
{
	struct server_link *server;

	if (pool_wanted_servers(pool) == 0 || pool_is_paused(pool) || pool->serving)
		return;
	pool->serving = true;
	while (pool_wanted_servers(pool) > 0 && (server = pairing_next_idle(pool)) != NULL) {
		if (pool->client_count[CLIENT_LAUNCHING] > 0 && replication_is_next(pool))
			make_room(server);
		else
			serve_one(pool, server);
	}
	pool->serving = false;
}

/* --- at the end of a turn ----------------------------------------------------------------- */

static void check_server(struct server_link *server)
{
	const struct settings *settings = server->link.pool->registry->process->settings;
	const usec_t unused = loop_now(server->link.stream.loop) - server->link.request_time;
	const char *query = settings->server_check_query;

	const bool for_role = server->role_doubted ||
		(settings->server_check_role == ROLE_CHECK_ALWAYS && server->at &&
			host_fit_applies(server->link.pool));

	if (server->dirty || !server_is_clean(server)) {
		server_close_for(server, REASON_SV_USED_SERVER_GOT_DIRTY);
	} else if (for_role) {
		server->role_doubted = false;
		server_enter(server, SERVER_CHECKING);
		host_probe_send(server);
	} else if (query[0] == '\0' ||
		(settings->server_check_delay > 0 && unused < settings->server_check_delay)) {
		return_to_pool(server);
	} else {
		server_enter(server, SERVER_CHECKING);
		own_query_send(server, strcmp(query, "<empty>") == 0 ? "" : query);
	}
}

/*
 * Get servers for waiting clients that no idle server could serve: tested servers will be idle
 * soon, used servers need a check, else servers are launched, one for each client.
 */
static void find_servers(struct pool *pool)
{
	unsigned waiting = pool_wanted_servers(pool);
	const unsigned tested = pool->server_count[SERVERS_TESTED] + functions_are_read(pool);
	struct link *link;

	if (waiting <= tested)
		return;
	waiting -= tested;
	while (waiting > 0 && (link = TAILQ_FIRST(&pool->servers[SERVERS_USED])) != NULL) {
		check_server(server_of(link));
		waiting--;
	}
	while (waiting > login_concurrency_for_clients(pool) && pool_wanted_servers(pool) > 0) {
		if (!launch_server(pool, false))
			break;
	}
}

static void listen_for_clients(struct pool *pool)
{
	if (listening_server_is_wanted(pool))
		launch_listening_server(pool);
	listening_server_work(pool);
}

static void work(struct pool *pool)
{
	pool_work_serve(pool);
	/* Cancel requests are sent in a pause too: it waits for the queries to end. */
	if (pool_waiting_cancels(pool) > 0 && cancel_queue_is_due(pool))
		launch_server(pool, false);
	if (pool_is_paused(pool))
		return;
	if (pool_welcoming_clients(pool) > 0) {
		welcome_waiting(pool);
		replication_launch(pool);
		if (welcome_is_wanted(pool))
			launch_server(pool, false);
	}
	if (pool->hub)
		listen_for_clients(pool);
	/* First: the pool leaves the queues of its caps for it, and may join them again then. */
	lifetime_renew(pool);
	find_servers(pool);
}

void pool_work_run(struct loop_task *task)
{
	struct registry *registry =
		(struct registry *)((char *)task - offsetof(struct registry, work_task));
	struct pool *pool;
	unsigned count = 0;

	if (registry->process->still)
		return; /* continued if the takeover fails */
	/* Pools that are added meanwhile wait for the next turn, or this might never end. */
	TAILQ_FOREACH (pool, &registry->work, in_work)
		count++;
	while (count-- > 0 && (pool = TAILQ_FIRST(&registry->work)) != NULL) {
		TAILQ_REMOVE(&registry->work, pool, in_work);
		pool->has_work = false;
		work(pool);
	}
	while ((pool = caps_next_pool(registry)) != NULL)
		work(pool);
}
