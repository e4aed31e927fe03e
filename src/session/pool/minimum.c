/* SPDX-License-Identifier: ISC */
#include "session/pool/minimum.h"

#include <string.h>

#include "session/pool/launch.h"
#include "session/pool/login_concurrency.h"
#include "session/server/server_authentication.h"

static usec_t shorter(usec_t a, usec_t b)
{
	return b > 0 && (a <= 0 || b < a) ? b : a;
}

/* Has the pool had no clients for so long that it is not to be kept any more? */
static bool is_given_up(const struct pool *pool)
{
	const struct settings *settings = pool->registry->process->settings;
	usec_t limit = settings->pool_idle_timeout;

	if (pool_has_clients(pool) || pool_is_forced(pool))
		return false;
	if (pool->database->own_config)
		limit = shorter(limit, settings->autodb_idle_timeout);
	return limit > 0 && loop_now(pool->registry->loop) - pool->last_client > limit;
}

unsigned minimum_size(const struct pool *pool)
{
	const int least = pool_min_size(pool);

	/* With a server_lifetime of 0 servers are for one use, and none is kept for later. */
	return least > 0 && pool->lifetime_least > 0 && !is_given_up(pool) ? (unsigned)least
									   : 0;
}

/* Another attempt would fail too, and might lock the user out. */
static bool is_rejected(const struct pool *pool)
{
	const struct failure *why = &pool->last_failure;

	return pool->failing &&
		(why->reason == REASON_FAILED_TO_ANSWER_AUTHREQ ||
			strncmp(why->sqlstate, "28", 2) == 0 ||
			strncmp(why->sqlstate, "3D", 2) == 0);
}

static bool is_kept(const struct pool *pool)
{
	return pool_has_clients(pool) || pool_is_forced(pool) ||
		(server_authentication_has_secret(pool) && !is_rejected(pool));
}

static bool is_running(const struct pool *pool)
{
	const struct process *process = pool->registry->process;

	return process->operation == OPERATION_RUNNING && !pool->database->paused &&
		process_accepts_logins(process) && !process->still && !pool->left_behind;
}

/* Logins in progress count: their servers will be idle if no client needs them. */
static bool is_filled(const struct pool *pool)
{
	const int size = pool_size(pool);
	const unsigned servers =
		pool_connected_servers(pool) + login_concurrency_for_clients(pool);

	return servers >= minimum_size(pool) || (size > 0 && servers >= (unsigned)size);
}

void minimum_fill(struct pool *pool)
{
	if (pool_min_size(pool) <= 0 || !is_running(pool) || !is_kept(pool))
		return;
	while (!is_filled(pool) && launch_server(pool, true))
		;
}
