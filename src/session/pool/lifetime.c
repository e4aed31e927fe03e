/* SPDX-License-Identifier: ISC */
#include "session/pool/lifetime.h"

#include "session/link/close.h"
#include "session/pool/launch.h"
#include "session/pool/minimum.h"

/* A server that is used again within this time is in use, although it is idle now. */
#define IN_USE_UNTIL USEC_PER_SEC

static usec_t lifetime_of(const struct pool *pool)
{
	return database_server_lifetime(pool->database, pool->registry->process->settings);
}

/*
 * How much earlier than others this server goes: always the same for one server. Multiples of
 * the golden ratio are spread evenly, also for ids that follow each other.
 */
static usec_t jitter(const struct server_link *server, usec_t lifetime)
{
	enum { STEP_BITS = 10 };
	const uint32_t place = (uint32_t)server->link.id * UINT32_C(2654435769);

	return (lifetime / 10 >> STEP_BITS) * (place >> (32 - STEP_BITS));
}

/* For how long the server has been due; negative: it is not due yet. */
static usec_t overdue(const struct server_link *server)
{
	const usec_t lifetime = lifetime_of(server->link.pool);
	const usec_t age =
		loop_now(link_registry(&server->link)->loop) - server->link.connect_time;

	return age - (lifetime - jitter(server, lifetime));
}

/* --- how fast ----------------------------------------------------------------------------- */

/* Closings follow each other within a second of the last one, or count from the start. */
static bool may_close_now(struct pool *pool, usec_t now)
{
	const unsigned tenth = pool_connected_servers(pool) / 10;

	if (now - pool->last_lifetime_close >= USEC_PER_SEC)
		pool->lifetime_closes = 0;
	return pool->lifetime_closes < (tenth > 0 ? tenth : 1);
}

static void close_now(struct server_link *server, usec_t now)
{
	struct pool *pool = server->link.pool;

	pool->last_lifetime_close = now;
	pool->lifetime_closes++;
	server_close_for(server, REASON_SERVER_LIFETIME_OVER);
}

/* --- replacement -------------------------------------------------------------------------- */

/* Returns whether clients wait, or all servers of the pool are in use. */
static bool is_busy(const struct server_link *server, usec_t now)
{
	const struct pool *pool = server->link.pool;
	const unsigned idle =
		pool->server_count[SERVERS_IDLE] - (server->link.state == SERVER_IDLE);

	if (pool_wanted_servers(pool) > 0)
		return true;
	return idle == 0 &&
		(pool->server_count[SERVERS_ACTIVE] > 0 ||
			now - server->link.request_time < IN_USE_UNTIL);
}

static bool may_be_replaced(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;

	return server_mode(server) != POOL_MODE_SESSION && !server->close_needed &&
		!pool->left_behind && !pool_is_paused(pool) &&
		process_accepts_logins(pool->registry->process);
}

static bool must_be_replaced(const struct server_link *server, usec_t now)
{
	const struct pool *pool = server->link.pool;

	return may_be_replaced(server) && overdue(server) < lifetime_of(pool) / 10 &&
		(is_busy(server, now) || pool_connected_servers(pool) <= minimum_size(pool));
}

static void ask_for_replacement(struct pool *pool)
{
	if (pool->renewal_due)
		return;
	pool->renewal_due = true;
	pool_needs_work(pool);
}

bool lifetime_close_if_over(struct server_link *server)
{
	struct pool *pool = server->link.pool;
	const usec_t now = loop_now(pool->registry->loop);

	if (lifetime_of(pool) == 0) {
		server_close_for(server, REASON_SERVER_LIFETIME_OVER);
		return true;
	}
	if (overdue(server) < 0 || !may_close_now(pool, now))
		return false;
	if (!server->replaced && must_be_replaced(server, now)) {
		ask_for_replacement(pool);
		return false;
	}
	close_now(server, now);
	return true;
}

/* Returns the server that has been due for the longest time and is still to go, or NULL. */
static struct server_link *most_overdue(const struct pool *pool)
{
	struct pool_walk walk = pool_walk_servers(pool);
	struct server_link *found = NULL;
	usec_t longest = -1;
	struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		struct server_link *server = server_of(link);

		if (!server_is_connected(server) || server->replaced || server->replication ||
			overdue(server) <= longest)
			continue;
		longest = overdue(server);
		found = server;
	}
	return found;
}

void lifetime_replace(struct pool *pool)
{
	struct server_link *server = most_overdue(pool);

	if (!server)
		return;
	server->replaced = true;
	if (server->link.state == SERVER_IDLE || server->link.state == SERVER_STALE)
		lifetime_close_if_over(server);
}

static bool is_being_renewed(const struct pool *pool)
{
	struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_LOGIN], place) {
		if (server_of(link)->replacement)
			return true;
	}
	return false;
}

void lifetime_renew(struct pool *pool)
{
	if (!pool->renewal_due)
		return;
	pool->renewal_due = false;
	/* Where a shared limit leaves no room for both, the old server makes room. */
	if (!is_being_renewed(pool) && launch_replacement(pool) == LAUNCH_NO_ROOM)
		lifetime_replace(pool);
}
