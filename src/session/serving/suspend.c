/* SPDX-License-Identifier: ISC */
#include "session/serving/suspend.h"

#include <event2/event.h>
#include <stdlib.h>

#include "session/link/close.h"
#include "session/relay/relay_rules.h"
#include "session/serving/client_session.h"
#include "session/serving/server_session.h"

enum {
	/* Interval of the checks until all connections are suspended, and afterwards. */
	CHECK_MILLISECONDS = 2,
	CHECK_SUSPENDED_MILLISECONDS = 50,
};

struct suspension {
	struct registry *registry;
	struct event *timer; /* owned */
	usec_t began;
	bool complete;
};

/* --- suspending connections --------------------------------------------------------------- */

/* Returns true if the link is frozen between two messages, with no data in its buffers. */
static bool is_suspended(const struct link *link)
{
	return link->stream.frozen && link->held_length == 0 && link->remaining == 0 &&
		!stream_is_blocked(&link->stream);
}

/*
 * Freeze the link if it is between two messages, else have it frozen when it is. Returns true
 * if it is suspended.
 */
static bool suspend_link(struct link *link)
{
	if (!link->stream.frozen && link->held_length == 0 && link->remaining == 0)
		stream_freeze(&link->stream);
	else if (!link->stream.frozen)
		stream_set_handlers(&link->stream,
			link->kind == LINK_CLIENT ? &client_suspend_handlers
						  : &server_suspend_handlers);
	return is_suspended(link);
}

/* Returns true if clients or cancel requests of the pool wait for a server. */
static bool has_waiters(const struct pool *pool)
{
	return pool_waiting_clients(pool) + pool->client_count[CLIENT_CANCEL_WAITING] +
		pool->client_count[CLIENT_CANCEL_SENT] +
		pool->server_count[SERVERS_ACTIVE_CANCEL] >
		0;
}

bool suspend_may_continue(const struct client_link *client)
{
	const struct pool *pool = client->link.pool;

	return client_mode(client) != POOL_MODE_SESSION &&
		(pool->registry->process->draining || has_waiters(pool));
}

static void set_suspend_handlers(struct link *client)
{
	if (client->stream.handlers == &client_session_handlers)
		stream_set_handlers(&client->stream, &client_suspend_handlers);
}

/* Our SETs have to end first, since their result could not be known after a takeover. */
static bool suspend_client(struct link *link)
{
	const bool may_continue = suspend_may_continue(client_of(link));

	if (link->peer && server_is_syncing(server_of(link->peer))) {
		set_suspend_handlers(link);
		return false;
	}
	if (may_continue)
		set_suspend_handlers(link);
	return (may_continue && link->state == CLIENT_PAIRED) || suspend_link(link);
}

static bool suspend_clients(struct pool *pool)
{
	bool suspended = !has_waiters(pool);
	struct link *link;

	TAILQ_FOREACH (link, &pool->waiting, place)
		set_suspend_handlers(link);
	TAILQ_FOREACH (link, &pool->clients, place)
		suspended = suspend_client(link) && suspended;
	return suspended;
}

static void close_list(struct pool *pool, enum server_list list)
{
	struct link *link;

	while ((link = TAILQ_FIRST(&pool->servers[list])) != NULL)
		server_close_for(server_of(link), REASON_UNSAFE_ON_SUSPEND);
}

/*
 * A query that restores startup parameters has to end first, and so has a question, whose answer
 * the client's next query needs.
 */
static bool must_end_query(const struct server_link *server)
{
	return server->task == SERVER_TASK_RESTORE || server->task == SERVER_TASK_QUESTION ||
		server->task == SERVER_TASK_FUNCTIONS || server->task == SERVER_TASK_CAPACITY;
}

/* Returns true if the server runs a query that a process which takes over might not know. */
static bool runs_own_query(const struct server_link *server)
{
	return server->link.state == SERVER_LOOKING_UP || server_is_syncing(server) ||
		must_end_query(server);
}

/* The server may have been suspended before it was asked. Returns false: it is not now. */
static bool let_answer(struct link *server)
{
	if (server->stream.handlers == &server_suspend_handlers)
		stream_set_handlers(&server->stream, &server_session_handlers);
	if (server->stream.frozen)
		stream_thaw(&server->stream);
	return false;
}

static bool suspend_list(struct pool *pool, enum server_list list)
{
	bool suspended = true;
	struct link *link;

	TAILQ_FOREACH (link, &pool->servers[list], place) {
		if (must_end_query(server_of(link)))
			suspended = let_answer(link);
		else
			suspended = suspend_link(link) && suspended &&
				!runs_own_query(server_of(link));
	}
	return suspended;
}

/* Servers that are logging in are closed: a takeover cannot use them. */
static bool suspend_servers(struct pool *pool)
{
	bool suspended;

	close_list(pool, SERVERS_LOGIN);
	close_list(pool, SERVERS_WATCHING);
	suspended = suspend_list(pool, SERVERS_ACTIVE);
	suspended = suspend_list(pool, SERVERS_IDLE) && suspended;
	suspended = suspend_list(pool, SERVERS_LISTENING) && suspended;
	return suspended && pool->server_count[SERVERS_BEING_CANCELED] == 0;
}

static bool suspend_pools(struct registry *registry, bool (*suspend_pool)(struct pool *pool))
{
	struct pool *pool;
	bool suspended = true;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (!pool->database->console)
			suspended = suspend_pool(pool) && suspended;
	}
	return suspended;
}

static void close_draining(struct pool *pool)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_BEING_CANCELED], place, next) {
		if (link->state == SERVER_DRAINING)
			server_close_for(server_of(link), REASON_UNSAFE_ON_SUSPEND);
	}
}

