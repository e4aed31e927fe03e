/* SPDX-License-Identifier: ISC */
#include "session/serving/launch_outcome.h"

#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/notify/listening_server.h"
#include "session/pool/auto_size.h"
#include "session/pool/host_watch.h"
#include "session/pool/lifetime.h"
#include "session/pool/login_concurrency.h"
#include "session/pool/minimum.h"
#include "session/pool/return_to_pool.h"
#include "session/serving/cancel.h"
#include "session/serving/replication.h"
#include "session/serving/server_session.h"
#include "session/serving/welcome.h"
#include "session/state/functions.h"

/* --- a server has logged in --------------------------------------------------------------- */

static void ready_for_client(struct server_link *server, struct buffer *head)
{
	/* If the server refuses other logins, this login does not change that. */
	server->link.pool->failing = server->link.pool->failing && server->link.pool->refused;
	replication_begin(server, head);
}

static void ready_for_pool(struct server_link *server)
{
	struct pool *pool = server->link.pool;
	const bool replacement = server->replacement;

	/* Enter the idle list first, so that clients which are welcomed now find the server. */
	server_enter(server, SERVER_IDLE);
	pool->failing = false;
	host_watch_begin_soon(pool);
	functions_read(server);
	welcome_waiting(pool);
	if (server->link.state == SERVER_IDLE)
		return_to_pool(server);
	if (replacement)
		lifetime_replace(pool);
	minimum_fill(pool);
}

static void ready_to_listen(struct server_link *server)
{
	struct pool *pool = server->link.pool;

	pool->failing = false;
	listening_server_begin(server);
	welcome_waiting(pool);
	/* It does not count for the size of the pool any more, now that it has logged in. */
	pool_needs_work(pool);
}

static void ready(struct server_link *server, struct buffer *head)
{
	if (server->watches) {
		host_watch_begin(server);
		return;
	}
	login_concurrency_note_success(server);
	if (head)
		ready_for_client(server, head);
	else if (server->listens)
		ready_to_listen(server);
	else
		ready_for_pool(server);
}

/* --- a login has failed ------------------------------------------------------------------- */

/*
 * Returns the first client without replication; one with it gets errors of its own server only.
 */
static struct link *first_common_client(const struct link_list *list)
{
	struct link *link;

	TAILQ_FOREACH (link, list, place) {
		if (!client_of(link)->replica)
			break;
	}
	return link;
}

static void close_clients(struct link_list *list, const struct failure *why)
{
	struct link *link;

	while ((link = first_common_client(list)) != NULL)
		client_close(client_of(link), why);
}

/* Returns true if the pool has servers that are not for replication. */
static bool has_common_servers(const struct pool *pool)
{
	unsigned count = pool_connected_servers(pool);
	const struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place)
		count -= link_replication(link) != REPLICATION_NONE;
	return count > 0;
}

static void failed(struct pool *pool, const struct failure *why, bool refused)
{
	pool->failing = true;
	pool->refused = refused;
	pool->last_failure = *why;
	login_concurrency_note_failure(pool);
	auto_size_note_failure(pool, why);
	/* Its clients wait: hosts are asked more often from now on. */
	host_watch_begin_soon(pool);
	/* The last of several logins decides: the server may have accepted some of them. */
	if (!refused || login_concurrency_is_undecided(pool) ||
		(has_common_servers(pool) && pool->welcome))
		return;
	close_clients(&pool->welcoming, why);
	close_clients(&pool->waiting, why);
	lookup_refuse(pool, why);
}

const struct server_login_owner launch_outcome = {
	.session = &server_session_handlers,
	.connected = cancel_use_connection,
	.write_startup = replication_write_startup,
	.ready = ready,
	.failed = failed,
};
