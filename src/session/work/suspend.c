/* SPDX-License-Identifier: ISC */
#include "session/work/suspend.h"

#include <event2/event.h>
#include <stdlib.h>

#include "session/link/close.h"
#include "session/relay/relay_rules.h"
#include "session/work/client_session.h"
#include "session/work/server_session.h"

enum {
	/* How often to look, while coming to rest and afterwards: somebody waits for it. */
	LOOK_MILLISECONDS = 2,
	LOOK_AT_REST_MILLISECONDS = 50,
};

struct suspension {
	struct registry *registry;
	struct event *timer; /* owned */
	usec_t began;
	bool quiet;
};

/* --- coming to rest ----------------------------------------------------------------------- */

/* Between two messages, with nothing on its way in either direction? */
static bool is_at_rest(const struct link *link)
{
	return link->stream.frozen && link->held_length == 0 && link->remaining == 0 &&
		!stream_is_blocked(&link->stream);
}

/* Stop to read it as soon as it is between two messages; is it at rest? */
static bool settle(struct link *link)
{
	if (!link->stream.frozen && link->held_length == 0 && link->remaining == 0)
		stream_freeze(&link->stream);
	else if (!link->stream.frozen)
		stream_set_handlers(&link->stream,
			link->kind == LINK_CLIENT ? &client_suspend_handlers
						  : &server_suspend_handlers);
	return is_at_rest(link);
}

/* Does anybody in the pool wait for something that is still to be done for him? */
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

static void prepare(struct link *client)
{
	if (client->stream.handlers == &client_session_handlers)
		stream_set_handlers(&client->stream, &client_suspend_handlers);
}

/* What is to be set for a client is set first: nobody could say how that has ended. */
static bool settle_client(struct link *link)
{
	const bool go_on = suspend_may_continue(client_of(link));

	if (link->peer && server_is_syncing(server_of(link->peer))) {
		prepare(link);
		return false;
	}
	if (go_on)
		prepare(link);
	return (go_on && link->state == CLIENT_PAIRED) || settle(link);
}

static bool settle_clients(struct pool *pool)
{
	bool settled = !has_waiters(pool);
	struct link *link;

	TAILQ_FOREACH (link, &pool->waiting, place)
		prepare(link);
	TAILQ_FOREACH (link, &pool->clients, place)
		settled = settle_client(link) && settled;
	return settled;
}

static void close_list(struct pool *pool, enum server_list list)
{
	struct link *link;

	while ((link = TAILQ_FIRST(&pool->servers[list])) != NULL)
		server_close_for(server_of(link), REASON_UNSAFE_ON_SUSPEND);
}

/* Something that has to end before it rests: whoever takes over may not know what it is. */
static bool runs_ours(const struct server_link *server)
{
	return server->link.state == SERVER_LOOKING_UP || server_is_syncing(server) ||
		server->task == SERVER_TASK_RESTORE;
}

static bool settle_list(struct pool *pool, enum server_list list)
{
	bool settled = true;
	struct link *link;

	TAILQ_FOREACH (link, &pool->servers[list], place) {
		/* Whose client waits for our query does not come to rest before that has ended. */
		settled = server_of(link)->task != SERVER_TASK_RESTORE && settle(link) &&
			settled && !runs_ours(server_of(link));
	}
	return settled;
}

/* Nobody waits for those that are logging in: they would be nothing to whoever takes over. */
static bool settle_servers(struct pool *pool)
{
	bool settled;

	close_list(pool, SERVERS_LOGIN);
	settled = settle_list(pool, SERVERS_ACTIVE);
	settled = settle_list(pool, SERVERS_IDLE) && settled;
	return settled && pool->server_count[SERVERS_BEING_CANCELED] == 0;
}

static bool settle_all(struct registry *registry, bool (*settle_pool)(struct pool *pool))
{
	struct pool *pool;
	bool settled = true;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (!pool->database->console)
			settled = settle_pool(pool) && settled;
	}
	return settled;
}

static void close_draining(struct pool *pool)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, &pool->servers[SERVERS_BEING_CANCELED], place, next) {
		if (link->state == SERVER_DRAINING)
			server_close_for(server_of(link), REASON_UNSAFE_ON_SUSPEND);
	}
}

