/* SPDX-License-Identifier: ISC */
#include "session/pool/launch.h"

#include "model/peer.h"
#include "session/link/close.h"
#include "session/notify/channels.h"
#include "session/notify/listening_limits.h"
#include "session/notify/listening_server.h"
#include "session/pool/cancel_queue.h"
#include "session/pool/caps.h"
#include "session/pool/eviction.h"
#include "session/pool/login_concurrency.h"
#include "session/pool/lookup.h"
#include "session/pool/reserve.h"
#include "session/server/server_failure.h"
#include "session/server/server_login.h"

/*
 * Longest pause after failures that usually end soon: the server restarts, no host has the wanted role
 * yet, or pgusher lacks descriptors, memory or ports.
 */
#define SOON_RETRY USEC_PER_SEC

/* Shortest pause, so that pgusher does not retry as fast as a server can refuse connections. */
#define SHORTEST_RETRY (USEC_PER_SEC / 20)

/* --- limits ------------------------------------------------------------------------------- */

static bool ends_soon(const struct pool *pool)
{
	const struct failure *why = &pool->last_failure;

	return pool->wanting || why->reason == REASON_SERVER_ROLE ||
		server_failure_is_of_restart(why);
}

static usec_t retry_pause(const struct pool *pool)
{
	const usec_t pause = pool->registry->process->settings->server_login_retry;

	if (pause < SHORTEST_RETRY)
		return SHORTEST_RETRY;
	if (ends_soon(pool))
		return pause < SOON_RETRY ? pause : SOON_RETRY;
	return pause;
}

bool launch_must_pause(const struct pool *pool)
{
	return pool->failing &&
		loop_now(pool->registry->loop) - pool->last_launch < retry_pause(pool);
}

/* Since when the client, or look-up, that has waited longest for this pool has waited. */
static usec_t waits_since(const struct pool *pool)
{
	const struct lookup *lookup = lookup_next(pool);
	const struct link *welcoming = TAILQ_FIRST(&pool->welcoming);
	const struct client_link *client = pool_first_waiter(pool);
	usec_t since = loop_now(pool->registry->loop);

	if (lookup && lookup->since < since)
		since = lookup->since;
	if (client && client->wait_start < since)
		since = client->wait_start;
	if (welcoming && ((const struct client_link *)welcoming)->wait_start < since)
		since = ((const struct client_link *)welcoming)->wait_start;
	return since;
}

/*
 * Returns true if there is a descriptor for one more server. may_evict: close an idle server of
 * any pool if there is none.
 */
static bool descriptors_allow(struct registry *registry, bool may_evict)
{
	static const struct log_likeness likeness = {
		.kind = "no descriptor for a server", .about = ""};

	while (!descriptors_allow_server(registry->process, false)) {
		if (may_evict && eviction_run(registry))
			continue;
		if (may_evict)
			log_write_repeated(LEVEL_WARNING, NULL, &likeness,
				"no file descriptor is left for a server (RLIMIT_NOFILE %u)",
				registry->process->descriptors.limit);
		return false;
	}
	return true;
}

/* After caps_allow_server(). Returns is_launched. */
static bool end_launch(struct pool *pool, bool is_launched)
{
	caps_end_launch(pool);
	if (is_launched)
		eviction_ask_ahead(pool->registry);
	return is_launched;
}

/* Connect to a peer if a cancel request waits and the limit of its pool allows it. */
static bool launch_to_peer(struct pool *pool)
{
	const int size = pool_size(pool);

	if (pool->client_count[CLIENT_CANCEL_WAITING] == 0 ||
		pool->server_count[SERVERS_LOGIN] > 0 || launch_must_pause(pool))
		return false;
	if (size > 0 && pool_servers(pool) >= (unsigned)size)
		return false;
	if (!descriptors_allow_server(pool->registry->process, true))
		return false;
	return server_login_begin(pool, NULL, pool->registry->login_owner);
}

/*
 * Any connection that is being opened may take a cancel request, so that one for each request
 * is enough. Cancel requests may use as many connections as clients.
 */
static bool may_launch_for_cancel(const struct pool *pool, unsigned servers, int size)
{
	return login_concurrency_connecting(pool) < pool_waiting_cancels(pool) &&
		(size <= 0 || servers < 2 * (unsigned)size);
}

