/* SPDX-License-Identifier: ISC */
#include "session/pool/login_concurrency.h"

#include "session/server/server_login_state.h"

/*
 * Without a welcome no login has succeeded yet, or none since RECONNECT; also, clients cannot
 * say how many servers they need before they have got the welcome.
 */
static bool is_cautious(const struct pool *pool)
{
	return !pool->welcome || pool->login_failed_at > 0;
}

bool login_concurrency_allows(const struct pool *pool)
{
	const int most = pool->registry->process->settings->server_login_concurrency;
	const unsigned running = pool_logins(pool);

	if (running == 0)
		return true;
	return !is_cautious(pool) && (most <= 0 || running < (unsigned)most);
}

/* Not for a replication client, which has it for itself, nor to listen or for a cancel request. */
static bool is_for_clients(const struct server_link *server)
{
	return !server->replication && !server->listens && !server->watches && server->login &&
		!server->login->for_cancel;
}

unsigned login_concurrency_for_clients(const struct pool *pool)
{
	struct link *link;
	unsigned count = 0;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_LOGIN], place)
		count += is_for_clients(server_of(link));
	return count;
}

unsigned login_concurrency_connecting(const struct pool *pool)
{
	struct link *link;
	unsigned count = 0;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_LOGIN], place)
		count += server_of(link)->login && !server_of(link)->login->route.connected;
	return count;
}

bool login_concurrency_is_undecided(const struct pool *pool)
{
	struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_LOGIN], place) {
		if (is_for_clients(server_of(link)) &&
			link->connect_time <= pool->login_failed_at)
			return true;
	}
	return false;
}

void login_concurrency_note_failure(struct pool *pool)
{
	pool->login_failed_at = loop_now(pool->registry->loop);
}

void login_concurrency_note_success(const struct server_link *server)
{
	struct pool *pool = server->link.pool;

	if (server->link.connect_time > pool->login_failed_at)
		pool->login_failed_at = 0;
}
