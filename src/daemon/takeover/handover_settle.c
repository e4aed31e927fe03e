/* SPDX-License-Identifier: ISC */
#include "daemon/takeover/handover_parts.h"
#include "session/notify/listening_takeover.h"
#include "session/serving/client_session.h"
#include "session/takeover/inventory.h"

/* How long servers may take to log in before the handover goes on without them. */
#define LOGIN_GRACE (USEC_PER_SEC / 2)

/* --- clients bound to an encrypted server ------------------------------------------------- */

static bool has_encrypted_server(const struct pool *pool)
{
	struct pool_walk walk = pool_walk_servers(pool);
	const struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		if (link->stream.tls)
			return true;
	}
	return false;
}

/*
 * Clients without a server begin no transaction; clients with a server continue to the end of
 * the transaction. In session mode that end might never come, so those clients are left alone.
 */
static void rest_clients(struct link_list *clients)
{
	struct link *link;

	TAILQ_FOREACH (link, clients, place) {
		if (client_mode(client_of(link)) == POOL_MODE_SESSION)
			continue;
		if (link->stream.handlers == &client_session_handlers)
			stream_set_handlers(&link->stream, &client_suspend_handlers);
		if (link->state == CLIENT_IDLE && link->held_length == 0 &&
			link->remaining == 0 && !link->stream.frozen)
			stream_freeze(&link->stream);
	}
}

/* Clients that could be sent if their server were not encrypted. */
static bool has_bound_clients(const struct pool *pool)
{
	const struct link *link;

	TAILQ_FOREACH (link, &pool->clients, place) {
		if (link->peer && link->peer->stream.tls && !link->stream.tls &&
			client_mode((const struct client_link *)link) != POOL_MODE_SESSION)
			return true;
	}
	return false;
}

/* Let such clients come to rest; returns whether all have. */
static bool free_bound_clients(struct pool *pool)
{
	if (!has_encrypted_server(pool))
		return true;
	rest_clients(&pool->clients);
	rest_clients(&pool->waiting);
	return !has_bound_clients(pool);
}

/* --- settled ------------------------------------------------------------------------------ */

/*
 * The inventory has no record for a batch that is about to be replayed, nor for the messages of
 * a client that are kept until our SETs before them have ended, nor for a server that is asked what
 * its session has. All of these are short, and no server is asked from now on.
 */
static bool has_transient_server(const struct pool *pool)
{
	const struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		const struct server_link *server = (const struct server_link *)link;

		if (server->batch_progress == BATCH_FAILED || server_has_gathered(server) ||
			link->state == SERVER_ASKING)
			return true;
	}
	return false;
}

/* A server that has just been told to listen is to answer before it is handed over. */
static bool is_listening_settled(const struct pool *pool)
{
	const struct link *link = TAILQ_FIRST(&pool->servers[SERVERS_LISTENING]);

	return !link || listening_takeover_is_settled((const struct server_link *)link);
}

static bool is_pool_settled(struct pool *pool, bool may_log_in)
{
	const bool free = free_bound_clients(pool);

	return free && pool->looking_up == 0 && !has_transient_server(pool) &&
		is_listening_settled(pool) && pool->client_count[CLIENT_CANCEL_WAITING] == 0 &&
		pool->client_count[CLIENT_CANCEL_SENT] == 0 &&
		pool->server_count[SERVERS_ACTIVE_CANCEL] == 0 &&
		pool->server_count[SERVERS_BEING_CANCELED] == 0 &&
		(!may_log_in || pool->server_count[SERVERS_LOGIN] == 0);
}

static bool are_logins_settled(const struct registry *registry)
{
	const struct registry *each;
	const struct link *link;

	EACH_REGISTRY (each, registry->process) {
		TAILQ_FOREACH (link, &each->logins, place) {
			if (!inventory_includes(link) && !link->stream.tls)
				return false;
		}
	}
	return true;
}

bool handover_settle(struct registry *registry, usec_t waited)
{
	const usec_t limit = registry->process->settings->suspend_timeout;
	bool settled = are_logins_settled(registry);
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (!pool->database->console)
			settled = is_pool_settled(pool, waited < LOGIN_GRACE) && settled;
	}
	return settled || (limit > 0 && waited > limit);
}