bool launch_server(struct pool *pool, bool top_up)
{
	const unsigned servers = pool_servers(pool);
	const int size = pool_size(pool);
	const struct server_link *target = cancel_queue_next_target(pool);
	struct reserve_waiter waiter = {0}; /* gets a server of the reserve */

	if (peer_of_pool(pool) > 0)
		return launch_to_peer(pool);
	if (!login_concurrency_allows(pool) || launch_must_pause(pool))
		return false;
	if (target && may_launch_for_cancel(pool, servers, size) &&
		descriptors_allow_server(pool->registry->process, true))
		return server_login_begin(pool, target, pool->registry->login_owner);
	if (target && pool_wanted_servers(pool) == 0)
		return false;
	if (pool_is_paused(pool))
		return false;
	/* A pool without a welcome may launch one more, or it might never get a welcome. */
	if (size > 0 && servers >= (unsigned)size && pool->welcome) {
		waiter = top_up ? waiter : reserve_first_waiter(pool);
		if (!reserve_may_be_used(pool, waiter)) {
			log_write(LEVEL_DEBUG, "launch_new_connection: pool full (%u >= %d)",
				servers, size);
			return false;
		}
	}
	if (!caps_allow_server(
		    pool, top_up ? CAPS_FOR_MINIMUM : CAPS_FOR_CLIENTS, waits_since(pool)))
		return false;
	if (!descriptors_allow(pool->registry, !top_up))
		return end_launch(pool, false);
	if (waiter.since > 0)
		reserve_log_use(waiter);
	return end_launch(pool, server_login_begin(pool, NULL, pool->registry->login_owner));
}

enum launch_result launch_replacement(struct pool *pool)
{
	const int size = pool_size(pool);

	if (!login_concurrency_allows(pool) || launch_must_pause(pool) ||
		pool_is_paused(pool) || (size > 0 && pool_servers(pool) > (unsigned)size))
		return LAUNCH_NOT_NOW;
	if (!caps_allow_server(pool, CAPS_FOR_MINIMUM, loop_now(pool->registry->loop)))
		return LAUNCH_NO_ROOM;
	return end_launch(
		       pool, server_login_begin_replacement(pool, pool->registry->login_owner))
		? LAUNCH_BEGUN
		: LAUNCH_NOT_NOW;
}

/* --- a listening server ------------------------------------------------------------------- */

bool launch_listening_server(struct pool *pool)
{
	const usec_t waits = waits_since(pool), since = pool->hub->wanted_since;

	if (pool_is_paused(pool) || !login_concurrency_allows(pool) || launch_must_pause(pool))
		return false;
	if (!listening_limits_allow(pool)) {
		const struct failure why = failure_of(REASON_LISTENING_SERVERS);

		listening_server_refused(pool, &why);
		return false;
	}
	if (!caps_allow_server(pool, CAPS_FOR_CLIENTS, waits < since ? waits : since))
		return false;
	return end_launch(pool,
		descriptors_allow(pool->registry, true) &&
			server_login_begin_listening(pool, pool->registry->login_owner));
}

/* --- replication -------------------------------------------------------------------------- */

static bool is_full(const struct pool *pool)
{
	const int size = pool_size(pool);

	return size > 0 && pool_servers(pool) >= (unsigned)size;
}

/* Close idle servers, the least recently used first, until the pool is below its size. */
static bool make_room(struct pool *pool)
{
	while (is_full(pool)) {
		struct server_link *oldest = NULL;

		eviction_find(pool, &oldest);
		if (!oldest)
			return false;
		server_close_for(oldest, REASON_EVICTED);
	}
	return true;
}

/* Keeps to the pool size even without a welcome: a replication login does not set one. */
bool launch_for_replication(struct client_link *client)
{
	struct pool *pool = client->link.pool;
	bool reserve = false;

	if (!login_concurrency_allows(pool) || (launch_must_pause(pool) && !pool->refused))
		return false;
	if (!make_room(pool)) {
		reserve = reserve_may_be_used(pool, reserve_waiter_of(client));
		if (!reserve)
			return false;
	}
	if (!caps_allow_server(pool, CAPS_FOR_CLIENTS, client->wait_start))
		return false;
	if (!descriptors_allow(pool->registry, true))
		return end_launch(pool, false);
	if (reserve)
		reserve_log_use(reserve_waiter_of(client));
	return end_launch(
		pool, server_login_begin_replication(client, pool->registry->login_owner));
}