/* Close servers that are between two uses and not clean. */
static void close_unsafe(struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		close_list(pool, SERVERS_USED);
		close_list(pool, SERVERS_TESTED);
		close_draining(pool);
	}
}

static bool suspend_all(struct registry *registry)
{
	close_unsafe(registry);
	/* Suspend servers last, when no client needs one. */
	return suspend_pools(registry, suspend_clients) &&
		!process_has_logins(registry->process) &&
		suspend_pools(registry, suspend_servers);
}

/* --- after suspend_timeout ---------------------------------------------------------------- */

static void close_clients(struct link_list *list, bool all)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, list, place, next) {
		if (all || !is_suspended(link))
			client_close_for(client_of(link), REASON_SUSPEND_TIMEOUT);
	}
}

/* Clients are closed with their servers, but are in other lists, so `next` stays valid. */
static void close_servers(struct pool *pool, enum server_list list)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, &pool->servers[list], place, next) {
		if (!is_suspended(link) || runs_own_query(server_of(link)))
			server_close_for(server_of(link), REASON_SUSPEND_TIMEOUT);
	}
}

static void close_waiting(struct registry *registry)
{
	struct registry *each;
	struct pool *pool;

	EACH_REGISTRY (each, registry->process)
		close_clients(&each->logins, true);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		close_clients(&pool->waiting, true);
		close_clients(&pool->welcoming, true);
		close_clients(&pool->cancels, true);
		while (!TAILQ_EMPTY(&pool->servers[SERVERS_ACTIVE_CANCEL]))
			server_close_for(
				server_of(TAILQ_FIRST(&pool->servers[SERVERS_ACTIVE_CANCEL])),
				REASON_SUSPEND_TIMEOUT);
	}
}

/* Close waiting clients, then all connections that cannot be suspended without these. */
static void close_unsuspended(struct registry *registry)
{
	struct pool *pool;

	close_waiting(registry);
	if (suspend_all(registry))
		return;
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (pool->database->console)
			continue;
		close_clients(&pool->clients, false);
		close_servers(pool, SERVERS_ACTIVE);
		close_servers(pool, SERVERS_IDLE);
		close_servers(pool, SERVERS_LISTENING);
		close_servers(pool, SERVERS_BEING_CANCELED);
	}
}

static bool is_over_time(const struct suspension *suspension)
{
	const struct registry *registry = suspension->registry;
	const usec_t limit = registry->process->settings->suspend_timeout;

	return limit > 0 && loop_now(registry->loop) - suspension->began > limit;
}

/* --- begin and end ------------------------------------------------------------------------ */

static void set_timer(const struct suspension *suspension)
{
	const int wait =
		suspension->complete ? CHECK_SUSPENDED_MILLISECONDS : CHECK_MILLISECONDS;
	const struct timeval interval = {.tv_usec = wait * 1000};

	event_add(suspension->timer, &interval);
}

void suspend_check(struct registry *registry)
{
	struct suspension *suspension = registry->process->suspension;
	bool complete;

	if (!suspension)
		return;
	if (registry->console_pool->client_count[CLIENT_CONSOLE] == 0) {
		log_write(LEVEL_LOG, "admin disappeared when suspended, doing RESUME");
		suspend_end(registry);
		registry->process->suspend.changed(registry);
		return;
	}
	complete = suspend_all(registry);
	if (!complete && is_over_time(suspension)) {
		close_unsuspended(registry);
		complete = suspend_all(registry);
	}
	if (complete == suspension->complete)
		return;
	suspension->complete = complete;
	set_timer(suspension);
	registry->process->suspend.changed(registry);
}

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
	struct registry *registry = argument;

	(void)fd;
	(void)what;
	process_stop_others(registry->process);
	suspend_check(registry);
	process_let_others_run(registry->process);
}

bool suspend_begin(struct registry *registry)
{
	struct suspension *suspension = calloc(1, sizeof(*suspension));

	if (!suspension)
		return false;
	suspension->timer = event_new(registry->loop->base, -1, EV_PERSIST, on_timer, registry);
	if (!suspension->timer) {
		free(suspension);
		return false;
	}
	suspension->registry = registry;
	suspension->began = loop_now(registry->loop);
	registry->process->suspension = suspension;
	registry->process->operation = OPERATION_SUSPENDED;
	registry->process->operation_at = suspension->began;
	registry->process->suspend.accept(registry, false);
	set_timer(suspension);
	suspend_check(registry);
	return true;
}

bool suspend_is_complete(const struct registry *registry)
{
	return registry->process->suspension && registry->process->suspension->complete;
}

static void resume_list(struct link_list *list, const struct stream_handlers *handlers)
{
	struct link *link;

	TAILQ_FOREACH (link, list, place) {
		if (link->stream.handlers == &client_suspend_handlers ||
			link->stream.handlers == &server_suspend_handlers)
			stream_set_handlers(&link->stream, handlers);
		if (link->stream.frozen)
			stream_thaw(&link->stream);
	}
}

void suspend_end(struct registry *registry)
{
	struct suspension *suspension = registry->process->suspension;
	struct pool *pool;

	if (!suspension)
		return;
	registry->process->suspension = NULL;
	registry->process->operation = OPERATION_RUNNING;
	registry->process->operation_at = loop_now(registry->loop);
	event_free(suspension->timer);
	free(suspension);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		resume_list(&pool->clients, &client_session_handlers);
		resume_list(&pool->waiting, &client_session_handlers);
		for (unsigned i = 0; i < SERVER_LISTS; i++)
			resume_list(&pool->servers[i], &server_session_handlers);
		if (!pool->database->console)
			pool_needs_work(pool);
	}
	registry->process->suspend.accept(registry, true);
}