/* Those that are between two uses, but not clean yet. */
static void close_unsafe(struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		close_list(pool, SERVERS_USED);
		close_list(pool, SERVERS_TESTED);
		close_draining(pool);
	}
}

static bool settle_everything(struct registry *registry)
{
	close_unsafe(registry);
	/* Servers only when nobody can need them any more. */
	return settle_all(registry, settle_clients) && TAILQ_EMPTY(&registry->logins) &&
		settle_all(registry, settle_servers);
}

/* --- what does not come to rest ----------------------------------------------------------- */

static void cut_clients(struct link_list *list, bool all)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, list, place, next) {
		if (all || !is_at_rest(link))
			client_close_for(client_of(link), REASON_SUSPEND_TIMEOUT);
	}
}

/* Each takes its client along, which may be the next of no list of ours. */
static void cut_servers(struct pool *pool, enum server_list list)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, &pool->servers[list], place, next) {
		if (!is_at_rest(link) || runs_ours(server_of(link)))
			server_close_for(server_of(link), REASON_SUSPEND_TIMEOUT);
	}
}

static void cut_waiters(struct registry *registry)
{
	struct pool *pool;

	cut_clients(&registry->logins, true);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		cut_clients(&pool->waiting, true);
		cut_clients(&pool->welcoming, true);
		cut_clients(&pool->cancels, true);
		while (!TAILQ_EMPTY(&pool->servers[SERVERS_ACTIVE_CANCEL]))
			server_close_for(
				server_of(TAILQ_FIRST(&pool->servers[SERVERS_ACTIVE_CANCEL])),
				REASON_SUSPEND_TIMEOUT);
	}
}

/* Those who would have come to rest now that nobody waits get a last chance at that. */
static void cut_the_rest(struct registry *registry)
{
	struct pool *pool;

	cut_waiters(registry);
	if (settle_everything(registry))
		return;
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (pool->database->console)
			continue;
		cut_clients(&pool->clients, false);
		cut_servers(pool, SERVERS_ACTIVE);
		cut_servers(pool, SERVERS_IDLE);
		cut_servers(pool, SERVERS_BEING_CANCELED);
	}
}

static bool is_over_time(const struct suspension *suspension)
{
	const struct registry *registry = suspension->registry;
	const usec_t limit = registry->process->settings->suspend_timeout;

	return limit > 0 && loop_now(registry->loop) - suspension->began > limit;
}

/* --- the whole ---------------------------------------------------------------------------- */

static void set_timer(const struct suspension *suspension)
{
	const int wait = suspension->quiet ? LOOK_AT_REST_MILLISECONDS : LOOK_MILLISECONDS;
	const struct timeval interval = {.tv_usec = wait * 1000};

	event_add(suspension->timer, &interval);
}

void suspend_check(struct registry *registry)
{
	struct suspension *suspension = registry->process->suspension;
	bool quiet;

	if (!suspension)
		return;
	if (registry->console_pool->client_count[CLIENT_CONSOLE] == 0) {
		log_write(LEVEL_LOG, "admin disappeared when suspended, doing RESUME");
		suspend_end(registry);
		registry->process->suspend.changed(registry);
		return;
	}
	quiet = settle_everything(registry);
	if (!quiet && is_over_time(suspension)) {
		cut_the_rest(registry);
		quiet = settle_everything(registry);
	}
	if (quiet == suspension->quiet)
		return;
	suspension->quiet = quiet;
	set_timer(suspension);
	registry->process->suspend.changed(registry);
}

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)what;
	suspend_check(argument);
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
	return registry->process->suspension && registry->process->suspension->quiet;
}

static void wake(struct link_list *list, const struct stream_handlers *handlers)
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
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		wake(&pool->clients, &client_session_handlers);
		wake(&pool->waiting, &client_session_handlers);
		for (unsigned i = 0; i < SERVER_LISTS; i++)
			wake(&pool->servers[i], &server_session_handlers);
		if (!pool->database->console)
			pool_needs_work(pool);
	}
	registry->process->suspend.accept(registry, true);
}
