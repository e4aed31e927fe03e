/* SPDX-License-Identifier: ISC */
#include "daemon/takeover/handover_parts.h"
#include "session/link/close.h"
#include "session/serving/client_session.h"
#include "session/takeover/inventory.h"

/* --- walks -------------------------------------------------------------------------------- */

/* Called for a link, which it may close. The console's id is there to leave that link out. */
typedef void link_function(struct link *link, uint64_t console);

static void each_of(const struct link_list *list, link_function *act, uint64_t console)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, list, place, next)
		act(link, console);
}

static void each_link(struct registry *registry, link_function *act, uint64_t console)
{
	struct registry *each;
	struct link *link;
	struct pool *pool;

	EACH_REGISTRY (each, registry->process)
		each_of(&each->logins, act, console);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		struct pool_walk walk = pool_walk_links(pool);

		while ((link = pool_walk_next(&walk)) != NULL)
			act(link, console);
	}
}

/* --- out of the loop, and back ------------------------------------------------------------ */

/* The inventory has no record for the state of such a link, and its time to settle is over. */
static void close_unsettled(struct link *link, uint64_t console)
{
	(void)console;
	if (inventory_includes(link) || link->stream.tls)
		return;
	if (link->kind == LINK_CLIENT && !client_is_logged_in(client_of(link)) &&
		link->state != CLIENT_CLOSED)
		client_close_for(client_of(link), REASON_SUSPEND_TIMEOUT);
	else if (link->kind == LINK_SERVER && link->state != SERVER_CLOSED &&
		server_list_of(server_state(server_of(link))) != SERVERS_ACTIVE)
		server_close_for(server_of(link), REASON_UNSAFE_ON_SUSPEND);
}

/* A server that logs in is closed: no client loses a query by that. */
static void detach(struct link *link, uint64_t console)
{
	if (link->kind == LINK_SERVER && link->state < SERVER_IDLE)
		server_close_for(server_of(link), REASON_UNSAFE_ON_SUSPEND);
	else if (link->id != console)
		stream_detach(&link->stream);
}

void handover_detach_links(struct registry *registry, uint64_t console)
{
	each_link(registry, close_unsettled, console);
	each_link(registry, detach, console);
}

static void attach(struct link *link, uint64_t console)
{
	(void)console;
	if (link->stream.handlers == &client_suspend_handlers)
		stream_set_handlers(&link->stream, &client_session_handlers);
	if (link->stream.frozen)
		stream_attach(&link->stream);
}

void handover_attach_links(struct registry *registry)
{
	each_link(registry, attach, 0);
}

/* --- after the commit --------------------------------------------------------------------- */

static void close_sent(struct link *link, uint64_t console)
{
	(void)console;
	if (link->kind == LINK_CLIENT && link->state == CLIENT_CONSOLE)
		client_close_for(client_of(link), REASON_PROCESS_ENDS);
	if (!inventory_includes(link))
		return;
	if (link->kind == LINK_CLIENT && link->state != CLIENT_CLOSED)
		client_close_for(client_of(link), REASON_DISKO_OVER);
	else if (link->kind == LINK_SERVER && link->state != SERVER_CLOSED)
		server_close_for(server_of(link), REASON_DISKO_OVER);
}

void handover_close_sent(struct registry *registry)
{
	each_link(registry, close_sent, 0);
}

static void close_between_transactions(struct link *link, uint64_t console)
{
	const struct server_link *server = (const struct server_link *)link->peer;

	(void)console;
	if (link->kind != LINK_CLIENT || link->pool->database->console)
		return;
	if (link->state == CLIENT_IDLE ||
		(link->state == CLIENT_PAIRED && server->transaction_status == 'I' &&
			requests_is_empty(&server->requests)))
		client_close_for(client_of(link), REASON_SERVER_SHUTTING_DOWN);
}

/* RESUME reaches the new process only, so this client would wait for ever. */
static void close_paused(struct link *link, uint64_t console)
{
	(void)console;
	client_close_for(client_of(link), REASON_SERVER_SHUTTING_DOWN);
}

void handover_close_resting(struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		each_of(&pool->clients, close_between_transactions, 0);
		if (!pool_is_paused(pool))
			continue;
		each_of(&pool->waiting, close_paused, 0);
		each_of(&pool->welcoming, close_paused, 0);
	}
}
