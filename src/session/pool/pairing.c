/* SPDX-License-Identifier: ISC */
#include "session/pool/pairing.h"

#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/parameters/parameter_sync.h"
#include "session/pool/launch.h"
#include "session/pool/login_concurrency.h"
#include "session/pool/move_clients.h"
#include "session/relay/pair.h"
#include "session/relay/relay_rules.h"
#include "session/server/host_fit.h"

struct server_link *pairing_next_idle(struct pool *pool)
{
	struct link *link;

	while ((link = TAILQ_FIRST(&pool->servers[SERVERS_IDLE])) != NULL) {
		struct server_link *server = server_of(link);

		if (server->close_needed)
			server_close_for(server, REASON_OBSOLETE_CONNECTION);
		else if (server->dirty || server->link.held_length > 0)
			server_close_for(server, REASON_IDLE_SERVER_GOT_DIRTY);
		else
			return server;
	}
	return NULL;
}

/* Close a client because its parameters cannot be set on the server. */
static enum pairing_result refuse(struct client_link *client, enum sync_need need)
{
	client_close_for(client,
		need == SYNC_IMPOSSIBLE ? REASON_INVALID_SERVER_PARAMETER : REASON_NO_MEMORY);
	return PAIRING_CLOSED;
}

/* Pair them. Parameters that differ are set before the first message of the client. */
static enum pairing_result pair_with_sync(
	struct client_link *client, struct server_link *server)
{
	const enum sync_need need = parameter_sync_prepare(client, server);

	if (need == SYNC_IMPOSSIBLE || need == SYNC_NO_MEMORY)
		return refuse(client, need);
	pair_join(client, server);
	if (need == SYNC_NEEDED)
		client_set_step(client, CLIENT_STEP_SYNC_DUE);
	return PAIRING_READY;
}

enum pairing_result pairing_give(struct client_link *client, struct server_link *server)
{
	/* Equal parameters are mostly the same set: see wire/parameters. */
	if (client->link.parameters != server->link.parameters)
		return pair_with_sync(client, server);
	pair_join(client, server);
	return PAIRING_READY;
}

bool pairing_sync(struct client_link *client, struct server_link *server)
{
	enum sync_need need;

	if (client->link.parameters == server->link.parameters)
		return true;
	need = parameter_sync_prepare(client, server);
	if (need == SYNC_IMPOSSIBLE || need == SYNC_NO_MEMORY) {
		refuse(client, need);
		return false;
	}
	if (need == SYNC_NEEDED)
		client_set_step(client, CLIENT_STEP_SYNC_DUE);
	return true;
}

/* Returns how many waiting clients will get a server of their own, by the limits of servers. */
static unsigned servers_to_come(const struct pool *pool)
{
	const unsigned servers = pool_servers(pool), login = pool_logins(pool);
	const int size = pool_size(pool);

	if (pool_is_paused(pool))
		return 0;
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		if (cap_is_full(pool, kind))
			return login;
	}
	if (size <= 0)
		return INT_MAX;
	return login + (servers < (unsigned)size ? (unsigned)size - servers : 0);
}

/* May no more clients wait? Those for which servers are launched are not counted. */
static bool is_queue_full(const struct pool *pool)
{
	const unsigned limit = (unsigned)pool_max_waiters(pool);
	const unsigned waiting = pool->client_count[CLIENT_WAITING];

	return limit > 0 && waiting >= limit && waiting - limit >= servers_to_come(pool);
}

void pairing_wait(struct client_link *client)
{
	struct pool *pool = client->link.pool;

	client->wait_start = loop_now(client->link.stream.loop);
	client->notified = false;
	client_enter(client, client->replica ? CLIENT_LAUNCHING : CLIENT_WAITING);
	client_limits_start(client);
	pool_needs_work(pool);
}

/*
 * Returns true if no server is up and the last attempt to launch one failed. Where a database has
 * several hosts, or asks for a role, clients wait for a host instead, unless it has refused the login.
 */
static bool is_hopeless(const struct pool *pool)
{
	return pool->failing && !pool->wanting && (pool->refused || !host_fit_applies(pool)) &&
		pool_servers(pool) == pool_logins(pool) &&
		!login_concurrency_is_undecided(pool);
}

bool pairing_is_hopeless(struct pool *pool, bool replica, struct failure *why)
{
	char cached[100];

	if (pool_is_paused(pool) || !is_hopeless(pool) || (replica && pool->refused))
		return false;
	text_copy(cached, sizeof(cached), pool->last_failure.text);
	*why = failure_of(REASON_SERVER_LOGIN_FAILING, cached);
	launch_server(pool, false);
	return true;
}

/* No server is idle. A function of its own, since most clients need not wait. */
static __attribute__((noinline)) enum pairing_result wait_or_refuse(struct client_link *client)
{
	struct pool *pool = client->link.pool;
	struct failure why;

	if (pairing_is_hopeless(pool, client->replica, &why)) {
		client_close(client, &why);
		return PAIRING_CLOSED;
	}
	if (pool->registry->process->shutdown == SHUTDOWN_WAIT_FOR_SERVERS) {
		client_close_for(client, REASON_SERVER_SHUTTING_DOWN);
		return PAIRING_CLOSED;
	}
	if (!client->replica && is_queue_full(pool))
		return PAIRING_FULL;
	pairing_wait(client);
	return PAIRING_WAITING;
}

enum pairing_result pairing_take(struct client_link *client)
{
	struct pool *pool = client->link.pool;
	struct server_link *server;

	if (pool->left_behind) {
		move_clients_one(client);
		if (client->link.state == CLIENT_CLOSED)
			return PAIRING_CLOSED;
		pool = client->link.pool;
	}
	/* The queue goes first, and replication needs a server of its own. */
	if (!client->replica && !pool_is_paused(pool) && pool_wanted_servers(pool) == 0 &&
		(server = pairing_next_idle(pool)) != NULL)
		return pairing_give(client, server);
	return wait_or_refuse(client);
}
